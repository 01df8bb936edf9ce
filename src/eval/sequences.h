// eval/sequences.h: a list of words, letters or numbers, given back as it is or in another order.
#pragma once

#include "eval/exercise.h"

namespace deepinfer {

// Keys: the list as it was given, and for sort the direction.
StatusOr<Exercise> DrawCopy(DrawContext& context);     // words, numbers, codes or a sentence
StatusOr<Exercise> DrawSort(DrawContext& context);     // words by letter, numbers by size
StatusOr<Exercise> DrawReverse(DrawContext& context);  // words, numbers or the letters of a word

}  // namespace deepinfer
