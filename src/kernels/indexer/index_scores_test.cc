// Every CPU form of the scores against the oracle, bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "kernels/testing/index_case.h"
#include "kernels/testing/packed.h"

namespace deepinfer {
namespace {

using testing::DataKind;
using testing::IndexCase;
using testing::IndexResult;
using testing::IndexShape;
using testing::Random;

constexpr Backend kOracle{.variant = kRefVariant};
constexpr IndexScores kForms[] = {IndexScores::kOfficial, IndexScores::kF32};

// Choices, all scores of every row, and choices inside blocks.
void ExpectSame(const IndexCase& c, const Backend& backend, const Backend& expected) {
  const IndexResult want = c.Run(expected, true, {});
  EXPECT_EQ(c.Run(backend, true, {}), want);
  EXPECT_EQ(c.Run(backend, false, want.blocks), c.Run(expected, false, want.blocks));
  const int32_t most = std::max(1, *std::ranges::max_element(c.visible()));
  EXPECT_EQ(c.Run(backend, false, {}, -1, most), c.Run(expected, false, {}, -1, most));
}

// Scale byte of group g of key j, and the number of groups.
uint8_t& KeyScale(IndexCase& c, int32_t j, int32_t g) {
  return c.source().IndexScale(j, c.shape().dim)[g];
}
int32_t Groups(const IndexCase& c) { return c.shape().dim / 32; }

class IndexScoring : public testing::CpuVariants {};

TEST_P(IndexScoring, EqualsTheOracleAtAnyShape) {
  Random random(50);
  ThreadPool two(2);
  for (int i = 0; i < 32; ++i) {
    const IndexShape shape{.heads = 1 + random.Below(i % 3 == 0 ? 64 : 9),
                           .dim = 32 * (1 + random.Below(5)),
                           .topk = 1 + random.Below(40),
                           .block_size = 1 + random.Below(9),
                           .topk_blocks = 1 + random.Below(20),
                           .ratio = 1 << random.Below(5),
                           .scores = kForms[i % 2],
                           .kind = testing::kAllDataKinds[random.Below(6)]};
    const int32_t entries = 1 + random.Below(200);
    const IndexCase c(shape, entries, {entries, random.Below(entries + 1)}, random.Bits());
    SCOPED_TRACE(StrCat(shape.heads, " heads of ", shape.dim, ", ", entries, " entries, kind ",
                        static_cast<int>(shape.kind)));
    ExpectSame(c, backend(), kOracle);
    ExpectSame(c, {.variant = GetParam(), .threads = &two}, kOracle);
  }
}

TEST_P(IndexScoring, EqualsTheOracleAtEveryCount) {
  std::vector<int32_t> visible(70);
  std::iota(visible.begin(), visible.end(), 0);
  for (const IndexScores form : kForms) {
    const IndexShape shape{.heads = 5, .dim = 64, .ratio = 8, .scores = form};
    ExpectSame(IndexCase(shape, 69, visible, 51), backend(), kOracle);
  }
}

// From dots below the smallest F32 to dots above the largest, and infinities that meet in a sum.
TEST_P(IndexScoring, EqualsTheOracleAtAnyMagnitude) {
  Random random(52);
  for (const IndexScores form : kForms) {
    for (const int32_t key_scale : {0, 1, 100, 200, 247}) {
      for (const double q_exponent : {-120.0, -60.0, 0.0, 60.0, 118.0}) {
        const IndexShape shape{.heads = 6, .dim = 96, .topk = 20, .scores = form};
        IndexCase c(shape, 60, {60, 59, 43}, random.Bits());
        for (int32_t j = 0; j < 60; ++j) {
          for (int32_t g = 0; g < Groups(c); ++g) {
            KeyScale(c, j, g) = static_cast<uint8_t>(key_scale + random.Below(8));
          }
        }
        for (bf16& x : c.q) x = ToBf16(ToFloat(x) * std::exp2(q_exponent));
        QuantiseIndexQuery(kOracle, {.num_rows = 18, .dim = 96, .x = c.q.data()});
        SCOPED_TRACE(StrCat("keys ", key_scale, ", queries ", q_exponent));
        ExpectSame(c, backend(), kOracle);
      }
    }
  }
}

// NaN and infinity wherever they can be: scales of keys, groups of queries (which become all NaN
// when they are quantised), weights.
TEST_P(IndexScoring, EqualsTheOracleWithBrokenNumbers) {
  Random random(53);
  const uint16_t bad[] = {0x7f80, 0xff80, 0x7f81, 0x7fff, 0xffff, 0xffc0};
  for (int i = 0; i < 30; ++i) {
    const IndexShape shape{.heads = 7, .dim = 128, .topk = 20, .scores = kForms[i % 2]};
    IndexCase c(shape, 60, {60, 59, 43}, random.Bits());
    for (int32_t j = 0; j < 60; j += 1 + random.Below(4)) {
      KeyScale(c, j, random.Below(Groups(c))) = kE8m0Nan;
    }
    if (i % 3 == 1) {
      bf16* const group = &c.q[static_cast<size_t>(random.Below(3 * 7 * 4) * 32)];
      std::fill_n(group, 32, ToBf16(std::nanf("")));
    }
    if (i % 3 == 2) c.weights[static_cast<size_t>(random.Below(3 * 7))] = {bad[random.Below(6)]};
    ExpectSame(c, backend(), kOracle);
  }
}

// Also where sums of groups are rounded, so that the oracle's sums of values may differ.
TEST_P(IndexScoring, EveryFormGivesTheSameBits) {
  Random random(54);
  for (const IndexScores form : kForms) {
    const IndexShape shape{.heads = 9, .dim = 160, .topk = 20, .scores = form};
    IndexCase c(shape, 100, {100, 99, 83}, random.Bits());
    for (int32_t j = 0; j < 100; ++j) {
      for (int32_t g = 0; g < Groups(c); ++g) {
        KeyScale(c, j, g) = static_cast<uint8_t>(random.Below(256));
      }
    }
    ExpectSame(c, backend(), {.variant = kAvx2Variant});
  }
}

TEST_P(IndexScoring, ChoosesTheSameIfNobodyAsksForScores) {
  IndexShape shape;  // chooses 8 entries and 8 blocks of 4
  const std::vector<int32_t> visible = {0, 1, 7, 8, 9, 31, 32, 33, 100};
  for (const int32_t topk : {8, 40, 100}) {
    shape.topk = topk;
    shape.wants_scores = true;
    const IndexResult want = IndexCase(shape, 100, visible, 55).Run(kOracle, true, {});
    shape.wants_scores = false;
    const IndexCase c(shape, 100, visible, 55);
    const IndexResult got = c.Run(backend(), true, {});
    EXPECT_EQ(got.selection, want.selection) << topk;
    EXPECT_EQ(got.blocks, want.blocks) << topk;
    EXPECT_EQ(c.Run(backend(), false, want.blocks).selection,
              c.Run(kOracle, false, want.blocks).selection);
  }
}

// Queries off the FP4 grid are a bug of the caller; nobody sees it where nothing is scored.
TEST_P(IndexScoring, LooksAtQueriesOnlyWhereThereIsAChoice) {
  for (const float off : {1.015625f, 0x1p-133f}) {
    IndexShape shape{.topk = 10, .wants_scores = false};
    IndexCase c(shape, 11, {10, 11}, 56);
    for (const size_t row : {0, 1}) {
      c.q[row * 4 * 32 + 40] = ToBf16(off);
      c.q[row * 4 * 32 + 41] = ToBf16(6.0f);
    }
    EXPECT_EQ(c.Run(backend(), false, {}, 0).selection.back(), 9);
    EXPECT_DEATH(c.Run(backend(), false, {}, 1), "CHECK failed");
  }
}

DI_INSTANTIATE_CPU_VARIANTS(IndexScoring);

}  // namespace
}  // namespace deepinfer
