// eval/keyval.h: look-ups in short lists of names and values.
#pragma once

#include "eval/exercise.h"

namespace deepinfer {

// Lines, a table, comma-separated lines or a JSON object; then look-ups by name, now and then by
// value. Key: name and value. When held out: 16 to 40 pairs and one look-up by name.
StatusOr<Exercise> DrawKeyValue(DrawContext& context);

}  // namespace deepinfer
