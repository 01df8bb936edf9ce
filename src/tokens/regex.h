// tokens/regex.h: regular expressions as trees over characters, read from the syntax that JSON
// Schema and OpenAI's clients use (ECMAScript's and Python's common part).
//
// Where ECMAScript and Python disagree about a character (\d, \w, \s and their opposites), neither
// \d nor \D takes it: a match here is a match in both. What is not regular, or means different
// things, is refused by name: look-around, back-references, word boundaries, anchors in the middle.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokens/char_set.h"

namespace deepinfer {

struct RegexNode;
using Regex = std::shared_ptr<const RegexNode>;  // immutable, subtrees are shared

struct RegexNode {
  enum class Kind {
    kNever,   // matches nothing
    kEmpty,   // matches the empty text
    kChars,   // one character of `chars`
    kConcat,  // `parts` one after the other
    kAlt,     // one of `parts`
    kRepeat,  // parts[0], `min` to `max` times
  };
  Kind kind;
  CharSet chars;
  std::vector<Regex> parts;
  int32_t min = 0, max = 0;  // max < 0: no bound
  int64_t size = 1;          // characters it would have with all repetitions written out
};

// Simplified on the way: Never in a sequence, alternatives of characters, repetitions of nothing.
namespace regex {
Regex Never();
Regex Empty();
Regex Chars(CharSet chars);
Regex Text(std::string_view text);  // requires: UTF-8
Regex Concat(std::vector<Regex> parts);
Regex Alt(std::vector<Regex> parts);
Regex Repeat(Regex part, int32_t min, int32_t max);  // max < 0: no bound
inline Regex Optional(Regex part) { return Repeat(std::move(part), 0, 1); }
}  // namespace regex

// Past this the written-out size, nesting or text is refused.
inline constexpr int64_t kMaxRegexSize = 50'000;

enum class RegexMatch {
  kWhole,   // of the whole text
  kSearch,  // anywhere in the text, unless anchored: `pattern` of JSON Schema
  // As kSearch, but everything that one of the two dialects takes: for what must not match.
  kSearchPerhaps,
};
// Errors: kInvalidArgument for broken syntax, kUnimplemented for what is refused; both with the
// byte offset.
StatusOr<Regex> ParseRegex(std::string_view text, RegexMatch match);

// The text inside the quotes of a JSON string whose value `value` matches: '"', '\' and control
// characters are escaped the way Python's json.dumps does.
Regex JsonEscaped(const Regex& value);

// In the syntax of the grammar library. Requires: it can match something.
std::string LibraryRegex(const Regex& regex);

}  // namespace deepinfer
