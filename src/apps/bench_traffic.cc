#include "apps/bench_traffic.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace deepinfer {
namespace {

constexpr int32_t kFirstId = 3;
// Turns after which a conversation ends and another begins in its place.
constexpr int32_t kMaxTurns = 6;

const std::vector<TrafficMix>& Mixes() {
  static const std::vector<TrafficMix> mixes = {
      {.name = "chat", .prompt_min = 64, .prompt_max = 512, .output_min = 32, .output_max = 128},
      {.name = "long", .prompt_min = 2048, .prompt_max = 3968, .output_min = 16, .output_max = 64},
      {.name = "agent",
       .prompt_min = 64,
       .prompt_max = 256,
       .output_min = 16,
       .output_max = 64,
       .shared_prefix = 1024,
       .num_sessions = 4}};
  return mixes;
}

int32_t LongestRequest(const TrafficMix& mix) {
  const int32_t turns = mix.num_sessions > 0 ? kMaxTurns : 1;
  return mix.shared_prefix + turns * mix.prompt_max + mix.output_max;
}

TrafficMix ScaledTo(TrafficMix mix, int32_t max_tokens) {
  CHECK_GE(max_tokens, 64);
  // Rounding up may add a token to each of up to eight lengths.
  const double scale = std::min(1.0, static_cast<double>(max_tokens - 8) / LongestRequest(mix));
  if (scale == 1.0) return mix;
  for (int32_t* length :
       {&mix.prompt_min, &mix.prompt_max, &mix.output_min, &mix.output_max, &mix.shared_prefix}) {
    *length = static_cast<int32_t>(std::ceil(scale * *length));
  }
  return mix;
}

int32_t Between(int32_t least, int32_t most, Rng& rng) {
  return least + static_cast<int32_t>(rng.Uniform(static_cast<uint64_t>(most - least + 1)));
}

struct Session {
  std::vector<int32_t> history;
  int32_t num_turns = 0;
};

}  // namespace

std::vector<int32_t> DrawIds(int32_t count, int32_t vocab_size, Rng& rng) {
  const auto span = static_cast<uint64_t>(std::max(1, vocab_size - 1 - kFirstId));
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (int32_t& id : ids) id = kFirstId + static_cast<int32_t>(rng.Uniform(span));
  return ids;
}

Request FixedRequest(std::vector<int32_t> prompt_ids, int32_t num_tokens) {
  Request request{.prompt_ids = std::move(prompt_ids), .max_tokens = num_tokens, .seed = 1};
  request.sampling.temperature = 0;
  request.sampling.ignore_eos = true;
  return request;
}

std::vector<double> PoissonArrivals(int32_t count, double per_s, Rng& rng) {
  std::vector<double> arrivals(static_cast<size_t>(count), 0.0);
  if (per_s == 0) return arrivals;
  double now = 0;
  for (double& arrival : arrivals) {
    now -= std::log(1 - rng.UniformDouble()) / per_s;
    arrival = now;
  }
  return arrivals;
}

std::optional<TrafficMix> FindTrafficMix(std::string_view name) {
  for (const TrafficMix& mix : Mixes()) {
    if (mix.name == name) return mix;
  }
  return std::nullopt;
}

std::vector<std::string> TrafficMixNames() {
  std::vector<std::string> names;
  for (const TrafficMix& mix : Mixes()) names.push_back(mix.name);
  return names;
}

std::vector<TimedRequest> MakeTraffic(const TrafficMix& wanted, const TrafficOptions& options) {
  const TrafficMix mix = ScaledTo(wanted, options.max_tokens);
  SeededRng rng(options.seed);
  const std::vector<int32_t> prefix = DrawIds(mix.shared_prefix, options.vocab_size, rng);
  std::vector<Session> sessions(static_cast<size_t>(mix.num_sessions));
  std::vector<TimedRequest> traffic;
  for (const double arrival : PoissonArrivals(options.num_requests, options.requests_per_s, rng)) {
    Session fresh;
    Session& session = sessions.empty() ? fresh : sessions[traffic.size() % sessions.size()];
    if (session.num_turns++ % kMaxTurns == 0) session.history = prefix;
    const std::vector<int32_t> turn =
        DrawIds(Between(mix.prompt_min, mix.prompt_max, rng), options.vocab_size, rng);
    session.history.insert(session.history.end(), turn.begin(), turn.end());
    traffic.push_back(
        {.arrival_s = arrival,
         .request = FixedRequest(session.history, Between(mix.output_min, mix.output_max, rng))});
  }
  return traffic;
}

double Percentile(std::vector<double> values, double fraction) {
  CHECK(!values.empty());
  const auto rank = static_cast<int64_t>(std::ceil(fraction * static_cast<double>(values.size())));
  const auto at = values.begin() + std::clamp<int64_t>(rank - 1, 0, std::ssize(values) - 1);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace deepinfer
