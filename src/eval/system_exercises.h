// eval/system_exercises.h: system prompts that change how the model answers.
#pragma once

#include "eval/exercise.h"

namespace deepinfer {

// A rule in the system prompt (a name, upper or lower case, a word to start or end with, one word,
// yes or no, a language, JSON, facts of a shop ...) and questions whose answers follow it: one when
// held out, up to three in training. Key: the rule and what is
// asked, whatever the wording of both and whatever word or name the rule has (small_facts.h).
StatusOr<Exercise> DrawSystem(DrawContext& context);

}  // namespace deepinfer
