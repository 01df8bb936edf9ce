// eval/small_facts.h: the few things that the model knows by heart, as questions.
//
// A fact has a key, whatever the wording of its question. What is held out is a fact under a rule
// of how to answer: the "system" exercises ask for it, and no exercise of training shows it so.
// Without a rule it is kPlainRule, which small talk and other kinds use too.
#pragma once

#include <string>
#include <string_view>

#include "eval/exercise.h"

namespace deepinfer {

// The task whose keys facts have, and the rule that means none.
inline constexpr std::string_view kFactKeys = "system", kPlainRule = "plain";

struct SmallFact {
  std::string question;  // "What is the capital of France?"
  std::string word;      // "Paris"; of a question for yes or no: "Yes"
  std::string sentence;  // "The capital of France is Paris."
  std::string key;       // "capital of France"
};

SmallFact DrawSmallFact(Rng& rng);
// "Can a duck fly?": the sentence is "Yes, a duck can fly."
SmallFact DrawYesNoFact(Rng& rng);

// "plain: capital of France"
std::string KeyUnderRule(std::string_view rule, std::string_view fact_key);
// A fact of one of the two kinds, plain, in the context's split; yes_no: how often of the second.
SmallFact DrawPlainFact(DrawContext& context, double yes_no);

}  // namespace deepinfer
