// eval/grading.h: whether an answer is right.
#pragma once

#include "eval/exercise.h"
#include "tokens/answer_parser.h"

namespace deepinfer {

// By exercise.grading, against exercise.answer(). An answer that never ended is wrong, whatever it
// holds; so is one with calls where none were wanted. Reasoning does not count.
bool IsRight(const Exercise& exercise, const ParsedAnswer& answer);

}  // namespace deepinfer
