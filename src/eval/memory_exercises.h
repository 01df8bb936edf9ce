// eval/memory_exercises.h: facts that the user told, asked for some turns later.
#pragma once

#include "eval/exercise.h"

namespace deepinfer {

// One to five facts, other talk between, then a question or (in training) several; a fact told
// again replaces the first. Key: the facts in their order and what is asked last.
StatusOr<Exercise> DrawMemory(DrawContext& context);

}  // namespace deepinfer
