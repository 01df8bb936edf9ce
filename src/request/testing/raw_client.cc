#include "request/testing/raw_client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <utility>

#include "base/strings.h"

namespace deepinfer::testing {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Takes a chunked body from the front of `text`; false: it is not all there.
bool TakeChunks(std::string& text, std::string& body) {
  size_t at = 0;
  while (true) {
    const size_t line = text.find("\r\n", at);
    if (line == std::string::npos) return false;
    const size_t size = std::strtoul(text.c_str() + at, nullptr, 16);
    if (text.size() < line + 4 + size) return false;
    body.append(text, line + 2, size);
    at = line + 4 + size;
    if (size == 0) break;
  }
  text.erase(0, at);
  return true;
}

RawAnswer ParseHead(const std::string& head) {
  RawAnswer answer;
  if (!head.starts_with("HTTP/1.1 ")) ADD_FAILURE() << "no answer begins here: " << head;
  answer.status = std::atoi(head.c_str() + std::min<size_t>(head.find(' '), head.size() - 1));
  for (size_t at = head.find("\r\n") + 2; at < head.size();) {
    const size_t end = head.find("\r\n", at), colon = head.find(':', at);
    std::string name = head.substr(at, colon - at);
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    answer.headers[name] = head.substr(colon + 2, end - colon - 2);
    at = end + 2;
  }
  return answer;
}

}  // namespace

std::string RawAnswer::Header(const std::string& name) const {
  const auto at = headers.find(name);
  return at == headers.end() ? "" : at->second;
}

RawClient::RawClient(int32_t port, bool v6) {
  socket_ = ::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int failed = 0;
  if (v6) {
    sockaddr_in6 address = {.sin6_family = AF_INET6,
                            .sin6_port = htons(static_cast<uint16_t>(port)),
                            .sin6_addr = in6addr_loopback};
    failed = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address);
  } else {
    sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(static_cast<uint16_t>(port))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    failed = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address);
  }
  if (failed != 0) {
    ADD_FAILURE() << "cannot connect to port " << port;
    Close();
  }
}

RawClient::~RawClient() { Close(); }

RawClient::RawClient(RawClient&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), buffer_(std::move(other.buffer_)) {}

void RawClient::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

void RawClient::ShutdownSend() { ::shutdown(socket_, SHUT_WR); }

void RawClient::Close() {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
}

void RawClient::Reset() {
  const linger now = {.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  Close();
}

void RawClient::SetReceiveBuffer(int bytes) {
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

bool RawClient::Fill(SteadyClock::time_point deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - SteadyClock::now());
  pollfd poll_for = {.fd = socket_, .events = POLLIN};
  timed_out_ = ::poll(&poll_for, 1, static_cast<int>(std::max<int64_t>(left.count(), 0))) <= 0;
  if (timed_out_) return false;
  char bytes[16384];
  const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
  if (count <= 0) return false;
  buffer_.append(bytes, static_cast<size_t>(count));
  return true;
}

std::optional<RawAnswer> RawClient::ReadAnswer(bool to_head) {
  const auto deadline = SteadyClock::now() + kTestPatience;
  size_t head_end = 0;
  while ((head_end = buffer_.find("\r\n\r\n")) == std::string::npos) {
    if (!Fill(deadline)) return std::nullopt;
  }
  RawAnswer answer = ParseHead(buffer_.substr(0, head_end + 2));
  buffer_.erase(0, head_end + 4);
  if (to_head || answer.status == 204 || answer.status == 304 || answer.status == 100) {
    return answer;
  }
  if (answer.Header("transfer-encoding") == "chunked") {
    while (!TakeChunks(buffer_, answer.body)) {
      answer.body.clear();
      if (!Fill(deadline)) return std::nullopt;
    }
    return answer;
  }
  if (answer.Header("content-length").empty()) {
    while (Fill(deadline)) {
    }
    if (timed_out_) return std::nullopt;
    answer.body = std::exchange(buffer_, "");
    return answer;
  }
  const size_t size = std::stoul(answer.Header("content-length"));
  while (buffer_.size() < size) {
    if (!Fill(deadline)) return std::nullopt;
  }
  answer.body = buffer_.substr(0, size);
  buffer_.erase(0, size);
  return answer;
}

std::string RawClient::ReadUntil(std::string_view mark) {
  const auto deadline = SteadyClock::now() + kTestPatience;
  while (buffer_.find(mark) == std::string::npos && Fill(deadline)) {
  }
  return std::exchange(buffer_, "");
}

std::optional<std::string> RawClient::ReadToEnd() {
  const auto deadline = SteadyClock::now() + kTestPatience;
  while (Fill(deadline)) {
  }
  if (timed_out_) return std::nullopt;
  return std::exchange(buffer_, "");
}

std::string GetText(const std::string& path, const std::string& more_headers) {
  return StrCat("GET ", path, " HTTP/1.1\r\nHost: x\r\n", more_headers, "\r\n");
}

std::string PostText(const std::string& path, const std::string& body,
                     const std::string& more_headers) {
  return StrCat("POST ", path, " HTTP/1.1\r\nHost: x\r\nContent-Length: ", body.size(), "\r\n",
                more_headers, "\r\n", body);
}

RawAnswer Fetch(int32_t port, const std::string& path, const std::string& body,
                const std::string& more_headers) {
  RawClient client(port);
  client.Send(body.empty() ? GetText(path, more_headers) : PostText(path, body, more_headers));
  auto answer = client.ReadAnswer();
  if (!answer) ADD_FAILURE() << path << ": no answer";
  return answer.value_or(RawAnswer{});
}

}  // namespace deepinfer::testing
