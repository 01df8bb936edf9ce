// eval/words.h: the words and made-up values that exercises are written with. All ours.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/rng.h"

namespace deepinfer {

struct DrawContext;

using WordList = std::span<const std::string_view>;

// Lower case unless they are names; no list repeats a word.
WordList FirstNames();
WordList Surnames();
WordList Cities();
WordList Countries();
WordList Animals();
WordList Objects();  // things that can be held or owned, one word each
WordList Foods();
WordList Plants();
WordList Colours();
WordList Adjectives();
WordList PastVerbs();  // transitive: "carried"
WordList Jobs();
WordList Places();  // with article: "the old bridge"
WordList Months();
WordList Weekdays();
// All lower-case single words above together.
WordList CommonWords();

// One of them, or with material, two times out of five, one of its words.
std::string_view DrawWord(DrawContext& context);

// "40718": the first digit is not 0. Requires: 1 <= num_digits <= 18.
std::string DrawNumber(Rng& rng, int num_digits);
// Capital letters and digits in one of a few shapes: "KX-482", "7QTR", "B19-MZ".
std::string DrawCode(Rng& rng);
std::string DrawDate(Rng& rng);         // "2024-03-17"
std::string DrawTimeOfDay(Rng& rng);    // "17:45"
std::string DrawMailAddress(Rng& rng);  // "mira.holt@cedarmail.org"
std::string DrawFullName(Rng& rng);     // "Mira Holt"

// "a" or "an", a space, the word.
std::string WithArticle(std::string_view word);
// The first letter as a capital.
std::string Capitalised(std::string_view text);

}  // namespace deepinfer
