// request/server.h: the whole HTTP front: port, keys, limits, probes, metrics, logs; and the routes
// of the API and the page, which are added by whoever builds it.
//
//   GET /health   200 as long as the server's thread answers
//   GET /ready    503 while the model loads, while the server drains, and while the engine runs
//                 requests and no step has ended for stall_timeout
//   GET /metrics  Prometheus' text format
//   GET /stats    the same for people and for the page, JSON
//   GET /version
//
// Threads: the event loop's.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/rng.h"
#include "base/status.h"
#include "request/api_error.h"
#include "request/api_keys.h"
#include "request/cors.h"
#include "request/engine_client.h"
#include "request/event_loop.h"
#include "request/exchange.h"
#include "request/http_server.h"
#include "request/metrics.h"
#include "request/router.h"
#include "request/tenant_limits.h"

namespace deepinfer {

struct ServerOptions {
  HttpServerOptions http;
  ApiKeys keys;
  TenantLimitOptions limits;
  std::vector<std::string> cors_origins;
  bool access_log = true;
  Duration stall_timeout = std::chrono::seconds(10);
  std::string version;
};

class Server {
 public:
  enum class State { kLoading, kReady, kStalled, kDraining };

  // The port is bound and probes are answered; everything unknown is 503 until SetEngine().
  // loop, clock and rng outlive the server. Errors: as HttpServer::Listen.
  static StatusOr<std::unique_ptr<Server>> Listen(EventLoop& loop, Clock& clock, Rng& rng,
                                                  ServerOptions options);
  ~Server();

  Router& router() { return router_; }
  std::string url() const { return http_->url(); }

  // The model is there; null: it has gone. `engine` stays until the next call, or the server's end.
  void SetEngine(EngineClient* engine) { engine_ = engine; }
  // Accepts nobody and starts nothing any more; `drained` runs once all answers are complete.
  void Drain(std::function<void()> drained);
  // Ends every connection; their requests are cancelled.
  void Close() { http_->Close(); }

  State state() const;

 private:
  Server(Clock& clock, ServerOptions options);

  void Handle(HttpRequest request, std::shared_ptr<HttpReply> reply);
  // Why a request is refused whatever its body: key, state, load. Before a long body is read, and
  // in Admit() for all others.
  std::optional<HttpResponse> WhyNotRead(const HttpRequest& head);
  void Admit(RouteAccess access, HttpRequest request, std::shared_ptr<HttpReply> reply,
             const HttpHandler& handler);
  std::optional<ApiError> WhyNotNow();
  std::optional<ApiError> WhyNot(TenantLimits::Answer answer, const std::string& tenant) const;
  void OnEnd(const ExchangeFacts& facts);
  void AddRoutes();
  HttpResponse Ready() const;
  HttpResponse Stats();
  MetricsContext Context() const;

  Clock& clock_;
  const ServerOptions options_;
  const Cors cors_;
  const MonotonicTime start_;
  TenantLimits limits_;
  Router router_;
  Metrics metrics_;
  ExchangeListener listener_;
  EngineClient* engine_ = nullptr;
  bool draining_ = false;
  std::unique_ptr<HttpServer> http_;
};

std::string_view StateName(Server::State state);  // "loading", ...

}  // namespace deepinfer
