#include "kernels/indexer/cpu/choose_best.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/check.h"

namespace deepinfer::choose_best {
namespace {

// From so many ranks on it is faster to count their upper bits first.
constexpr int64_t kMany = 8192;

// Items above `rank` are kept, and the first `num_equal` of those at it.
struct Cut {
  uint32_t rank;
  int64_t num_equal;
};

int64_t CountAtLeast(std::span<const uint32_t> ranks, uint32_t rank) {
  int32_t count = 0;
  for (const uint32_t r : ranks) count += r >= rank ? 1 : 0;
  return count;
}

// Where to cut so that `count` of the ranks stay; there are as many or more. Finds the lowest that
// stays, from its bit `bit` down; all ranks share the bits above, which are in `lowest`.
Cut FindCut(std::span<const uint32_t> ranks, int64_t count, uint32_t lowest = 0,
            uint32_t bit = 0x80000000u) {
  int64_t above = 0;  // ranks that exceed what `lowest` can become
  for (; bit != 0; bit >>= 1) {
    const int64_t at_least = CountAtLeast(ranks, lowest | bit);
    if (at_least == count) return {(lowest | bit) - 1, 0};
    if (at_least > count) {
      lowest |= bit;
    } else {
      above = at_least;
    }
  }
  return {lowest, count - above};
}

// FindCut of many ranks: only those whose upper bits are the cut's are looked at again.
Cut FindCutOfMany(std::span<const uint32_t> ranks, int64_t count, uint32_t* work) {
  constexpr int kShift = 32 - 13;  // leaves sign, exponent and four bits of a score
  static thread_local std::array<int32_t, 1 << (32 - kShift)> sizes;
  sizes.fill(0);
  for (const uint32_t rank : ranks) ++sizes[rank >> kShift];
  uint32_t upper = sizes.size() - 1;
  for (; sizes[upper] < count; --upper) count -= sizes[upper];
  uint32_t* const end = std::copy_if(ranks.begin(), ranks.end(), work,
                                     [upper](uint32_t rank) { return rank >> kShift == upper; });
  return FindCut({work, end}, count, upper << kShift, 1u << (kShift - 1));
}

}  // namespace

void KeepBest(RankedList& list, int32_t count, uint32_t* work) {
  CHECK_GT(count, 0);
  if (list.size <= count) return;
  const std::span<const uint32_t> ranks(list.ranks, static_cast<size_t>(list.size));
  const Cut cut = list.size < kMany ? FindCut(ranks, count) : FindCutOfMany(ranks, count, work);
  int64_t num_equal = cut.num_equal, size = 0;
  for (int64_t i = 0; i < list.size; ++i) {
    const uint32_t rank = list.ranks[i];
    const bool equal = rank == cut.rank && num_equal > 0;
    num_equal -= equal ? 1 : 0;
    list.ranks[size] = rank;
    list.indices[size] = list.indices[i];
    size += equal || rank > cut.rank ? 1 : 0;
  }
  list.size = size;
}

}  // namespace deepinfer::choose_best
