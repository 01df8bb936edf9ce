// schedule/testing/small_case.h: a scheduler of 8 sequences over 64 pages, and requests of made-up
// tokens for it.
#pragma once

#include "schedule/testing/scheduler_driver.h"

namespace deepinfer::testing {

inline SchedulerOptions SmallOptions(ReplayMode replay) {
  return {.max_num_seqs = 8,
          .max_num_batched_tokens = 512,
          .max_model_len = 8192,
          .replay = replay,
          .shape = kRealReplayShape};
}

inline CacheSizes SmallSizes() {
  return {.num_pages = 64, .num_host_pages = 64, .num_states = 8, .num_saves = 4, .num_slots = 16};
}

inline DriverRequest MakeRequest(int32_t seed, int32_t num_prompt, int32_t max_output = 1) {
  return {.prompt = MakePrompt(seed, num_prompt), .max_output = max_output};
}

// In the newest plan.
inline int32_t RowsIn(const SchedulerDriver& driver, int handle) {
  const PlannedRows* rows = driver.RowsOf(handle);
  return rows == nullptr ? 0 : rows->num_rows();
}

}  // namespace deepinfer::testing
