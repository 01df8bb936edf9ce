// schedule/chunk.h: how many rows of a prompt go into a step. Source: kvstore.md 16.1 (the size),
// serving.md 4.2 (the progress guarantee).
#pragma once

#include <cstdint>

#include "schedule/cost_model.h"

namespace deepinfer {

struct ChunkLimits {
  int32_t step_tokens = 32'768;  // rows of a step, of all kinds together
  int32_t min_tokens = 256;      // less is not worth a place beside another prompt's chunk
  int32_t page_tokens = 64;      // a chunk ends at a page end, or ends the prompt
};

struct ChunkQuery {
  int32_t begin = 0;  // first position to compute; all before it is computed
  int32_t end = 0;    // of the prompt
  // No other prompt has rows in this step. Then min_tokens rows are placed (or what is left of the
  // prompt or of the step) whatever they cost and wherever they end: decode rows alone may use up
  // the time of every step, and a replay may leave less than a page of its tokens.
  bool is_first = false;
};

// Rows [begin, begin + result) go into a step that holds `placed`: the most that end at a page end
// or end the prompt, keep the step's predicted time within `target_seconds`, and its rows within
// limits.step_tokens; target_seconds may be infinite. 0: none in this step; always so for fewer
// than min_tokens rows that do not end the prompt. Requires: begin < end.
int32_t ChunkTokens(const CostCoefficients& cost, const ChunkLimits& limits, const StepLoad& placed,
                    double target_seconds, const ChunkQuery& query);

}  // namespace deepinfer
