// eval/unit_exercises.h: lengths, weights, times and money in other units.
#pragma once

#include "eval/exercise.h"

namespace deepinfer {

// The reasoning holds the steps, the answer is the number with its unit. Key: the numbers and the
// way, whatever the units are called; no held-out Operation stands in the steps.
StatusOr<Exercise> DrawUnits(DrawContext& context);

}  // namespace deepinfer
