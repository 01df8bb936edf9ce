// eval/retrieval.h: facts in a long text, asked for at its end.
//
// A fact is a subject ("lamp code of Anna") and a value; its key is both. Statement and question
// share the subject's words; the wordings around them vary.
#pragma once

#include "eval/exercise.h"

namespace deepinfer {

// Training: a text of 256 tokens up to max_tokens. Most have as many facts and questions as the
// length has room for, the others few, down to one of each.
StatusOr<Exercise> DrawNeedle(DrawContext& context);

// Evaluation: the whole conversation fills 4,096 or 8,192 tokens: one needle, four other facts, one
// question. Errors: kInvalidArgument if max_tokens is less.
StatusOr<Exercise> DrawNeedle4k(DrawContext& context);
StatusOr<Exercise> DrawNeedle8k(DrawContext& context);

}  // namespace deepinfer
