#include "request/http_server.h"

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "request/http_connection.h"
#include "request/http_text.h"

namespace deepinfer {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// Above max_connections, so many may wait to be told.
constexpr size_t kMostRefusals = 64;
constexpr Duration kAcceptPause = std::chrono::milliseconds(100);
constexpr int kBacklog = 1024;

// How often time limits are looked at: a tenth of the smallest.
Duration CheckPeriod(const HttpServerOptions& options) {
  const Duration least = std::min(
      {options.header_timeout, options.body_timeout, options.idle_timeout, options.write_timeout});
  return std::clamp<Duration>(least / 10, std::chrono::milliseconds(10), std::chrono::seconds(1));
}

Status AddressError(const HttpServerOptions& options, const error_code& error) {
  const std::string where = StrCat(options.host, " port ", options.port);
  if (error == asio::error::address_in_use) {
    return FailedPrecondition(where, ": is in use by another program; choose another --port");
  }
  if (error == asio::error::access_denied) {
    return FailedPrecondition(where, ": not allowed for this user; choose a --port above 1023");
  }
  return FailedPrecondition(where, ": ", error.message());
}

}  // namespace

// Lives until its last connection and pending wait have gone.
class HttpServer::Core : public HttpConnectionHost, public std::enable_shared_from_this<Core> {
 public:
  Core(EventLoop& loop, Rng& rng, const HttpServerOptions& server_options, HttpHandler to,
       HttpHeadCheck check)
      : loop_(loop), acceptor_(loop.context()), id_prefix_(rng.NextU64()) {
    options = server_options;
    handler = std::move(to);
    check_head = std::move(check);
    clock = &RealClock();
  }

  Status Bind() {
    error_code error;
    tcp::resolver resolver(loop_.context());
    const auto found =
        resolver.resolve(options.host, std::to_string(options.port), tcp::resolver::passive, error);
    if (error || found.empty()) {
      return InvalidArgument("--host: found \"", options.host,
                             "\", expected a name or an address of this machine (", error.message(),
                             ")");
    }
    const tcp::endpoint endpoint = *found.begin();
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(kBacklog, error);
    if (!error) endpoint_ = acceptor_.local_endpoint(error);
    if (error) return AddressError(options, error);
    return OkStatus();
  }

  void Start() {
    Accept();
    CheckTimes();
  }

  int32_t port() const { return endpoint_.port(); }
  std::string url() const {
    const std::string name =
        options.host.find(':') == std::string::npos ? options.host : StrCat("[", options.host, "]");
    return StrCat("http://", name, ":", port());
  }

  void Drain(std::function<void()> drained) {
    draining = true;
    drained_ = std::move(drained);
    StopAccepting();
    TellDrained();
  }

  void Close() {
    StopAccepting();
    drained_ = nullptr;
    check_timer_.reset();
    accept_timer_.reset();
    closed_ = true;
    const auto all = Connections();
    for (const auto& connection : all) connection->Close();
  }

  HttpServerStats Stats() const {
    HttpServerStats now = stats;
    now.connections = std::ssize(connections_);
    return now;
  }

  // ---- for connections
  void OnEnd(HttpConnection& connection) override { connections_.erase(&connection); }

  void OnAnswering(int change) override {
    stats.answering += change;
    if (draining) TellDrained();
  }

  void FlushSoon(std::shared_ptr<HttpConnection> connection) override {
    unsent_.push_back(std::move(connection));
    if (unsent_.size() == 1)
      asio::post(loop_.context(), [self = shared_from_this()] { self->FlushAll(); });
  }

  std::string NextRequestId() override {
    constexpr char kHex[] = "0123456789abcdef";
    std::string id = "req_";
    for (int shift = 60; shift >= 32; shift -= 4) id += kHex[(id_prefix_ >> shift) & 15];
    const uint64_t count = next_request_++;
    for (int shift = 44; shift >= 0; shift -= 4) id += kHex[(count >> shift) & 15];
    return id;
  }

  const std::string& DateHeader() override {
    const WallTime now = clock->Wall();
    if (const int64_t second = now.ns / 1'000'000'000; second != date_second_) {
      date_second_ = second;
      date_header_ = StrCat("Date: ", HttpDate(now), "\r\n");
    }
    return date_header_;
  }

 private:
  std::vector<std::shared_ptr<HttpConnection>> Connections() const {
    std::vector<std::shared_ptr<HttpConnection>> all;
    for (HttpConnection* connection : connections_) all.push_back(connection->shared_from_this());
    return all;
  }

  void Accept() {
    if (!acceptor_.is_open()) return;
    acceptor_.async_accept(
        [self = shared_from_this()](const error_code& error, tcp::socket socket) {
          self->OnAccept(error, std::move(socket));
        });
  }

  void OnAccept(const error_code& error, tcp::socket socket) {
    if (!acceptor_.is_open()) return;
    if (!error) {
      ++stats.accepted;
      const auto most = static_cast<size_t>(options.max_connections);
      auto connection = std::make_shared<HttpConnection>(std::move(socket), shared_from_this(),
                                                         connections_.size() >= most);
      connections_.insert(connection.get());
      connection->Start();
      if (connections_.size() < most + kMostRefusals) return Accept();
    } else if (error != asio::error::connection_aborted) {
      LogWarning("accepting connections pauses: ", error.message());
    }
    accept_timer_ = loop_.RunAfter(kAcceptPause, [this] { AcceptAgain(); });
  }

  void AcceptAgain() {
    if (connections_.size() < static_cast<size_t>(options.max_connections) + kMostRefusals) {
      return Accept();
    }
    accept_timer_ = loop_.RunAfter(kAcceptPause, [this] { AcceptAgain(); });
  }

  void StopAccepting() {
    error_code ignored;
    acceptor_.close(ignored);
  }

  void CheckTimes() {
    const MonotonicTime now = clock->Now();
    for (const auto& connection : Connections()) connection->CheckTime(now);
    check_timer_ = loop_.RunAfter(CheckPeriod(options), [this] { CheckTimes(); });
  }

  void FlushAll() {
    const auto unsent = std::exchange(unsent_, {});
    for (const auto& connection : unsent) connection->Flush();
  }

  // Not at once: the last answer is still to be sent.
  void TellDrained() {
    if (stats.answering > 0 || !drained_) return;
    asio::post(loop_.context(), [self = shared_from_this()] {
      if (self->stats.answering > 0 || !self->drained_) return;
      for (const auto& connection : self->Connections()) connection->CloseIfIdle();
      std::exchange(self->drained_, nullptr)();
    });
  }

  EventLoop& loop_;
  tcp::acceptor acceptor_;
  tcp::endpoint endpoint_;
  const uint64_t id_prefix_;
  uint64_t next_request_ = 0;
  std::unordered_set<HttpConnection*> connections_;
  std::vector<std::shared_ptr<HttpConnection>> unsent_;
  std::unique_ptr<Timer> check_timer_, accept_timer_;
  std::function<void()> drained_;
  int64_t date_second_ = -1;
  std::string date_header_;
  bool closed_ = false;
};

HttpServer::HttpServer(std::shared_ptr<Core> core) : core_(std::move(core)) {}

HttpServer::~HttpServer() { core_->Close(); }

StatusOr<std::unique_ptr<HttpServer>> HttpServer::Listen(EventLoop& loop, Rng& rng,
                                                         const HttpServerOptions& options,
                                                         HttpHandler handler,
                                                         HttpHeadCheck check_head) {
  auto core = std::make_shared<Core>(loop, rng, options, std::move(handler), std::move(check_head));
  DI_RETURN_IF_ERROR(core->Bind());
  core->Start();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(core)));
}

int32_t HttpServer::port() const { return core_->port(); }
std::string HttpServer::url() const { return core_->url(); }
HttpServerStats HttpServer::stats() const { return core_->Stats(); }
void HttpServer::Drain(std::function<void()> drained) { core_->Drain(std::move(drained)); }
void HttpServer::Close() { core_->Close(); }

}  // namespace deepinfer
