#include "schedule/chunk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/rng.h"

namespace deepinfer {
namespace {

constexpr ChunkLimits kLimits;
constexpr CostCoefficients kCost = {.c0 = 1e-3, .c1 = 1e-5};  // 1 ms + 10 us a row

int32_t Chunk(const ChunkQuery& query, double target_seconds, const StepLoad& placed = {}) {
  return ChunkTokens(kCost, kLimits, placed, target_seconds, query);
}

StepLoad Rows(int64_t rows) {
  StepLoad load;
  load.Add(rows, 0);
  return load;
}

TEST(Chunk, TakesWhatTheTimeLeftPaysForInWholePages) {
  // 9 ms are left of 10: 900 rows, of which 896 are 14 pages.
  EXPECT_EQ(Chunk({.begin = 0, .end = 10'000}, 10e-3), 896);
  EXPECT_EQ(Chunk({.begin = 0, .end = 10'000}, 10e-3, Rows(300)), 576);
}

TEST(Chunk, EndsAtAPageEndAlsoFromWithinAPage) {
  EXPECT_EQ(Chunk({.begin = 20, .end = 10'000}, 10e-3), 896 - 20);
}

TEST(Chunk, EndsThePromptAnywhere) {
  EXPECT_EQ(Chunk({.begin = 64, .end = 664}, 10e-3), 600);
  EXPECT_EQ(Chunk({.begin = 64, .end = 65}, 10e-3), 1);
}

TEST(Chunk, FewRowsGoInBesideOthersOnlyIfTheyEndThePrompt) {
  const double for_200_rows = 1e-3 + 200e-5;
  EXPECT_EQ(Chunk({.begin = 0, .end = 1000}, for_200_rows), 0);
  EXPECT_EQ(Chunk({.begin = 0, .end = 150}, for_200_rows), 150);
  EXPECT_EQ(Chunk({.begin = 0, .end = 250}, for_200_rows), 0);
}

TEST(Chunk, TheFirstOfAStepAdvancesWhateverItCosts) {
  EXPECT_EQ(Chunk({.begin = 0, .end = 1000, .is_first = true}, 0), 256);
  EXPECT_EQ(Chunk({.begin = 0, .end = 100, .is_first = true}, 0), 100);
  EXPECT_EQ(Chunk({.begin = 0, .end = 1000, .is_first = true}, 0, Rows(1000)), 256);
}

TEST(Chunk, NothingPassesTheStepsTokens) {
  EXPECT_EQ(Chunk({.begin = 0, .end = 1 << 20, .is_first = true}, 1e9), 32'768);
  EXPECT_EQ(Chunk({.begin = 0, .end = 1000, .is_first = true}, 1e9, Rows(32'668)), 100);
  EXPECT_EQ(Chunk({.begin = 0, .end = 1000, .is_first = true}, 1e9, Rows(32'768)), 0);
}

TEST(Chunk, FreeRowsAreBoundedByTheCapsAlone) {
  EXPECT_EQ(ChunkTokens({}, kLimits, {}, 1e-3, {.begin = 0, .end = 5000}), 5000);
  EXPECT_EQ(ChunkTokens({.c0 = 1}, kLimits, {}, 0.5, {.begin = 0, .end = 5000}), 0);
}

TEST(Chunk, WithoutATargetTheCapsAloneCount) {
  constexpr double kForever = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Chunk({.begin = 0, .end = 5000}, kForever), 5000);
  EXPECT_EQ(ChunkTokens({.c2 = 1}, kLimits, {}, kForever, {.begin = 0, .end = 5000}), 5000);
}

// The replay of a prompt used up the step's tokens but for less than a page. Rounding down to a
// page would give no rows in this step, nor in any later one.
TEST(Chunk, hazard_TS_AReplayThatLeavesLessThanAPageDoesNotStall) {
  constexpr ChunkLimits kSmallSteps = {.step_tokens = 160};
  int32_t begin = 1024 - 128;  // replays 128 rows, then has 1,000 of its own
  int32_t steps = 0;
  for (; begin < 2024; ++steps) {
    const int32_t first = std::min(128, std::max(0, 1024 - begin));  // what is left of the replay
    StepLoad placed = Rows(first);
    const int32_t rows = ChunkTokens(kCost, kSmallSteps, placed, 10e-3,
                                     {.begin = begin + first, .end = 2024, .is_first = true});
    ASSERT_GT(rows, 0) << "at " << begin;
    begin += first + rows;
  }
  EXPECT_LE(steps, 8);
}

CostCoefficients RandomCost(SeededRng& rng) {
  CostCoefficients cost = {.c0 = 1e-2 * rng.UniformDouble(),
                           .c1 = 1e-4 * rng.UniformDouble(),
                           .c2 = 1e-8 * rng.UniformDouble(),
                           .c3 = 1e-8 * rng.UniformDouble()};
  if (rng.Uniform(4) == 0) cost.c2 = 0;
  if (rng.Uniform(4) == 0) cost.c3 = 0;
  if (rng.Uniform(8) == 0) cost.c1 = 0;
  return cost;
}

int32_t Int(SeededRng& rng, int32_t bound) {
  return static_cast<int32_t>(rng.Uniform(static_cast<uint64_t>(bound)));
}

TEST(Chunk, IsTheLargestThatFits) {
  SeededRng rng(5);
  constexpr double kRounding = 1 + 1e-12;
  int32_t num_chunks = 0;
  for (int round = 0; round < 100'000; ++round) {
    const CostCoefficients cost = RandomCost(rng);
    StepLoad placed = Rows(Int(rng, 2000));
    ChunkQuery query = {.begin = Int(rng, 100'000)};
    query.end = query.begin + 1 + Int(rng, 40'000);
    const double target = rng.UniformDouble();
    const auto seconds_with = [&](int32_t rows) {
      StepLoad load = placed;
      load.Add(rows, query.begin);
      return PredictSeconds(cost, load);
    };
    const int32_t remaining = query.end - query.begin;
    const int32_t step_left = kLimits.step_tokens - static_cast<int32_t>(placed.rows);
    const int32_t rows = ChunkTokens(cost, kLimits, placed, target, query);
    ASSERT_LE(rows, std::min(remaining, step_left));
    if (rows > 0) {
      ++num_chunks;
      ASSERT_LE(seconds_with(rows), target * kRounding);
      ASSERT_TRUE(rows == remaining || (query.begin + rows) % kLimits.page_tokens == 0);
      ASSERT_TRUE(rows == remaining || rows >= kLimits.min_tokens);
    }
    // The next larger one that is allowed: one page more, or all that remain.
    const int32_t page_end = (query.begin + rows) / kLimits.page_tokens * kLimits.page_tokens;
    const int32_t longer =
        std::min(remaining, std::max(page_end + kLimits.page_tokens - query.begin,
                                     rows == 0 ? kLimits.min_tokens + kLimits.page_tokens : 0));
    ASSERT_TRUE(rows == remaining || longer > step_left ||
                seconds_with(longer) * kRounding > target)
        << rows << " of " << remaining << " after " << query.begin;
  }
  EXPECT_GT(num_chunks, 50'000);
}

TEST(Chunk, claim_10_StepsKeepTheirTokensAndTheirTime) {
  SeededRng rng(9);
  for (int round = 0; round < 2'000; ++round) {
    const CostCoefficients cost = RandomCost(rng);
    const double target = rng.UniformDouble();
    StepLoad placed = Rows(Int(rng, 256));  // decode rows
    bool is_first = true;
    for (int i = 0; i < 40; ++i) {
      ChunkQuery query = {.begin = Int(rng, 50'000), .is_first = is_first};
      query.end = query.begin + 1 + Int(rng, 8'000);
      const int32_t rows = ChunkTokens(cost, kLimits, placed, target, query);
      StepLoad with = placed;
      with.Add(rows, query.begin);
      ASSERT_LE(with.rows, kLimits.step_tokens);
      const bool guaranteed = is_first && rows <= kLimits.min_tokens;
      ASSERT_TRUE(rows == 0 || guaranteed || PredictSeconds(cost, with) <= target * (1 + 1e-12));
      placed = with;
      is_first &= rows == 0;
    }
    ASSERT_FALSE(is_first);  // some prompt advanced
  }
}

}  // namespace
}  // namespace deepinfer
