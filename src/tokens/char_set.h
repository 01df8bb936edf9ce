// tokens/char_set.h: sets of Unicode characters, as sorted ranges. Surrogates are no characters.
#pragma once

#include <initializer_list>
#include <vector>

namespace deepinfer {

struct CharRange {
  char32_t first, last;  // both are in it
  bool operator==(const CharRange&) const = default;
};

// The last character that UTF-8 spells with as many bytes.
char32_t LastOfSameLength(char32_t c);

class CharSet {
 public:
  CharSet() = default;
  CharSet(std::initializer_list<CharRange> ranges);
  explicit CharSet(std::vector<CharRange> ranges);
  static const CharSet& All();
  static CharSet Of(char32_t c) { return CharSet({{c, c}}); }

  const std::vector<CharRange>& ranges() const { return ranges_; }  // sorted, apart
  bool empty() const { return ranges_.empty(); }
  bool Contains(char32_t c) const;
  bool IsSingle() const { return ranges_.size() == 1 && ranges_[0].first == ranges_[0].last; }

  // The ranges, cut where UTF-8 changes its length.
  std::vector<CharRange> RangesOfOneLength() const;

  CharSet Or(const CharSet& other) const;
  CharSet And(const CharSet& other) const;
  CharSet Not() const;
  CharSet Minus(const CharSet& other) const { return And(other.Not()); }
  bool operator==(const CharSet&) const = default;

 private:
  void Normalize();
  std::vector<CharRange> ranges_;
};

}  // namespace deepinfer
