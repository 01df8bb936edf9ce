#include "tokens/char_set.h"

#include <algorithm>
#include <utility>

namespace deepinfer {
namespace {
constexpr char32_t kLast = 0x10ffff, kBelowSurrogates = 0xd7ff, kAboveSurrogates = 0xe000;
}  // namespace

CharSet::CharSet(std::initializer_list<CharRange> ranges) : ranges_(ranges) { Normalize(); }
CharSet::CharSet(std::vector<CharRange> ranges) : ranges_(std::move(ranges)) { Normalize(); }

const CharSet& CharSet::All() {
  static const CharSet all({{0, kLast}});
  return all;
}

void CharSet::Normalize() {
  std::vector<CharRange> split;
  for (const CharRange& range : ranges_) {
    const CharRange below{range.first, std::min(range.last, kBelowSurrogates)};
    const CharRange above{std::max(range.first, kAboveSurrogates), std::min(range.last, kLast)};
    if (below.first <= below.last) split.push_back(below);
    if (above.first <= above.last) split.push_back(above);
  }
  std::sort(split.begin(), split.end(),
            [](const CharRange& a, const CharRange& b) { return a.first < b.first; });
  ranges_.clear();
  for (const CharRange& range : split) {
    if (!ranges_.empty() && range.first <= ranges_.back().last + 1) {
      ranges_.back().last = std::max(ranges_.back().last, range.last);
    } else {
      ranges_.push_back(range);
    }
  }
}

bool CharSet::Contains(char32_t c) const {
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [c](const CharRange& r) { return r.first <= c && c <= r.last; });
}

char32_t LastOfSameLength(char32_t c) {
  return c <= 0x7f ? 0x7f : c <= 0x7ff ? 0x7ff : c <= 0xffff ? 0xffff : kLast;
}

std::vector<CharRange> CharSet::RangesOfOneLength() const {
  std::vector<CharRange> cut;
  for (CharRange range : ranges_) {
    for (char32_t last; (last = LastOfSameLength(range.first)) < range.last;) {
      cut.push_back({range.first, last});
      range.first = last + 1;
    }
    cut.push_back(range);
  }
  return cut;
}

CharSet CharSet::Or(const CharSet& other) const {
  CharSet both = *this;
  both.ranges_.insert(both.ranges_.end(), other.ranges_.begin(), other.ranges_.end());
  both.Normalize();
  return both;
}

CharSet CharSet::And(const CharSet& other) const {
  CharSet both;
  size_t i = 0, j = 0;
  while (i < ranges_.size() && j < other.ranges_.size()) {
    const CharRange &a = ranges_[i], &b = other.ranges_[j];
    const CharRange common{std::max(a.first, b.first), std::min(a.last, b.last)};
    if (common.first <= common.last) both.ranges_.push_back(common);
    (a.last < b.last ? i : j) += 1;
  }
  return both;
}

CharSet CharSet::Not() const {
  CharSet rest;
  char32_t next = 0;
  for (const CharRange& range : ranges_) {
    if (range.first > next) rest.ranges_.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLast) rest.ranges_.push_back({next, kLast});
  rest.Normalize();
  return rest;
}

}  // namespace deepinfer
