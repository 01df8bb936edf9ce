#include "apps/http_pool.h"

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <optional>

#include "base/check.h"

namespace deepinfer {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using ErrorCode = boost::system::error_code;
using LibraryView = boost::beast::string_view;

constexpr int kConnectsAtOnce = 64;
constexpr size_t kReadBytes = 16 << 10;

std::string_view View(LibraryView text) { return {text.data(), text.size()}; }

template <typename... Args>
Status Unavailable(const Args&... args) {
  return MakeStatus(StatusCode::kUnavailable, StrCat(args...));
}

// Hands an answer to its listener as it is read; keeps none of it.
class AnswerParser : public http::basic_parser<false> {
 public:
  explicit AnswerParser(HttpListener& listener) : listener_(listener) {
    eager(true);
    body_limit(boost::none);
  }

 private:
  void on_request_impl(http::verb, LibraryView, LibraryView, int, ErrorCode&) override {}
  void on_response_impl(int status, LibraryView, int, ErrorCode&) override { status_ = status; }
  void on_field_impl(http::field name, LibraryView, LibraryView value, ErrorCode&) override {
    if (name == http::field::content_type) content_type_ = View(value);
  }
  void on_header_impl(ErrorCode&) override { listener_.OnHead(status_, content_type_); }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, ErrorCode&) override {}
  std::size_t on_body_impl(LibraryView piece, ErrorCode&) override {
    listener_.OnBody(View(piece));
    return piece.size();
  }
  void on_chunk_header_impl(std::uint64_t, LibraryView, ErrorCode&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, LibraryView piece, ErrorCode&) override {
    listener_.OnBody(View(piece));
    return piece.size();
  }
  void on_finish_impl(ErrorCode&) override {}

  HttpListener& listener_;
  int status_ = 0;
  std::string content_type_;
};

}  // namespace

StatusOr<HttpEndpoint> ParseHttpUrl(const std::string& url) {
  constexpr std::string_view kScheme = "http://";
  if (url.starts_with("https://")) {
    return Unimplemented(url, ": https is not spoken here; put a proxy in between, or use http://");
  }
  const auto mistake = [&] {
    return InvalidArgument("found \"", url, "\", expected http://HOST[:PORT][/PATH]");
  };
  if (!url.starts_with(kScheme) || url.find_first_of(" ?#@\r\n") != url.npos) return mistake();
  HttpEndpoint endpoint{.url = url, .port = "80"};
  while (endpoint.url.ends_with('/')) endpoint.url.pop_back();
  if (endpoint.url.size() <= kScheme.size()) return mistake();
  std::string rest = endpoint.url.substr(kScheme.size());
  if (const size_t slash = rest.find('/'); slash != rest.npos) {
    endpoint.path = rest.substr(slash);
    rest.resize(slash);
  }
  const bool bracketed = rest.starts_with('[');
  const size_t host_end = bracketed ? rest.find(']') : rest.find(':');
  if (bracketed && host_end == rest.npos) return mistake();
  endpoint.host = bracketed ? rest.substr(1, host_end - 1) : rest.substr(0, host_end);
  const size_t port_at = bracketed ? host_end + 1 : std::min(host_end, rest.size());
  if (port_at < rest.size()) {
    endpoint.port = rest.substr(port_at + 1);
    const bool digits = endpoint.port.find_first_not_of("0123456789") == std::string::npos;
    if (rest[port_at] != ':' || endpoint.port.empty() || !digits || endpoint.port.size() > 5) {
      return mistake();
    }
  }
  if (endpoint.host.empty()) return mistake();
  return endpoint;
}

class HttpPool::Impl {
 public:
  Impl(HttpEndpoint endpoint, HttpPoolOptions options)
      : endpoint_(std::move(endpoint)), options_(std::move(options)), alarm_(io_) {}

  Status Resolve();
  Status Connect(int count);
  void Send(HttpCall call, HttpListener& listener);
  void CallAt(MonotonicTime when, std::function<void()> handler);
  void Run();
  int64_t num_made() const { return num_made_; }

 private:
  class Connection;
  using ConnectionPtr = std::shared_ptr<Connection>;

  ConnectionPtr Make();
  std::string Head(const HttpCall& call) const;
  Duration timeout() const { return FromSeconds(options_.timeout_s); }

  asio::io_context io_{1};
  const HttpEndpoint endpoint_;
  const HttpPoolOptions options_;
  std::vector<tcp::endpoint> addresses_;
  size_t address_idx_ = 0;  // the one that answered last
  std::vector<ConnectionPtr> idle_;
  asio::steady_timer alarm_;
  int64_t num_made_ = 0;
};

// One call at a time; then it lies idle, or dies with its last handler.
class HttpPool::Impl::Connection : public std::enable_shared_from_this<Connection> {
 public:
  explicit Connection(Impl& pool) : pool_(pool), socket_(pool.io_), deadline_(pool.io_) {}

  // Tries each address once. `done` gets the last failure.
  void Open(std::function<void(const Status&)> done) {
    ++pool_.num_made_;
    Open(0, std::move(done));
  }

  // From now on the server may close it at any time.
  void LieIdle() {
    is_reused_ = true;
    pool_.idle_.push_back(shared_from_this());
  }

  void Start(HttpCall call, HttpListener& listener) {
    call_ = std::move(call);
    listener_ = &listener;
    deadline_.expires_after(pool_.timeout());
    deadline_.async_wait([self = shared_from_this()](ErrorCode error) {
      if (error || self->listener_ == nullptr) return;
      self->Fail(
          DeadlineExceeded("no complete answer within ", self->pool_.options_.timeout_s, " s"));
    });
    if (is_open_) return Exchange();
    Open([self = shared_from_this()](const Status& status) {
      if (self->listener_ == nullptr) return;  // the time was over before
      if (!status.ok()) return self->Fail(status);
      self->Exchange();
    });
  }

 private:
  void Open(size_t tried, std::function<void(const Status&)> done) {
    const std::vector<tcp::endpoint>& addresses = pool_.addresses_;
    const size_t idx = (pool_.address_idx_ + tried) % addresses.size();
    socket_.async_connect(addresses[idx], [=, self = shared_from_this()](ErrorCode error) {
      if (error && tried + 1 < addresses.size()) {
        ErrorCode ignored;
        self->socket_.close(ignored);
        return self->Open(tried + 1, done);
      }
      if (error) return done(Unavailable(error.message()));
      self->pool_.address_idx_ = idx;
      self->is_open_ = true;
      self->socket_.set_option(tcp::no_delay(true), error);
      done(OkStatus());
    });
  }

  void Exchange() {
    head_ = pool_.Head(call_);
    parser_.emplace(*listener_);
    input_.clear();
    is_written_ = has_answer_ = false;
    const std::array<asio::const_buffer, 2> parts = {asio::buffer(head_), asio::buffer(call_.body)};
    // A failure to write shows in the reading: the server may have answered and closed.
    asio::async_write(socket_, parts, [self = shared_from_this()](ErrorCode error, size_t) {
      self->is_written_ = !error;
    });
    Read();
  }

  void Read() {
    socket_.async_read_some(asio::buffer(buffer_),
                            [self = shared_from_this()](ErrorCode error, size_t num_bytes) {
                              if (self->listener_ == nullptr) return;
                              if (error) return self->OnBroken(error);
                              self->Parse({self->buffer_.data(), num_bytes});
                            });
  }

  void Parse(std::string_view bytes) {
    has_answer_ = true;
    input_ += bytes;
    ErrorCode error;
    size_t used = 0;
    while (used < input_.size() && !error && !parser_->is_done()) {
      used += parser_->put(asio::const_buffer(input_.data() + used, input_.size() - used), error);
    }
    input_.erase(0, used);  // what is cut off is read again, with what follows
    if (error && error != http::error::need_more) {
      return Fail(DataLoss("the answer is not HTTP: ", error.message()));
    }
    parser_->is_done() ? Finish() : Read();
  }

  void OnBroken(ErrorCode error) {
    if (!has_answer_ && is_reused_) return Retry();
    if (has_answer_ && error == asio::error::eof && parser_->is_header_done()) {
      ErrorCode unfinished;
      parser_->put_eof(unfinished);  // an answer without a length ends with the connection
      if (!unfinished) return Finish();
    }
    const bool is_end = error == asio::error::eof;
    Fail(Unavailable("the connection ", is_end ? "was closed by the server" : "broke",
                     has_answer_ ? " in the middle of the answer" : " before any answer",
                     is_end ? "" : StrCat(": ", error.message())));
  }

  // The server closed a connection that lay idle: no call was lost.
  void Retry() {
    HttpListener& listener = *listener_;
    Close();
    pool_.Make()->Start(std::move(call_), listener);
  }

  void Finish() {
    HttpListener& listener = *listener_;
    const bool reusable = is_written_ && parser_->keep_alive() && input_.empty();
    listener_ = nullptr;
    deadline_.cancel();
    if (reusable) {
      LieIdle();
    } else {
      Close();
    }
    listener.OnEnd();
  }

  void Fail(const Status& status) {
    HttpListener& listener = *listener_;
    Close();
    listener.OnFailed(status);
  }

  void Close() {
    listener_ = nullptr;
    deadline_.cancel();
    ErrorCode ignored;
    socket_.close(ignored);
  }

  Impl& pool_;
  tcp::socket socket_;
  asio::steady_timer deadline_;
  bool is_open_ = false, is_reused_ = false;
  HttpCall call_;
  HttpListener* listener_ = nullptr;  // null: no call
  std::string head_, input_;
  std::optional<AnswerParser> parser_;
  bool is_written_ = false, has_answer_ = false;
  std::array<char, kReadBytes> buffer_;
};

Status HttpPool::Impl::Resolve() {
  tcp::resolver resolver(io_);
  ErrorCode error;
  const auto found = resolver.resolve(endpoint_.host, endpoint_.port, error);
  if (error) return Unavailable(endpoint_.url, ": ", endpoint_.host, ": ", error.message());
  for (const auto& entry : found) addresses_.push_back(entry.endpoint());
  return OkStatus();
}

HttpPool::Impl::ConnectionPtr HttpPool::Impl::Make() { return std::make_shared<Connection>(*this); }

Status HttpPool::Impl::Connect(int count) {
  Status failure;
  int num_open = static_cast<int>(idle_.size());
  while (failure.ok() && num_open < count) {
    const int num_wanted = std::min(kConnectsAtOnce, count - num_open);
    for (int i = 0; i < num_wanted; ++i) {
      const ConnectionPtr connection = Make();
      connection->Open([&, connection](const Status& status) {
        if (!status.ok()) {
          failure = status;
          return;
        }
        ++num_open;
        connection->LieIdle();
      });
    }
    Run();
  }
  return failure.ok() ? failure
                      : Annotate(failure, endpoint_.url, ": ", num_open, " of ", count,
                                 " connections stood");
}

std::string HttpPool::Impl::Head(const HttpCall& call) const {
  const bool is_ipv6 = endpoint_.host.find(':') != std::string::npos;
  std::string head = StrCat(
      call.method, " ", endpoint_.path, call.path, " HTTP/1.1\r\nHost: ", is_ipv6 ? "[" : "",
      endpoint_.host, is_ipv6 ? "]" : "", ":", endpoint_.port, "\r\nUser-Agent: deepinfer\r\n");
  for (const auto& [name, value] : options_.headers) head += StrCat(name, ": ", value, "\r\n");
  if (call.method != "GET") {
    head += StrCat("Content-Type: application/json\r\nContent-Length: ", call.body.size(), "\r\n");
  }
  return head + "\r\n";
}

void HttpPool::Impl::Send(HttpCall call, HttpListener& listener) {
  ConnectionPtr connection;
  if (idle_.empty()) {
    connection = Make();
  } else {
    connection = std::move(idle_.back());
    idle_.pop_back();
  }
  connection->Start(std::move(call), listener);
}

void HttpPool::Impl::CallAt(MonotonicTime when, std::function<void()> handler) {
  alarm_.expires_at(std::chrono::steady_clock::time_point(Duration(when.ns)));
  alarm_.async_wait([handler = std::move(handler)](ErrorCode error) {
    if (!error) handler();
  });
}

void HttpPool::Impl::Run() {
  io_.restart();
  io_.run();
}

StatusOr<std::unique_ptr<HttpPool>> HttpPool::Create(HttpEndpoint endpoint,
                                                     HttpPoolOptions options) {
  auto impl = std::make_unique<Impl>(std::move(endpoint), std::move(options));
  DI_RETURN_IF_ERROR(impl->Resolve());
  return std::unique_ptr<HttpPool>(new HttpPool(std::move(impl)));
}

HttpPool::HttpPool(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpPool::~HttpPool() = default;
Status HttpPool::Connect(int count) { return impl_->Connect(count); }
void HttpPool::Send(HttpCall call, HttpListener& listener) {
  impl_->Send(std::move(call), listener);
}
void HttpPool::CallAt(MonotonicTime when, std::function<void()> handler) {
  impl_->CallAt(when, std::move(handler));
}
void HttpPool::Run() { impl_->Run(); }
int64_t HttpPool::num_connections_made() const { return impl_->num_made(); }

}  // namespace deepinfer
