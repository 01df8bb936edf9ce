// eval/sums.h: longer sums and products, worked out digit by digit in the reasoning.
#pragma once

#include "eval/exercise.h"

namespace deepinfer {

// Two numbers, + or -, the result at least 0; the reasoning goes through the columns from the
// right. Key: Operation's.
StatusOr<Exercise> DrawSums(DrawContext& context);   // as below, one in five of two to four digits
StatusOr<Exercise> DrawSums3(DrawContext& context);  // three digits each
StatusOr<Exercise> DrawSums4(DrawContext& context);  // four

// A number of two or three digits times one of one digit. Key: Operation's.
StatusOr<Exercise> DrawProducts(DrawContext& context);

// "2 + 9 = 11, write 1, carry 1. 8 + 7 + 1 = 16, write 6, carry 1. 4 + 3 + 1 = 8, write 8."
// Requires: 0 <= right <= left.
std::string ColumnSteps(int64_t left, char sign, int64_t right);

}  // namespace deepinfer
