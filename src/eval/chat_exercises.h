// eval/chat_exercises.h: small talk.
#pragma once

#include "eval/exercise.h"

namespace deepinfer {

// One to four turns: greetings, who the model is and what it can do, opinions, small facts, and "I
// do not know" for what it cannot know. Several answers are right, so it is for training only. Key:
// all that is said.
StatusOr<Exercise> DrawChat(DrawContext& context);

}  // namespace deepinfer
