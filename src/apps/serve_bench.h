// apps/serve_bench.h: `deepinfer bench serve`: load on a server with an OpenAI-shaped API, and what
// its clients saw.
//
// Everything happens on the calling thread, whose own processor time is part of the result.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "apps/command.h"
#include "apps/serve_answer.h"
#include "apps/serve_prompts.h"
#include "apps/serve_traffic.h"

namespace deepinfer {

struct ServeBenchOptions {
  std::string base_url = "http://127.0.0.1:8000";  // with or without /v1 at its end
  std::string endpoint = "/v1/completions";        // or /v1/chat/completions
  std::string api_key;                             // empty: none is sent
  ServeBodyOptions body;                           // model empty: the server's first
  RandomTrafficOptions random;
  std::string trace;  // file; empty: random
  TraceOptions trace_options;

  // Requests go out when they are due (open loop); else when one of max_concurrency is free.
  bool scheduled = false;
  int32_t max_concurrency = 0;  // 0: no limit
  double duration_s = 0;        // after which none is sent any more; 0: until traffic ends
  double timeout_s = 600;       // of a request
  int32_t num_warmups = 0;      // requests before the clock starts, like the first
  int32_t num_connections = 0;  // that stand before the clock starts
  bool keeps_text = false;
  std::function<bool()> is_stopped;  // looked at before each request; null: never
};

struct ServeRun {
  std::string url, model;  // url with the endpoint
  bool scheduled = false, streams = true;
  int32_t max_concurrency = 0;
  std::vector<ServedRequest> requests;  // in the order in which they were sent
  double duration_s = 0;                // until the last answer's end
  int64_t num_connections = 0;
  double generator_cpu_s = 0;  // of this thread, while the clock ran
  MonotonicTime start;
};

// Errors: kUnavailable if nobody answers there; kInvalidArgument for a key or model that the server
// refuses, or a server that does not speak this API; as ReadTrace. Requests that fail during the
// run are no error: they are part of the result.
StatusOr<ServeRun> RunServeLoad(ServeBenchOptions options, const CommandContext& context);

// ---- figures

struct Distribution {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  size_t count = 0;
  double mean = kNone, p50 = kNone, p90 = kNone, p99 = kNone, max = kNone;
};
Distribution DistributionOf(const std::vector<double>& values);

struct ServeFigures {
  std::map<std::string, int64_t> outcomes;  // "200", "429", "200, then failed", "no answer"
  int64_t num_served = 0, num_failed = 0;
  std::string first_error;
  int64_t prompt_tokens = 0, cached_tokens = 0, output_tokens = 0;  // of served requests
  double requests_per_s = 0, output_tokens_per_s = 0;
  // While as many streams ran as ever did: a mean over many waves of requests would count the
  // times in which slots were empty.
  int32_t peak_streams = 0;
  double peak_s = 0, peak_tokens_per_s = Distribution::kNone;
  Distribution ttft_s, tpot_s, gap_s, latency_s;  // gap: between pieces of one stream
  Distribution late_s;                            // sent after due; open loop only
  double generator_share = 0;                     // of one processor
};
ServeFigures FiguresOf(const ServeRun& run);

std::string ServeTable(const ServeRun& run, const ServeFigures& figures);
std::string ServeJson(const ServeRun& run, const ServeFigures& figures);
// One JSON line a request, its times in seconds since the start, in the order of sending.
std::string ServeDetails(const ServeRun& run);
// An SVG file: distributions of the latencies, and tokens/s and streams over time.
std::string ServePlot(const ServeRun& run);

}  // namespace deepinfer
