// request/metrics.h: what /metrics and /stats tell: of requests, gathered here; of the engine, from
// its snapshot.
//
// Names and meanings: docs/serving.md. The metrics library stays behind metrics.cc. Never sees
// text. Threads: the server's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "request/engine_client.h"
#include "request/exchange.h"
#include "request/http_server.h"
#include "request/recent_values.h"

namespace deepinfer {

// Ended inference requests, by outcome.
struct RequestCounts {
  int64_t ok = 0;
  int64_t failed = 0;     // 500, or an error after the headers
  int64_t cancelled = 0;  // the client went
  int64_t rejected = 0;   // 4xx and 503: refused before they ran
};

// What stands beside the requests when somebody looks.
struct MetricsContext {
  EngineSnapshot engine;
  HttpServerStats http;
  std::string model, version;
  std::string_view state;  // "ready", "loading", "stalled", "draining"
  double server_cpu_seconds = 0;
};

class Metrics {
 public:
  Metrics();
  ~Metrics();

  void OnFirstToken(const ExchangeFacts& facts);
  void OnEnd(const ExchangeFacts& facts);

  // Prometheus' text format.
  std::string Text(const MetricsContext& context) const;

  const RequestCounts& counts() const { return counts_; }
  // Over the last minute, seconds.
  RecentValues& recent_ttft() { return ttft_; }
  RecentValues& recent_tpot() { return tpot_; }
  RecentValues& recent_e2e() { return e2e_; }

 private:
  struct Families;

  RequestCounts counts_;
  RecentValues ttft_, tpot_, e2e_;
  std::unique_ptr<Families> families_;
};

}  // namespace deepinfer
