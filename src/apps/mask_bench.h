// apps/mask_bench.h: what masks of structured output cost those who share an engine with them.
//
// The masks are artificial: they allow everything and take a chosen time, so the figures depend
// neither on a grammar nor on the vocabulary.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/rng.h"
#include "engine/loaded_engine.h"

namespace deepinfer {

inline constexpr double kSlowMaskBenchSeconds = 0.005;     // what large counted repetitions take
inline constexpr double kQuickMaskBenchSeconds = 0.00005;  // the bar for ordinary schemas

struct MaskBenchOptions {
  int32_t num_requests = 32;
  int32_t prompt_tokens = 64, decode_tokens = 128;
  int32_t rounds = 5;
};

// Medians over rounds, in which the cases take turns.
struct MaskFigures {
  int32_t num_requests = 0;
  // Time per output token, mean over all requests but the one whose masks are slow.
  double free_s = 0;                      // without masks
  double slow_s = 0;                      // one request has masks of 5 ms
  double quick_s = 0;                     // all have masks of 50 us
  double slow_request_s = 0;              // of the request with slow masks itself
  int64_t slow_late = 0, quick_late = 0;  // rows that sat a step out, of a round

  double SlowEffect() const { return slow_s / free_s - 1; }
  double QuickEffect() const { return quick_s / free_s - 1; }
};

// Errors: as ServeAtOnce.
StatusOr<MaskFigures> BenchMasks(LoadedEngine& loaded, const MaskBenchOptions& options,
                                 Clock& clock, Rng& rng);

}  // namespace deepinfer
