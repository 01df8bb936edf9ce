// eval/story_exercises.h: short stories.
#pragma once

#include "eval/exercise.h"

namespace deepinfer {

// A request that may name heroes, animals or a thing, and a story of 60 to 150 words with them, its
// title first if one was asked for. Any good story would be right, so it is for training only. Key:
// the story.
StatusOr<Exercise> DrawStory(DrawContext& context);

}  // namespace deepinfer
