// eval/json_exercises.h: facts become JSON.
#pragma once

#include "eval/exercise.h"

namespace deepinfer {

// A text, lines or a table, and a JSON Schema (of the conversation or in the user's text) or a list
// of keys: the answer is one object, or one array for a table. Also broken JSON to repair, and JSON
// with one value to change. Every value stands in the text. Key: the answer.
StatusOr<Exercise> DrawJson(DrawContext& context);

}  // namespace deepinfer
