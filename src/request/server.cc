#include "request/server.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/cpu_time.h"
#include "base/log.h"
#include "request/access_log.h"
#include "request/api_error.h"
#include "request/stats_json.h"
#include "tokens/json.h"

namespace deepinfer {
namespace {

constexpr int kLoadingRetryS = 5;
constexpr int kStalledRetryS = 10;
constexpr int kMostRetryS = 60;

ApiError Overloaded(std::string message, int retry_after_s) {
  ApiError error = MakeApiError(ApiErrorKind::kOverloaded, std::move(message));
  error.retry_after_s = retry_after_s;
  return error;
}

HttpResponse NoSuchKey(bool is_empty) {
  HttpResponse response = ErrorResponse(MakeApiError(
      ApiErrorKind::kApiKey, is_empty ? "no API key: send it as \"Authorization: Bearer KEY\""
                                      : "this API key is not known here"));
  response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

// Answers always, so that a prober sees what a person would.
HttpHandler Answering(std::function<HttpResponse()> make) {
  return [make = std::move(make)](const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
    reply->Send(make());
  };
}

}  // namespace

std::string_view StateName(Server::State state) {
  switch (state) {
    case Server::State::kLoading:
      return "loading";
    case Server::State::kReady:
      return "ready";
    case Server::State::kStalled:
      return "stalled";
    case Server::State::kDraining:
      return "draining";
  }
  return "";
}

Server::Server(Clock& clock, ServerOptions options)
    : clock_(clock),
      options_(std::move(options)),
      cors_(options_.cors_origins),
      start_(clock.Now()),
      limits_(options_.limits) {
  listener_.on_ready = [this](const ExchangeFacts& facts) {
    if (facts.counted) limits_.Start(facts.tenant);
  };
  listener_.on_first_token = [this](const ExchangeFacts& facts) { metrics_.OnFirstToken(facts); };
  listener_.on_end = [this](const ExchangeFacts& facts) { OnEnd(facts); };
  router_.SetGate([this](RouteAccess access, HttpRequest request, std::shared_ptr<HttpReply> reply,
                         const HttpHandler& handler) {
    Admit(access, std::move(request), std::move(reply), handler);
  });
  router_.SetMissing([this](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
    reply->Send(ErrorResponse(
        engine_ == nullptr ? Overloaded("the model is still being loaded", kLoadingRetryS)
                           : MakeApiError(ApiErrorKind::kPathNotFound,
                                          StrCat("there is nothing at ", request.path,
                                                 "; GET /openapi.json lists what there is"))));
  });
  AddRoutes();
}

Server::~Server() = default;

StatusOr<std::unique_ptr<Server>> Server::Listen(EventLoop& loop, Clock& clock, Rng& rng,
                                                 ServerOptions options) {
  std::unique_ptr<Server> server(new Server(clock, std::move(options)));
  const auto handle = [raw = server.get()](HttpRequest request, std::shared_ptr<HttpReply> reply) {
    raw->Handle(std::move(request), std::move(reply));
  };
  const auto check = [raw = server.get()](const HttpRequest& head) {
    return raw->WhyNotRead(head);
  };
  DI_ASSIGN_OR_RETURN(server->http_,
                      HttpServer::Listen(loop, rng, server->options_.http, handle, check));
  return server;
}

Server::State Server::state() const {
  if (draining_) return State::kDraining;
  if (engine_ == nullptr) return State::kLoading;
  const double most = Seconds(options_.stall_timeout);
  return engine_->Snapshot().seconds_since_step > most ? State::kStalled : State::kReady;
}

void Server::Drain(std::function<void()> drained) {
  draining_ = true;
  http_->Drain(std::move(drained));
}

// ---- every request

void Server::Handle(HttpRequest request, std::shared_ptr<HttpReply> reply) {
  auto exchange = std::make_shared<Exchange>(request, std::move(reply), cors_.HeadersFor(request),
                                             listener_, clock_);
  request.observer = exchange;
  if (Cors::IsPreflight(request)) return exchange->Send(Cors::PreflightAnswer(request));
  router_.Handle(std::move(request), std::move(exchange));
}

std::optional<HttpResponse> Server::WhyNotRead(const HttpRequest& head) {
  const RouteAccess access = router_.AccessOf(head).value_or(RouteAccess::kOpen);
  if (access == RouteAccess::kOpen) return std::nullopt;
  const std::string_view key = KeyOf(head);
  if (!options_.keys.TenantOf(key)) return NoSuchKey(key.empty());
  const auto refusal = access == RouteAccess::kInference ? WhyNotNow() : std::nullopt;
  return refusal ? std::optional(ErrorResponse(*refusal)) : std::nullopt;
}

// `reply` is the Exchange of Handle().
void Server::Admit(RouteAccess access, HttpRequest request, std::shared_ptr<HttpReply> reply,
                   const HttpHandler& handler) {
  if (access == RouteAccess::kOpen) return handler(std::move(request), std::move(reply));
  ExchangeFacts& facts = static_cast<Exchange&>(*reply).facts();
  facts.inference = access == RouteAccess::kInference;
  request.tenant = facts.tenant = options_.keys.TenantOf(KeyOf(request)).value_or("");
  if (!request.refusal) request.refusal = WhyNotRead(request);
  if (request.refusal) return reply->Send(*std::move(request.refusal));
  if (facts.inference) {
    if (auto refusal = WhyNot(limits_.Enter(facts.tenant), facts.tenant)) {
      return reply->Send(ErrorResponse(*refusal));
    }
    facts.counted = true;
  }
  handler(std::move(request), std::move(reply));
}

// Whatever the client. Before any work on the request.
std::optional<ApiError> Server::WhyNotNow() {
  switch (state()) {
    case State::kLoading:
      return Overloaded("the model is still being loaded", kLoadingRetryS);
    case State::kDraining:
      return Overloaded("this server is about to end", 1);
    case State::kStalled:
      return Overloaded("the engine has not ended a step for too long", kStalledRetryS);
    case State::kReady:
      break;
  }
  const EngineSnapshot now = engine_->Snapshot();
  if (now.num_waiting < now.max_waiting) return std::nullopt;
  const auto e2e = metrics_.recent_e2e().At(clock_.Now());
  const int seconds = std::clamp(static_cast<int>(e2e ? std::ceil(e2e->p50) : 1), 1, kMostRetryS);
  return Overloaded(
      StrCat(now.num_waiting, " answers wait already, as many as may (--max-waiting)"), seconds);
}

std::optional<ApiError> Server::WhyNot(TenantLimits::Answer answer,
                                       const std::string& tenant) const {
  if (answer == TenantLimits::Answer::kYes) return std::nullopt;
  const bool running = answer == TenantLimits::Answer::kTooManyRunning;
  const TenantLimitOptions& limits = limits_.options();
  return MakeApiError(
      ApiErrorKind::kRateLimit,
      StrCat(tenant.empty() ? "" : StrCat("tenant ", tenant, ": "),
             running ? limits.max_running : limits.max_waiting,
             running ? " requests are under way already, as many as a client may have"
                     : " requests wait already, as many as a client may have"));
}

void Server::OnEnd(const ExchangeFacts& facts) {
  if (facts.counted) limits_.Leave(facts.tenant, facts.ready.has_value());
  metrics_.OnEnd(facts);
  if (options_.access_log) LogAccess(facts);
}

// ---- the server's own routes

void Server::AddRoutes() {
  router_.Add("GET", "/health", RouteAccess::kOpen, Answering([this] {
                return HttpResponse{
                    .body = StrCat(R"({"status":"ok","state":")", StateName(state()), "\"}")};
              }));
  router_.Add("GET", "/ready", RouteAccess::kOpen, Answering([this] { return Ready(); }));
  router_.Add("GET", "/version", RouteAccess::kOpen, Answering([this] {
                std::string body = R"({"version":)";
                AppendJsonString(options_.version, body);
                return HttpResponse{.body = body + "}"};
              }));
  router_.Add("GET", "/metrics", RouteAccess::kKey, Answering([this] {
                return HttpResponse{.content_type = "text/plain; version=0.0.4; charset=utf-8",
                                    .body = metrics_.Text(Context())};
              }));
  router_.Add("GET", "/stats", RouteAccess::kKey, Answering([this] { return Stats(); }));
}

HttpResponse Server::Ready() const {
  const State now = state();
  HttpResponse response{.body = StrCat(R"({"status":")", StateName(now), "\"}")};
  if (now == State::kReady) return response;
  response.status = 503;
  response.headers.emplace_back("Retry-After", "1");
  return response;
}

MetricsContext Server::Context() const {
  MetricsContext context{.http = http_->stats(),
                         .version = options_.version,
                         .state = StateName(state()),
                         .server_cpu_seconds = ThreadCpuSeconds()};
  if (engine_ == nullptr) return context;
  context.engine = engine_->Snapshot();
  context.model = engine_->model().names.front();
  return context;
}

HttpResponse Server::Stats() {
  HttpResponse response{.body =
                            StatsJson(Context(), metrics_,
                                      {.wall_seconds = 1e-9 * static_cast<double>(clock_.Wall().ns),
                                       .uptime_seconds = Seconds(clock_.Now() - start_),
                                       .now = clock_.Now()})};
  response.headers.emplace_back("Cache-Control", "no-store");
  return response;
}

}  // namespace deepinfer
