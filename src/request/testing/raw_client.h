// request/testing/raw_client.h: a client that sends and reads bytes as a test says. Tests only.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace deepinfer::testing {

inline constexpr auto kTestPatience = std::chrono::seconds(10);

struct RawAnswer {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // chunks put together

  std::string Header(const std::string& name) const;
};

class RawClient {
 public:
  // Connects to 127.0.0.1, or ::1. A failure fails the test.
  explicit RawClient(int32_t port, bool v6 = false);
  ~RawClient();
  RawClient(RawClient&& other) noexcept;
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void Send(std::string_view bytes);  // all of it, if the peer takes it
  void ShutdownSend();
  void Close();
  void Reset();                      // closes with RST
  void SetReceiveBuffer(int bytes);  // small: a client that takes little
  // The next answer. Nothing: the connection ended, or nothing came in time.
  std::optional<RawAnswer> ReadAnswer(bool to_head = false);
  // What comes until `mark` is in it, the end, or the time is over.
  std::string ReadUntil(std::string_view mark);
  // What comes until the connection ends; nothing: it did not end in time.
  std::optional<std::string> ReadToEnd();

 private:
  // Waits for bytes. False: the end, or the time is over (then timed_out_).
  bool Fill(std::chrono::steady_clock::time_point deadline);

  int socket_ = -1;
  std::string buffer_;
  bool timed_out_ = false;
};

// One request on a connection of its own. body: POST, else GET.
RawAnswer Fetch(int32_t port, const std::string& path, const std::string& body = "",
                const std::string& more_headers = "");
std::string GetText(const std::string& path, const std::string& more_headers = "");
std::string PostText(const std::string& path, const std::string& body,
                     const std::string& more_headers = "");

}  // namespace deepinfer::testing
