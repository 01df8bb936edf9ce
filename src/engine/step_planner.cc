#include "engine/step_planner.h"

#include <algorithm>

#include "base/check.h"

namespace deepinfer {

std::vector<PlannedRows> PlanStep(std::span<const SequenceView> sequences, int32_t max_rows) {
  CHECK_GE(static_cast<size_t>(max_rows), sequences.size());
  const auto remaining = [](const SequenceView& s) { return s.num_tokens - s.num_computed; };
  int32_t left = max_rows - static_cast<int32_t>(std::count_if(
                                sequences.begin(), sequences.end(),
                                [&](const SequenceView& s) { return remaining(s) == 1; }));
  std::vector<PlannedRows> plan;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const SequenceView& s = sequences[i];
    CHECK_LT(s.num_computed, s.num_tokens);
    int32_t rows = remaining(s);
    if (rows > 1) {
      rows = std::min(rows, left);
      if (s.max_rows > 0) rows = std::min(rows, s.max_rows);
      left -= rows;
    }
    if (rows > 0) {
      plan.push_back({static_cast<int32_t>(i), s.num_computed, s.num_computed + rows});
    }
  }
  return plan;
}

}  // namespace deepinfer
