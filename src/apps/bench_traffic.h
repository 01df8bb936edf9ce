// apps/bench_traffic.h: made-up traffic for `bench throughput`: when requests arrive and what they
// ask. Everything follows from a seed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "deepinfer/request.h"

namespace deepinfer {

struct TimedRequest {
  double arrival_s = 0;  // after the start
  Request request;
};

// `count` drawn ids in [3, vocab_size - 1): no control token, not the image's.
std::vector<int32_t> DrawIds(int32_t count, int32_t vocab_size, Rng& rng);

// Exactly `num_tokens` tokens at temperature 0, whatever they are.
Request FixedRequest(std::vector<int32_t> prompt_ids, int32_t num_tokens);

// `count` moments of a Poisson process, ascending; per_s == 0: all at 0.
std::vector<double> PoissonArrivals(int32_t count, double per_s, Rng& rng);

// What a kind of client asks; lengths are uniform in their ranges, in tokens.
struct TrafficMix {
  std::string name;
  int32_t prompt_min = 0, prompt_max = 0;  // of an agent: what a turn adds to its history
  int32_t output_min = 0, output_max = 0;
  int32_t shared_prefix = 0;  // tokens that begin every prompt
  int32_t num_sessions = 0;   // > 0: turns of that many conversations, each with all turns before
};

// "chat": short prompts of strangers. "long": documents. "agent": conversations that grow turn by
// turn behind one common prefix. Empty: no such mix.
std::optional<TrafficMix> FindTrafficMix(std::string_view name);
std::vector<std::string> TrafficMixNames();

struct TrafficOptions {
  int32_t num_requests = 16;
  double requests_per_s = 0;  // 0: all arrive at the start
  int32_t vocab_size = 0;
  int32_t max_tokens = 0;  // of prompt and output; a mix of longer requests is scaled down to it
  uint64_t seed = 1;
};

// Requires: max_tokens >= 64.
std::vector<TimedRequest> MakeTraffic(const TrafficMix& mix, const TrafficOptions& options);

// The smallest value that at least this fraction of all values does not exceed. Requires: values,
// 0 < fraction <= 1.
double Percentile(std::vector<double> values, double fraction);
inline double Median(std::vector<double> values) { return Percentile(std::move(values), 0.5); }

}  // namespace deepinfer
