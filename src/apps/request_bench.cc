#include "apps/request_bench.h"

#include <algorithm>
#include <cstdio>
#include <limits>

#include "apps/answer_collector.h"
#include "base/cpu_topology.h"
#include "kernels/backend.h"
#include "tokens/json.h"

namespace deepinfer {
namespace {

// Ids that are neither special nor the image's, the same in every run.
std::vector<int32_t> DrawIds(int32_t count, int32_t vocab_size) {
  constexpr int32_t kFirst = 3;
  std::vector<int32_t> ids;
  uint32_t state = 1;
  for (int32_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    const auto span = static_cast<uint32_t>(std::max(1, vocab_size - 1 - kFirst));
    ids.push_back(kFirst + static_cast<int32_t>((state >> 8) % span));
  }
  return ids;
}

struct Times {
  double prefill = 0, decode = 0;
};

StatusOr<Times> TimeRequest(EngineCore& core, Clock& clock, const std::vector<int32_t>& ids,
                            int32_t decode_tokens) {
  Request request{.prompt_ids = ids, .max_tokens = decode_tokens + 1, .seed = 1};
  request.sampling.temperature = 0;
  request.sampling.ignore_eos = true;
  const MonotonicTime start = clock.Now();
  MonotonicTime first = start;
  DI_RETURN_IF_ERROR(core.Submit(std::move(request)).status());
  for (int32_t tokens = 0; core.HasWork();) {
    for (const Event& event : core.Step()) {
      if (const auto* failure = std::get_if<FailureEvent>(&event)) {
        return Internal(failure->error.message);
      }
      const auto* some = std::get_if<TokensEvent>(&event);
      if (some == nullptr) continue;
      if (tokens == 0) first = clock.Now();
      tokens += static_cast<int32_t>(some->ids.size());
    }
  }
  return Times{Seconds(first - start), Seconds(clock.Now() - first)};
}

}  // namespace

StatusOr<RequestBench> BenchRequest(const EngineFlags& flags, const RequestBenchOptions& options,
                                    const CommandContext& context) {
  DI_ASSIGN_OR_RETURN(const VariantId variant, ChooseVariant(flags.engine.variant));
  DI_ASSIGN_OR_RETURN(const std::unique_ptr<LoadedEngine> engine, LoadWithProgress(flags, context));
  RequestBench bench{
      .isa = VariantNames()[static_cast<size_t>(variant)],
      .num_threads = flags.engine.num_threads > 0 ? flags.engine.num_threads : DefaultNumThreads(),
      .prompt_tokens = options.prompt_tokens,
      .decode_tokens = options.decode_tokens,
      .prefill_seconds = std::numeric_limits<double>::infinity(),
      .decode_seconds = std::numeric_limits<double>::infinity()};
  const std::vector<int32_t> ids = DrawIds(options.prompt_tokens, engine->info().vocab_size);
  for (int32_t run = 0; run <= options.num_runs; ++run) {
    DI_ASSIGN_OR_RETURN(const Times times,
                        TimeRequest(engine->core(), context.clock, ids, options.decode_tokens));
    if (run == 0) continue;
    bench.prefill_seconds = std::min(bench.prefill_seconds, times.prefill);
    bench.decode_seconds = std::min(bench.decode_seconds, times.decode);
  }
  return bench;
}

std::string RequestTable(const RequestBench& bench) {
  char text[200];
  std::snprintf(text, sizeof text,
                "%s, %d threads\nprefill of %d: %.1f tokens/s\ndecode of %d: %.1f tokens/s\n",
                bench.isa.c_str(), bench.num_threads, bench.prompt_tokens,
                bench.PrefillTokensPerSecond(), bench.decode_tokens, bench.DecodeTokensPerSecond());
  return text;
}

std::string RequestJson(const RequestBench& bench) {
  JsonValue out = JsonValue::Object();
  out.Set("isa", JsonValue::String(bench.isa));
  out.Set("threads", JsonNumber(int64_t{bench.num_threads}));
  out.Set("prompt_tokens", JsonNumber(int64_t{bench.prompt_tokens}));
  out.Set("prefill_tokens_per_s", JsonNumber(bench.PrefillTokensPerSecond()));
  out.Set("decode_tokens", JsonNumber(int64_t{bench.decode_tokens}));
  out.Set("decode_tokens_per_s", JsonNumber(bench.DecodeTokensPerSecond()));
  return DumpJson(out) + "\n";
}

}  // namespace deepinfer
