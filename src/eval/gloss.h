// eval/gloss.h: what a word means, by the dictionary that the model was trained on.
#pragma once

#include "eval/exercise.h"
#include "eval/gloss_check.h"
#include "eval/material.h"

namespace deepinfer {

// Training: the material's definitions, core words nine times out of ten, asked in eight wordings.
// Held out is a ninth wording of a word that was trained; it needs context.gloss_check. Key: the
// question.
StatusOr<Exercise> DrawGloss(DrawContext& context);

// A definition as the model learns it: not longer than a sentence.
std::string_view ShortDefinition(std::string_view definition);

// The check of all core words whose definitions have content words.
GlossCheck MakeGlossCheck(const Material& material);

}  // namespace deepinfer
