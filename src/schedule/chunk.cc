#include "schedule/chunk.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace deepinfer {
namespace {

// The most rows behind `prefix` that cost at most `seconds`: the positive root of
// c2 n^2 + (c1 + c3 p) n = seconds, in the form that stands c2 = 0. At most `rows_max`.
int32_t RowsWithin(const CostCoefficients& c, double seconds, int32_t prefix, int32_t rows_max) {
  if (seconds <= 0) return 0;
  if (std::isinf(seconds)) return rows_max;
  const double slope = c.c1 + c.c3 * prefix;
  const double divisor = slope + std::sqrt(slope * slope + 4 * c.c2 * seconds);
  if (divisor * rows_max <= 2 * seconds) return rows_max;  // free rows divide by 0
  return static_cast<int32_t>(2 * seconds / divisor);
}

}  // namespace

int32_t ChunkTokens(const CostCoefficients& cost, const ChunkLimits& limits, const StepLoad& placed,
                    double target_seconds, const ChunkQuery& query) {
  CHECK_LT(query.begin, query.end);
  const int32_t step_left = limits.step_tokens - static_cast<int32_t>(placed.rows);
  const int32_t remaining = query.end - query.begin;
  const int32_t rows_max = std::min(remaining, step_left);
  if (rows_max <= 0) return 0;
  const double seconds_left = target_seconds - PredictSeconds(cost, placed);
  int32_t rows = RowsWithin(cost, seconds_left, query.begin, rows_max);
  if (rows < remaining) {
    const int32_t past_page_end = (query.begin + rows) % limits.page_tokens;
    rows = std::max(0, rows - past_page_end);
  }
  const int32_t least = std::min(limits.min_tokens, rows_max);
  if (query.is_first) return std::max(rows, least);
  return rows < limits.min_tokens && rows < remaining ? 0 : rows;
}

}  // namespace deepinfer
