// eval/arithmetic.h: exercises with whole numbers.
#pragma once

#include "eval/exercise.h"

namespace deepinfer {

// Two numbers of one or two digits, + or -, the result at least 0; answered at once. Key: both
// numbers and the sign.
StatusOr<Exercise> DrawArithmetic(DrawContext& context);

}  // namespace deepinfer
