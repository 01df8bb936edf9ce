// apps/throughput_bench.h: how fast an engine serves, in process: one request beside the bare
// passes, many together beside the processor's ceiling, prefix hits, and traffic at several rates.
//
// Parts, in the order in which they run:
//   single  one request; the share of its time per token that the model's own pass takes
//   batch   many requests together; useful multiplications beside the dot-product ceiling
//   plan    planning while many short requests decode and cross page ends in the same step
//   masks   one request whose masks take 5 ms among others, and all with masks of 50 us
//   hits    the same prompt twice, and cold prompts, in exact and bounded replay side by side
//   load    traffic mixes at Poisson arrival rates
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "apps/command.h"
#include "apps/engine_flags.h"
#include "apps/mask_bench.h"
#include "apps/token_work.h"
#include "kernels/benchmark/ceilings.h"

namespace deepinfer {

struct ThroughputOptions {
  std::vector<std::string> parts;                   // empty: all
  int32_t prompt_tokens = 128, decode_tokens = 32;  // of single and batch
  int32_t batch_requests = 32;
  int32_t plan_requests = 256;
  int32_t hit_prompt_tokens = 4100, cold_prompt_tokens = 8192;  // at most what the model allows
  std::vector<std::string> mixes;                               // of load; empty: all
  std::vector<std::string> rates;  // requests/s; empty: parts of what the mix reaches at once
  int32_t load_requests = 16;      // of each mix and rate
  uint64_t seed = 1;

  bool Runs(const std::string& part) const;
};

inline constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

struct SingleFigures {
  int32_t prompt_tokens = 0, decode_tokens = 0;
  // Medians over all decoded tokens. Bare: Model::Forward of the same rows at the same positions,
  // without scheduler, sampler and events; taken in turns with the engine.
  double engine_token_s = kNotMeasured, bare_step_s = kNotMeasured;
  TokenWork work;
  double read_fraction = kNotMeasured;  // of the bare step; above 1 where weights fit into a cache

  double TokensPerSecond() const { return 1 / engine_token_s; }
  double StepFraction() const { return bare_step_s / engine_token_s; }
};

struct BatchFigures {
  int32_t num_requests = 0;
  double step_s = kNotMeasured;  // median of those in which all decode
  double dot_fraction = kNotMeasured;
  double TokensPerSecond() const { return num_requests / step_s; }
};

// Over steps in which all decode.
struct PlanFigures {
  int32_t num_requests = 0, num_steps = 0;
  double us_p50 = kNotMeasured, us_p99 = kNotMeasured;
};

struct HitFigures {
  int32_t prompt_tokens = 0, cached_tokens = 0;
  double first_s = kNotMeasured, second_s = kNotMeasured;  // medians
  double Ratio() const { return second_s / first_s; }
};

// Cold prompts: what bounded replay saves of exact prefill.
struct SavingFigures {
  int32_t prompt_tokens = 0;
  double exact_s = kNotMeasured, bounded_s = kNotMeasured;  // medians
  double decoder_share = kNotMeasured;  // of the exact passes' time, in layers of the decoder half
  double Saved() const { return 1 - bounded_s / exact_s; }
};

struct Percentiles {
  double p50 = kNotMeasured, p90 = kNotMeasured, p99 = kNotMeasured;
};

struct LoadFigures {
  std::string mix;
  double requests_per_s = 0;  // 0: all arrived at once
  int32_t num_requests = 0;
  double tokens_per_s = kNotMeasured;  // output
  double served_per_s = kNotMeasured;  // requests
  double hit_rate = kNotMeasured;
  Percentiles ttft_s, tpot_s, plan_us;
  int64_t plans_in_time = 0, plans_late = 0;
};

struct ThroughputBench {
  std::string model, isa;
  int num_threads = 0;
  Ceilings ceilings;
  SingleFigures single;
  BatchFigures batch;
  PlanFigures plan;
  MaskFigures masks;
  HitFigures exact_hit, bounded_hit;
  SavingFigures saving;
  std::vector<LoadFigures> load;  // by mix, then rate; the first of a mix all at once
  // Of batch, plan and load: plans made while the step before ran, and after it.
  int64_t plans_in_time = 0, plans_late = 0;

  double PlanLateFraction() const {
    return static_cast<double>(plans_late) / static_cast<double>(plans_in_time + plans_late);
  }
};

// Errors: as LoadWithProgress; kInvalidArgument for a rate that is no number above 0, or a model
// too short for a part; kInternal for a request that failed.
StatusOr<ThroughputBench> BenchThroughput(EngineFlags flags, const ThroughputOptions& options,
                                          const CommandContext& context);

}  // namespace deepinfer
