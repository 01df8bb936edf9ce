// eval/small_facts.h: the few things that the model knows by heart, as questions.
#pragma once

#include <string>

#include "base/rng.h"

namespace deepinfer {

struct SmallFact {
  std::string question;  // "What is the capital of France?"
  std::string word;      // "Paris"; of a question for yes or no: "Yes"
  std::string sentence;  // "The capital of France is Paris."
};

SmallFact DrawSmallFact(Rng& rng);
// "Can a duck fly?": the sentence is "Yes, a duck can fly."
SmallFact DrawYesNoFact(Rng& rng);

}  // namespace deepinfer
