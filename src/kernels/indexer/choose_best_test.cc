#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/cpu/scratch.h"
#include "kernels/indexer/cpu/choose_best.h"
#include "kernels/testing/data.h"

namespace deepinfer::choose_best {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(ChooseBest, RanksOrderAsScoresDo) {
  const float ascending[] = {-kInfinity, -3e38f, -1, -1e-45f, 0, 1e-45f, 1, 3e38f, kInfinity};
  for (size_t i = 1; i < std::size(ascending); ++i) {
    EXPECT_LT(RankOf(ascending[i - 1]), RankOf(ascending[i]));
  }
  for (const float score : ascending) EXPECT_EQ(ScoreOf(RankOf(score)), score);
  EXPECT_EQ(RankOf(-0.0f), RankOf(0.0f));
  EXPECT_LT(RankOf(kInfinity), kForcedRank);
}

// Indices of the `count` largest ranks, lowest first among equals; ascending.
std::vector<int32_t> BestOf(const std::vector<uint32_t>& ranks, size_t count) {
  std::vector<int32_t> indices(ranks.size());
  std::iota(indices.begin(), indices.end(), 0);
  std::stable_sort(indices.begin(), indices.end(), [&](int32_t a, int32_t b) {
    return ranks[static_cast<size_t>(a)] > ranks[static_cast<size_t>(b)];
  });
  indices.resize(std::min(count, indices.size()));
  std::sort(indices.begin(), indices.end());
  return indices;
}

void ExpectBest(const std::vector<uint32_t>& ranks, int32_t count) {
  ScratchFrame frame;
  const auto size = std::ssize(ranks);
  RankedList list(frame, size);
  for (int32_t i = 0; i < size; ++i) list.Add(ranks[static_cast<size_t>(i)], i);
  KeepBest(list, count, frame.Get<uint32_t>(size));
  const std::vector<int32_t> want = BestOf(ranks, static_cast<size_t>(count));
  EXPECT_EQ(std::vector<int32_t>(list.indices, list.indices + list.size), want)
      << count << " of " << size;
  for (int64_t i = 0; i < list.size; ++i) {
    EXPECT_EQ(list.ranks[i], ranks[static_cast<size_t>(list.indices[i])]);
  }
}

// Few and many ranks, whose upper bits are counted first; all different, many equal, all equal.
TEST(ChooseBest, KeepsWhatAPlainSortPutsFirst) {
  testing::Random random(60);
  for (const int32_t size : {0, 1, 2, 7, 8, 9, 100, 333, 8191, 8192, 10000}) {
    for (const int32_t values : {1, 2, 50, 1 << 30}) {
      std::vector<uint32_t> ranks;
      for (int32_t i = 0; i < size; ++i) {
        const auto value = static_cast<float>(random.Below(values) - values / 2);
        ranks.push_back(RankOf(value / 16));
      }
      if (size > 0 && values == 50) ranks.back() = kForcedRank;
      for (const int32_t count : {1, 64, size / 2, size - 1, size, size + 1}) {
        if (count > 0) ExpectBest(ranks, count);
      }
    }
  }
}

}  // namespace
}  // namespace deepinfer::choose_best
