// apps/request_bench.h: how fast an engine answers one request of token ids that nothing disturbs.
#pragma once

#include <cstdint>
#include <string>

#include "apps/command.h"
#include "apps/engine_flags.h"

namespace deepinfer {

struct RequestBenchOptions {
  int32_t prompt_tokens = 128;
  int32_t decode_tokens = 32;
  int32_t num_runs = 2;  // after one that does not count
};

struct RequestBench {
  std::string isa;
  int num_threads = 0;
  int32_t prompt_tokens = 0, decode_tokens = 0;
  // Of the best runs. Prefill ends with the first token, of which decode takes no part.
  double prefill_seconds = 0, decode_seconds = 0;

  double PrefillTokensPerSecond() const { return prompt_tokens / prefill_seconds; }
  double DecodeTokensPerSecond() const { return decode_tokens / decode_seconds; }
};

// Drawn ids, decode_tokens + 1 tokens at temperature 0 whatever they are.
// Errors: as LoadWithProgress and Engine::Submit.
StatusOr<RequestBench> BenchRequest(const EngineFlags& flags, const RequestBenchOptions& options,
                                    const CommandContext& context);

std::string RequestTable(const RequestBench& bench);
std::string RequestJson(const RequestBench& bench);

}  // namespace deepinfer
