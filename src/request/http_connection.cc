#include "request/http_connection.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <charconv>
#include <exception>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "request/http_text.h"

namespace deepinfer {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

namespace {

constexpr auto kToken = asio::as_tuple(asio::use_awaitable);
constexpr size_t kReadBytes = 4 << 10;
constexpr size_t kBodyReadBytes = 64 << 10;
constexpr size_t kKeptCapacity = 64 << 10;  // an emptied queue keeps no more memory than this
constexpr size_t kMostLingerBytes = 1 << 20;
constexpr Duration kLingerTime = std::chrono::seconds(2);

std::string PeerName(const asio::ip::tcp::socket& socket) {
  error_code error;
  const auto endpoint = socket.remote_endpoint(error);
  if (error) return "gone";
  const std::string address = endpoint.address().to_string();
  return endpoint.address().is_v6() ? StrCat("[", address, "]:", endpoint.port())
                                    : StrCat(address, ":", endpoint.port());
}

std::string_view View(beast::string_view text) { return {text.data(), text.size()}; }

std::string LowerCase(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

// What its head says; nothing: the target is not a path.
std::optional<HttpRequest> HeadOf(const http::request_header<>& head) {
  auto target = ParseTarget(View(head.target()));
  if (!target) return std::nullopt;
  HttpRequest request;
  request.method = View(head.method_string());
  request.path = std::move(target->path);
  request.query = std::move(target->query);
  request.chunks_allowed = head.version() == 11;
  for (const auto& field : head) {
    request.headers.emplace_back(LowerCase(View(field.name_string())), View(field.value()));
  }
  return request;
}

bool HasBody(int status) { return status != 204 && status != 304; }

}  // namespace

// One answer. Knows its connection until it is complete or the client has gone.
class ConnectionReply : public HttpReply {
 public:
  ConnectionReply(std::shared_ptr<HttpConnection> connection, bool head, bool chunks_allowed)
      : connection_(std::move(connection)), head_(head), chunks_allowed_(chunks_allowed) {}
  ~ConnectionReply() override {
    if (connection_ != nullptr) std::exchange(connection_, nullptr)->Abandon(begun_);
  }

  void Send(HttpResponse response) override {
    if (connection_ == nullptr || begun_ || stream_) return;
    begun_ = true;
    const bool has_body = HasBody(response.status);
    connection_->BeginAnswer(
        response, false,
        has_body ? StrCat("Content-Length: ", response.body.size(), "\r\n") : std::string());
    if (has_body && !head_) connection_->Append(response.body);
    Complete();
  }

  void BeginStream(HttpResponse head) override {
    if (connection_ == nullptr || begun_ || stream_) return;
    stream_ = std::make_unique<HttpResponse>(std::move(head));
  }

  void Write(std::string_view piece) override {
    if (connection_ == nullptr || !stream_ || piece.empty()) return;
    Begin();
    if (head_) return;
    if (connection_->TooMuchQueued()) connection_->CutOff();
    if (connection_ == nullptr) return;  // gone meanwhile
    if (chunks_allowed_) {
      connection_->AppendChunk(piece);
    } else {
      connection_->Append(piece);
    }
  }

  void End() override {
    if (connection_ == nullptr || !stream_) return;
    Begin();
    if (chunks_allowed_ && !head_) connection_->Append("0\r\n\r\n");
    Complete();
  }

  bool closed() const override { return gone_; }
  void OnClosed(std::function<void()> handler) override { on_closed_ = std::move(handler); }

  // The client has gone.
  void SetGone() {
    gone_ = true;
    connection_ = nullptr;
    if (const auto handler = std::exchange(on_closed_, nullptr)) handler();
  }

 private:
  void Begin() {
    if (begun_) return;
    begun_ = true;
    connection_->BeginAnswer(*stream_, true,
                             chunks_allowed_ ? "Transfer-Encoding: chunked\r\n" : "");
    stream_->body.clear();
  }
  void Complete() {
    on_closed_ = nullptr;
    std::exchange(connection_, nullptr)->OnReplyDone();
  }

  std::shared_ptr<HttpConnection> connection_;
  const bool head_;
  const bool chunks_allowed_;  // else the end of the connection ends the body
  bool begun_ = false;         // the head is queued
  bool gone_ = false;
  std::unique_ptr<HttpResponse> stream_;  // the head of a stream
  std::function<void()> on_closed_;
};

HttpConnection::HttpConnection(Socket socket, std::shared_ptr<HttpConnectionHost> host, bool refuse)
    : host_(std::move(host)),
      socket_(std::move(socket)),
      refuse_(refuse),
      peer_(PeerName(socket_)),
      buffer_(static_cast<size_t>(host_->options.max_header_bytes) + kBodyReadBytes) {}

void HttpConnection::Start() {
  error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  socket_.non_blocking(true, ignored);
  Enter(Phase::kIdle);
  asio::co_spawn(
      socket_.get_executor(), [self = shared_from_this()] { return self->Serve(); },
      [self = shared_from_this()](const std::exception_ptr& failure) {
        if (failure) {
          try {
            std::rethrow_exception(failure);
          } catch (const std::exception& error) {
            LogError("connection of ", self->peer_, ": ", error.what());
          }
        }
        self->Close();
        self->host_->OnEnd(*self);
      });
}

void HttpConnection::Close() {
  if (!open_) return;
  open_ = false;
  error_code ignored;
  socket_.close(ignored);
  out_ = {};
  sent_ = 0;
  LeaveAnswer();
  if (reply_ == nullptr) return;
  ++host_->stats.gone;
  std::exchange(reply_, nullptr)->SetGone();
}

void HttpConnection::CloseIfIdle() {
  if (phase_ == Phase::kIdle) Close();
}

void HttpConnection::Enter(Phase phase) {
  phase_ = phase;
  const HttpServerOptions& o = host_->options;
  const Duration most = phase == Phase::kIdle     ? o.idle_timeout
                        : phase == Phase::kHeader ? o.header_timeout
                        : phase == Phase::kBody   ? o.body_timeout
                                                  : kLingerTime;
  phase_end_ = host_->clock->Now() + most;
}

void HttpConnection::CheckTime(MonotonicTime now) {
  if (!open_) return;
  if (waiting_to_write_ && now - last_sent_ > host_->options.write_timeout) {
    ++host_->stats.cut_off;
    return Close();
  }
  if (phase_ == Phase::kAnswering || now < phase_end_) return;
  if (phase_ == Phase::kIdle || phase_ == Phase::kLingering) return Close();
  late_ = true;
  error_code ignored;
  socket_.cancel(ignored);
}

// ---- reading

HttpConnection::Awaitable<void> HttpConnection::Serve() {
  while (open_) {
    auto request = co_await ReadRequest();
    if (!request) break;
    Enter(Phase::kAnswering);
    Dispatch(*std::move(request));
    Flush();
    if (!answered()) co_await WaitUntilAnswered();
    if (!open_ || !keep_alive_ || host_->draining) break;
  }
  if (open_) co_await Linger();
}

HttpConnection::Awaitable<std::optional<HttpRequest>> HttpConnection::ReadRequest() {
  if (buffer_.size() == 0) {
    Enter(Phase::kIdle);
    if (!co_await ReadSome()) {
      Close();
      co_return std::nullopt;
    }
  }
  Enter(Phase::kHeader);
  const HttpServerOptions& options = host_->options;
  Parser parser;
  parser.header_limit(static_cast<uint32_t>(options.max_header_bytes));
  parser.body_limit(static_cast<uint64_t>(options.max_body_bytes));
  request_id_ = host_->NextRequestId();
  auto [error, header_bytes] = co_await http::async_read_header(socket_, buffer_, parser, kToken);
  host_->stats.bytes_in += static_cast<int64_t>(header_bytes);
  if (const std::string_view id = View(parser.get()["x-request-id"]); IsGoodRequestId(id)) {
    request_id_ = id;
  }
  if (error) {
    RefuseBroken(error);
    co_return std::nullopt;
  }
  if (const auto fault = FaultOf(parser)) {
    Refuse(*fault);
    co_return std::nullopt;
  }
  keep_alive_ = parser.keep_alive();
  auto request = HeadOf(parser.get());
  if (!request) {
    Refuse({.message = "the request's target is not a path"});
    co_return std::nullopt;
  }
  request->id = request_id_;
  request->peer = peer_;
  if (!parser.is_done()) {
    // A short body is read whatever becomes of the request, so that the connection goes on.
    if (host_->check_head && !IsShort(parser)) request->refusal = host_->check_head(*request);
    if (request->refusal) {
      keep_alive_ = false;
    } else if (!co_await ReadBody(parser, *request)) {
      co_return std::nullopt;
    }
  }
  if (buffer_.capacity() > kReadBytes) buffer_.shrink_to_fit();
  co_return request;
}

std::optional<ApiError> HttpConnection::FaultOf(const Parser& parser) const {
  const auto& message = parser.get();
  if (refuse_) return MakeApiError(ApiErrorKind::kOverloaded, "too many connections");
  if (message.version() == 11 && message.count(http::field::host) != 1) {
    return ApiError{.message = "a request needs one Host header"};
  }
  if (message.count(http::field::content_length) > 0 &&
      message.count(http::field::transfer_encoding) > 0) {
    return ApiError{.message = "Content-Length and Transfer-Encoding exclude each other"};
  }
  const auto expect = message[http::field::expect];
  if (!expect.empty() && !beast::iequals(expect, "100-continue")) {
    return ApiError{.status = 417, .message = "Expect: only 100-continue is known"};
  }
  return std::nullopt;
}

bool HttpConnection::IsShort(const Parser& parser) {
  const auto length = parser.content_length();
  return length && *length <= kBodyReadBytes && parser.get().count(http::field::expect) == 0;
}

HttpConnection::Awaitable<bool> HttpConnection::ReadBody(Parser& parser, HttpRequest& request) {
  Enter(Phase::kBody);
  if (parser.get().count(http::field::expect) > 0) Append("HTTP/1.1 100 Continue\r\n\r\n");
  buffer_.reserve(std::min(buffer_.max_size(), kBodyReadBytes));
  request.room = std::make_shared<BodyRoom>(host_->body_bytes);
  while (!parser.is_done()) {
    const auto [error, bytes] = co_await http::async_read_some(socket_, buffer_, parser, kToken);
    host_->stats.bytes_in += static_cast<int64_t>(bytes);
    if (error) {
      RefuseBroken(error);
      co_return false;
    }
    request.room->GrowTo(std::ssize(parser.get().body()));
    if (request.room->total() > host_->options.max_all_bodies_bytes) {
      Refuse(MakeApiError(ApiErrorKind::kOverloaded,
                          "the requests under way hold as many bytes as they may together"));
      co_return false;
    }
  }
  request.body = std::move(parser.get().body());
  co_return true;
}

HttpConnection::Awaitable<bool> HttpConnection::ReadSome() {
  const auto [error, count] = co_await socket_.async_read_some(buffer_.prepare(kReadBytes), kToken);
  buffer_.commit(count);
  co_return !error;
}

// Reads on while the answer is made, to see at once when the client goes.
HttpConnection::Awaitable<void> HttpConnection::WaitUntilAnswered() {
  while (open_ && !answered()) {
    const auto token = [this] {
      return asio::bind_cancellation_slot(answered_signal_.slot(), kToken);
    };
    error_code error;
    if (buffer_.size() + kReadBytes <= buffer_.max_size()) {
      const auto [read_error, count] =
          co_await socket_.async_read_some(buffer_.prepare(kReadBytes), token());
      buffer_.commit(count);
      error = read_error;
    } else {  // requests wait: only an error can be seen
      const auto [wait_error] = co_await socket_.async_wait(Socket::wait_error, token());
      error = wait_error ? wait_error : error_code(asio::error::connection_reset);
    }
    if (error && error != asio::error::operation_aborted) Close();
  }
}

// Ends the sending and waits for the client to see it: closing with unread data would take the
// answer back.
HttpConnection::Awaitable<void> HttpConnection::Linger() {
  if (!answered()) co_await WaitUntilAnswered();
  if (!open_) co_return;
  Enter(Phase::kLingering);
  error_code error;
  socket_.shutdown(Socket::shutdown_send, error);
  size_t total = buffer_.size();
  while (!error && open_ && total < kMostLingerBytes) {
    buffer_.clear();
    if (!co_await ReadSome()) break;
    total += buffer_.size();
  }
}

// ---- answering

void HttpConnection::Dispatch(HttpRequest request) {
  auto reply = std::make_shared<ConnectionReply>(shared_from_this(), request.method == "HEAD",
                                                 request.chunks_allowed);
  reply_ = reply.get();
  answering_ = true;
  host_->OnAnswering(+1);
  if (!request.chunks_allowed) keep_alive_ = false;  // the end of a stream is the end
  try {
    host_->handler(std::move(request), reply);
  } catch (const std::exception& error) {  // the reply's destructor answers
    LogError("request ", request_id_, ": ", error.what());
  }
}

void HttpConnection::Refuse(const ApiError& error) {
  keep_alive_ = false;
  const HttpResponse response = ErrorResponse(error);
  BeginAnswer(response, false, StrCat("Content-Length: ", response.body.size(), "\r\n"));
  Append(response.body);
  Flush();
}

void HttpConnection::RefuseBroken(const error_code& error) {
  const HttpServerOptions& options = host_->options;
  if (late_) {
    Refuse({.status = 408, .message = "the request did not come in time"});
  } else if (error == http::error::body_limit) {
    Refuse(MakeApiError(ApiErrorKind::kBodyTooLarge,
                        StrCat("the body has more than ", options.max_body_bytes, " bytes")));
  } else if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    Refuse(MakeApiError(ApiErrorKind::kHeadersTooLarge,
                        StrCat("the headers have more than ", options.max_header_bytes, " bytes")));
  } else if (error.category() == http::make_error_code(http::error::bad_method).category() &&
             error != http::error::end_of_stream && error != http::error::partial_message) {
    Refuse({.message = StrCat("this is not HTTP/1.1: ", error.message())});
  } else {
    Close();  // the client has gone
  }
}

void HttpConnection::BeginAnswer(const HttpResponse& response, bool stream,
                                 std::string_view more_headers) {
  if (host_->draining) keep_alive_ = false;
  out_ += StrCat("HTTP/1.1 ", response.status, " ", ReasonPhrase(response.status), "\r\n");
  out_ += host_->DateHeader();
  if (HasBody(response.status)) out_ += StrCat("Content-Type: ", response.content_type, "\r\n");
  for (const auto& [name, value] : response.headers) {
    CHECK(IsHeaderValue(value));
    out_ += StrCat(name, ": ", value, "\r\n");
  }
  out_ += StrCat("x-request-id: ", request_id_, "\r\n", more_headers);
  if (stream) out_ += "X-Accel-Buffering: no\r\n";  // nginx would collect it
  out_ += keep_alive_ ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
}

void HttpConnection::Append(std::string_view bytes) {
  if (!open_) return;
  out_ += bytes;
  if (flush_planned_) return;
  flush_planned_ = true;
  host_->FlushSoon(shared_from_this());
}

void HttpConnection::AppendChunk(std::string_view piece) {
  char size[24];
  char* end = std::to_chars(size, size + 20, piece.size(), 16).ptr;
  *end++ = '\r';
  *end++ = '\n';
  out_.append(size, static_cast<size_t>(end - size));
  out_ += piece;
  Append("\r\n");
}

bool HttpConnection::TooMuchQueued() {
  const auto most = static_cast<size_t>(host_->options.stream_buffer_bytes);
  if (out_.size() - sent_ <= most) return false;
  Flush();
  return out_.size() - sent_ > most;
}

void HttpConnection::CutOff() {
  ++host_->stats.cut_off;
  error_code ignored;
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);  // its data goes, too
  Close();
}

void HttpConnection::OnReplyDone() {
  reply_ = nullptr;
  Append("");  // somebody has to see that all is sent
}

void HttpConnection::Abandon(bool begun) {
  if (!open_) return;
  LogError("request ", request_id_, " was left without an answer");
  if (begun) return Close();
  reply_ = nullptr;
  Refuse(MakeApiError(ApiErrorKind::kInternal, "the request was left without an answer"));
}

void HttpConnection::Flush() {
  flush_planned_ = false;
  while (open_ && !waiting_to_write_ && sent_ < out_.size()) {
    error_code error;
    const size_t count =
        socket_.write_some(asio::buffer(out_.data() + sent_, out_.size() - sent_), error);
    sent_ += count;
    host_->stats.bytes_out += static_cast<int64_t>(count);
    last_sent_ = host_->clock->Now();
    if (error == asio::error::would_block || error == asio::error::try_again) {
      waiting_to_write_ = true;
      socket_.async_wait(Socket::wait_write, [self = shared_from_this()](const error_code& failed) {
        self->waiting_to_write_ = false;
        if (!failed) self->Flush();
      });
    } else if (error) {
      return Close();
    }
  }
  if (sent_ == out_.size()) {
    out_.clear();
    if (out_.capacity() > kKeptCapacity) out_.shrink_to_fit();
    sent_ = 0;
  } else if (sent_ > kKeptCapacity && sent_ > out_.size() / 2) {
    out_.erase(0, sent_);
    sent_ = 0;
  }
  if (!open_ || !answered()) return;
  LeaveAnswer();
  answered_signal_.emit(asio::cancellation_type::all);
}

void HttpConnection::LeaveAnswer() {
  if (std::exchange(answering_, false)) host_->OnAnswering(-1);
}

}  // namespace deepinfer
