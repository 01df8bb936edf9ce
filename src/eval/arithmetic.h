// eval/arithmetic.h: exercises with small whole numbers, answered at once.
#pragma once

#include "eval/exercise.h"

namespace deepinfer {

// Two numbers of one or two digits, + or -, the result at least 0; one has two digits at least when
// held out. Key: Operation's.
StatusOr<Exercise> DrawArithmetic(DrawContext& context);

// The largest or smallest of two to five numbers. Key: which, and the numbers in order of size.
StatusOr<Exercise> DrawCompare(DrawContext& context);

// How many words a list has, or how often one stands in it; two to nine. Key: the list.
StatusOr<Exercise> DrawCount(DrawContext& context);

}  // namespace deepinfer
