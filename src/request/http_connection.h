// request/http_connection.h: one client's connection: requests in, answers out, in turn.
//
// For http_server.cc only: Asio shows. A coroutine reads and waits; answers are written where they
// are made, without one, so that a token costs one send. Threads: the server's.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "request/api_error.h"
#include "request/http_server.h"

namespace deepinfer {

class HttpConnection;
class ConnectionReply;

// What all connections share. The server keeps it alive as long as one of them.
struct HttpConnectionHost {
  virtual ~HttpConnectionHost() = default;

  virtual void OnEnd(HttpConnection& connection) = 0;
  virtual void OnAnswering(int change) = 0;  // +1 or -1
  // Calls Flush() once what runs now has returned.
  virtual void FlushSoon(std::shared_ptr<HttpConnection> connection) = 0;
  virtual std::string NextRequestId() = 0;
  virtual const std::string& DateHeader() = 0;  // "Date: ...\r\n"

  HttpServerOptions options;
  HttpHandler handler;
  HttpHeadCheck check_head;  // may be empty
  BodyRoom::Total body_bytes = std::make_shared<std::atomic<int64_t>>(0);
  Clock* clock = nullptr;
  bool draining = false;
  HttpServerStats stats;
};

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  using Socket = boost::asio::ip::tcp::socket;

  // refuse: reads one request and says that there are too many connections.
  HttpConnection(Socket socket, std::shared_ptr<HttpConnectionHost> host, bool refuse);

  void Start();
  // Ends it now; a client that waits for an answer has gone.
  void Close();
  // Ends it if it waits for nothing but the next request.
  void CloseIfIdle();
  // Ends it if something takes longer than it may.
  void CheckTime(MonotonicTime now);
  // Sends what can be sent without waiting.
  void Flush();

 private:
  friend class ConnectionReply;
  template <typename T>
  using Awaitable = boost::asio::awaitable<T>;
  enum class Phase { kIdle, kHeader, kBody, kAnswering, kLingering };

  Awaitable<void> Serve();
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;
  Awaitable<std::optional<HttpRequest>> ReadRequest();
  Awaitable<bool> ReadBody(Parser& parser, HttpRequest& request);  // false: refused, or gone
  // Says why the head cannot be of a request here.
  std::optional<ApiError> FaultOf(const Parser& parser) const;
  static bool IsShort(const Parser& parser);  // its body, which nothing has to be said before
  Awaitable<bool> ReadSome();                 // false: the client sends no more
  Awaitable<void> WaitUntilAnswered();
  Awaitable<void> Linger();
  void Enter(Phase phase);
  void Dispatch(HttpRequest request);
  // Answers a request that reaches no handler; the connection ends behind it.
  void Refuse(const ApiError& error);
  void RefuseBroken(const boost::system::error_code& error);
  bool answered() const { return reply_ == nullptr && out_.size() == sent_; }

  // For the reply.
  void BeginAnswer(const HttpResponse& response, bool chunked, std::string_view more_headers);
  void Append(std::string_view bytes);
  void AppendChunk(std::string_view piece);
  bool TooMuchQueued();
  void CutOff();
  void OnReplyDone();
  void LeaveAnswer();  // nothing of it is left to be sent
  void Abandon(bool begun);

  const std::shared_ptr<HttpConnectionHost> host_;
  Socket socket_;
  const bool refuse_;
  const std::string peer_;
  boost::beast::flat_buffer buffer_;  // read, not parsed yet
  Phase phase_ = Phase::kIdle;
  MonotonicTime phase_end_ = {};
  bool late_ = false;  // CheckTime() ended the reading
  bool keep_alive_ = true;
  bool open_ = true;
  std::string out_;  // of it [sent_, end) waits to be sent
  size_t sent_ = 0;
  bool flush_planned_ = false;
  bool waiting_to_write_ = false;
  MonotonicTime last_sent_ = {};
  ConnectionReply* reply_ = nullptr;  // the one under way
  bool answering_ = false;            // a handler's answer is not sent yet
  std::string request_id_;
  boost::asio::cancellation_signal answered_signal_;
};

}  // namespace deepinfer
