#include "tokens/regex_classes.h"

#include <utf8proc.h>

namespace deepinfer {
namespace {

// And unassigned ones, which newer Unicode may put there.
CharSet WithCategory(utf8proc_category_t first, utf8proc_category_t last) {
  std::vector<CharRange> ranges;
  for (char32_t c = 0x80; c <= 0x10ffff; ++c) {
    const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
    if (category != UTF8PROC_CATEGORY_CN && (category < first || category > last)) continue;
    if (!ranges.empty() && ranges.back().last + 1 == c) {
      ranges.back().last = c;
    } else {
      ranges.push_back({c, c});
    }
  }
  return CharSet(std::move(ranges));
}

RegexClass Opposite(const RegexClass& c) { return {c.perhaps.Not(), c.sure.Not()}; }

RegexClass Digits() {
  const CharSet ascii({{'0', '9'}});
  return {ascii, ascii.Or(WithCategory(UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_ND))};
}

RegexClass Words() {
  const CharSet ascii({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}});
  // Letters, marks and numbers, which follow each other in the enumeration.
  return {ascii, ascii.Or(WithCategory(UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_NO))};
}

RegexClass Spaces() {
  const CharSet both({{'\t', '\r'},
                      {' ', ' '},
                      {0xa0, 0xa0},
                      {0x1680, 0x1680},
                      {0x2000, 0x200a},
                      {0x2028, 0x2029},
                      {0x202f, 0x202f},
                      {0x205f, 0x205f},
                      {0x3000, 0x3000}});
  // U+180E was a space in older Unicode.
  return {both, both.Or(CharSet({{0x1c, 0x1f}, {0x85, 0x85}, {0x180e, 0x180e}, {0xfeff, 0xfeff}}))};
}

}  // namespace

const RegexClass& RegexClassOf(char letter) {
  static const RegexClass digits = Digits(), words = Words(), spaces = Spaces();
  static const RegexClass not_digits = Opposite(digits), not_words = Opposite(words),
                          not_spaces = Opposite(spaces);
  switch (letter) {
    case 'd':
      return digits;
    case 'D':
      return not_digits;
    case 'w':
      return words;
    case 'W':
      return not_words;
    case 's':
      return spaces;
    default:
      return not_spaces;
  }
}

const RegexClass& AnyButLineEnds() {
  static const RegexClass any{CharSet({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}).Not(),
                              CharSet({{'\n', '\n'}}).Not()};
  return any;
}

}  // namespace deepinfer
