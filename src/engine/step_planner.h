// engine/step_planner.h: which rows the next forward pass computes.
//
// The simplest rule that never starves anyone: every sequence with one token to compute gets its
// row, then the others get chunks, first come first served, until the pass is full.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace deepinfer {

// What planning sees of a running sequence, in order of admission.
struct SequenceView {
  int32_t num_tokens = 0;    // known tokens: prompt and output so far
  int32_t num_computed = 0;  // of them, those whose KV is present; < num_tokens
  int32_t max_rows = 0;      // most rows in one pass; 0: no limit of its own
};

// Rows [begin, end) of sequence `sequence` (index into the views).
struct PlannedRows {
  int32_t sequence = 0;
  int32_t begin = 0;
  int32_t end = 0;
};

// In the order of the views. Requires: max_rows >= sequences.size(), so that decoding never waits.
std::vector<PlannedRows> PlanStep(std::span<const SequenceView> sequences, int32_t max_rows);

}  // namespace deepinfer
