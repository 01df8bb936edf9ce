// tokens/regex_classes.h: what \d, \w, \s and their opposites match, by ECMAScript and Python.
//
// The two disagree outside ASCII. `sure` holds what both take, `perhaps` what either does: a class
// uses the first, a negated class leaves the second out, and so a match here is one in both.
#pragma once

#include "tokens/char_set.h"

namespace deepinfer {

struct RegexClass {
  CharSet sure, perhaps;
};

// Requires: `letter` is one of d, D, w, W, s, S.
const RegexClass& RegexClassOf(char letter);
// What '.' matches.
const RegexClass& AnyButLineEnds();

}  // namespace deepinfer
