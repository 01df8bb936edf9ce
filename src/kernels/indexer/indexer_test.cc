#include "kernels/indexer/indexer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <numeric>
#include <tuple>

#include "kernels/cpu/scratch.h"
#include "kernels/testing/index_case.h"

namespace deepinfer {
namespace {

using testing::DataKind;
using testing::IndexCase;
using testing::IndexResult;
using testing::IndexShape;

constexpr VariantId kBoth[] = {kRefVariant, kCpuVariant};
const IndexShape kToy{};
const IndexShape kReal{.heads = 32, .dim = 128, .topk = 512, .block_size = 8, .topk_blocks = 2048};

// Scores of all visible entries of a row, from the op itself (topk = all).
std::vector<float> AllScores(const IndexCase& c, int32_t row, const Backend& backend) {
  const int32_t visible = c.visible()[static_cast<size_t>(row)];
  return visible == 0 ? std::vector<float>() : c.Run(backend, false, {}, row, visible).scores;
}

// The `count` best indices by score, lowest first among equals; ascending, padded to `size`.
std::vector<int32_t> Best(const std::vector<float>& scores, std::vector<int32_t> indices,
                          int32_t count) {
  std::stable_sort(indices.begin(), indices.end(), [&](int32_t a, int32_t b) {
    return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
  });
  if (std::ssize(indices) > count) indices.resize(static_cast<size_t>(count));
  std::sort(indices.begin(), indices.end());
  indices.resize(static_cast<size_t>(count), -1);
  return indices;
}

std::vector<int32_t> Iota(size_t n) {
  std::vector<int32_t> indices(n);
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

std::vector<int32_t> BestBlocks(const IndexShape& shape, const std::vector<float>& scores) {
  const size_t size = static_cast<size_t>(shape.block_size);
  std::vector<float> blocks((scores.size() + size - 1) / size, -INFINITY);
  for (size_t j = 0; j < scores.size(); ++j) {
    blocks[j / size] = std::max(blocks[j / size], scores[j]);
  }
  if (!blocks.empty()) blocks.back() = INFINITY;
  return Best(blocks, Iota(blocks.size()), shape.topk_blocks);
}

std::vector<int32_t> EntriesOf(const IndexShape& shape, const int32_t* blocks, int32_t visible) {
  std::vector<int32_t> entries;
  for (int32_t b = 0; b < shape.topk_blocks && blocks[b] >= 0; ++b) {
    for (int32_t i = 0; i < shape.block_size; ++i) {
      const int32_t entry = blocks[b] * shape.block_size + i;
      if (entry < visible) entries.push_back(entry);
    }
  }
  return entries;
}

template <typename T>
std::vector<T> RowOf(const std::vector<T>& all, int32_t row, int32_t width) {
  return {all.begin() + row * width, all.begin() + (row + 1) * width};
}

// Both levels of every row against a plain sort of the scores.
void ExpectChoices(const IndexCase& c, const Backend& backend) {
  const IndexShape& shape = c.shape();
  const IndexResult first = c.Run(backend, true, {});
  const IndexResult second = c.Run(backend, false, first.blocks);
  for (int32_t t = 0; t < std::ssize(c.visible()); ++t) {
    const std::vector<float> scores = AllScores(c, t, backend);
    EXPECT_EQ(RowOf(first.selection, t, shape.topk), Best(scores, Iota(scores.size()), shape.topk))
        << "row " << t;
    const auto blocks = RowOf(first.blocks, t, shape.topk_blocks);
    EXPECT_EQ(blocks, BestBlocks(shape, scores)) << "row " << t;
    const auto entries = EntriesOf(shape, blocks.data(), static_cast<int32_t>(std::ssize(scores)));
    EXPECT_EQ(RowOf(second.selection, t, shape.topk), Best(scores, entries, shape.topk))
        << "row " << t;
  }
}

std::vector<int32_t> Rows(int32_t count, int32_t last_visible) {
  std::vector<int32_t> visible;
  for (int32_t t = 0; t < count; ++t) visible.push_back(std::max(0, last_visible - count + 1 + t));
  return visible;
}

TEST(Indexer, CpuChoosesAsTheOracle) {
  ThreadPool two(2);
  for (const IndexScores scores : {IndexScores::kOfficial, IndexScores::kF32}) {
    for (const DataKind kind : testing::kAllDataKinds) {
      for (const auto& [heads, dim, ratio] : {std::tuple{4, 32, 1}, {3, 64, 2}, {32, 128, 1}}) {
        IndexShape shape{.heads = heads, .dim = dim, .ratio = ratio, .scores = scores};
        shape.kind = kind;
        const IndexCase c(shape, 150, Rows(24, 150), 31);
        const IndexResult want = c.Run({.variant = kRefVariant}, true, {});
        EXPECT_EQ(c.Run({}, true, {}), want) << static_cast<int>(kind) << " " << dim;
        EXPECT_EQ(c.Run({.threads = &two}, true, {}), want);
        EXPECT_EQ(c.Run({}, false, want.blocks),
                  c.Run({.variant = kRefVariant}, false, want.blocks));
      }
    }
  }
}

TEST(Indexer, ChoicesAreThoseOfAPlainSort) {
  for (const VariantId variant : kBoth) {
    for (const DataKind kind : {DataKind::kNormal, DataKind::kZero, DataKind::kInteger}) {
      IndexShape shape = kToy;
      shape.kind = kind;
      // From no visible entry to well past the 8 x 4 candidates.
      ExpectChoices(IndexCase(shape, 140, Rows(141, 140), 32), {.variant = variant});
    }
  }
}

TEST(Indexer, RowsDoNotDependOnBatchOrThreads) {
  ThreadPool two(2), three(3);
  for (const VariantId variant : kBoth) {
    const IndexCase c(kToy, 600, Rows(5, 600), 33);
    const IndexResult all = c.Run({.variant = variant}, true, {});
    for (int32_t t = 0; t < 5; ++t) {
      for (ThreadPool* threads : {static_cast<ThreadPool*>(nullptr), &two, &three}) {
        const IndexResult alone = c.Run({.variant = variant, .threads = threads}, true, {}, t);
        EXPECT_EQ(alone.selection, RowOf(all.selection, t, kToy.topk));
        EXPECT_EQ(alone.scores, RowOf(all.scores, t, kToy.topk));
        EXPECT_EQ(alone.blocks, RowOf(all.blocks, t, kToy.topk_blocks));
      }
    }
  }
}

// The real geometry past 2048 x 8 entries, where the filter really removes something.
TEST(Indexer, RealCandidateFilter) {
  ThreadPool two(2);
  const IndexCase c(kReal, 17003, {17003}, 34);
  const Backend fast{.threads = &two};
  ExpectChoices(c, fast);
  const IndexResult first = c.Run(fast, true, {});
  EXPECT_EQ(first, c.Run({.variant = kRefVariant}, true, {}));
  EXPECT_GE(first.blocks[0], 0);
  EXPECT_EQ(first.blocks.back(), 17002 / 8);  // the newest, forced in
  EXPECT_EQ(c.Run(fast, false, first.blocks), c.Run({.variant = kRefVariant}, false, first.blocks));
}

TEST(Indexer, NewestBlockIsForcedInWhateverItsScore) {
  IndexShape shape = kToy;
  shape.topk_blocks = 1;
  for (const VariantId variant : kBoth) {
    const IndexCase c(shape, 64, Rows(30, 64), 35);
    const IndexResult result = c.Run({.variant = variant}, true, {});
    for (size_t t = 0; t < 30; ++t) EXPECT_EQ(result.blocks[t], (c.visible()[t] - 1) / 4);
  }
}

TEST(Indexer, TiesGoToTheLowestIndex) {
  IndexShape shape = kToy;
  shape.kind = DataKind::kZero;
  for (const VariantId variant : kBoth) {
    const IndexCase c(shape, 100, {100}, 36);
    const IndexResult result = c.Run({.variant = variant}, true, {});
    EXPECT_EQ(result.selection, Iota(8));
    EXPECT_EQ(result.blocks, (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 24}));
  }
}

// One head, weight 1: BF16 rounding points by hand, and none of them with kF32.
TEST(Indexer, RoundsWhereTheOfficialArithmeticDoes) {
  for (const VariantId variant : kBoth) {
    for (const IndexScores scores : {IndexScores::kOfficial, IndexScores::kF32}) {
      IndexShape shape{.heads = 2, .dim = 128, .topk = 1, .scores = scores};
      shape.kind = DataKind::kNormal;
      IndexCase c(shape, 40, std::vector<int32_t>(20, 40), 37);
      for (int32_t t = 0; t < 20; ++t) {
        std::vector<float> key(128);
        const auto all = AllScores(c, t, {.variant = variant});
        for (int32_t j = 0; j < 40; ++j) {
          DecodeIndexKey(c.source().IndexKey(j, 128), c.source().IndexScale(j, 128), 128,
                         key.data());
          double exact = 0;
          float official = 0;
          for (int32_t h = 0; h < 2; ++h) {
            const auto head = static_cast<size_t>(2 * t + h);
            double dot = 0;
            for (size_t i = 0; i < 128; ++i) dot += double{ToFloat(c.q[head * 128 + i])} * key[i];
            const float w = ToFloat(c.weights[head]);
            exact += std::fmax(dot, 0) * w;
            const float rounded = std::fmax(ToFloat(ToBf16(static_cast<float>(dot))), 0.0f);
            official += ToFloat(ToBf16(rounded * w));
          }
          const float want =
              scores == IndexScores::kF32 ? static_cast<float>(exact) : ToFloat(ToBf16(official));
          EXPECT_EQ(all[static_cast<size_t>(j)], want) << t << " " << j;
        }
      }
    }
  }
}

TEST(Indexer, OfficialRoundingStaysWithinItsLimit) {
  IndexShape official = kReal, exact = kReal;
  exact.scores = IndexScores::kF32;
  const IndexCase a(official, 600, {600}, 38), b(exact, 600, {600}, 38);
  const auto rounded = AllScores(a, 0, {}), plain = AllScores(b, 0, {});
  const double rel_l2 = testing::Compare(rounded, plain).rel_l2;
  EXPECT_LT(rel_l2, 5e-3);  // model.md 3.6 measured 2.8e-3
  EXPECT_GT(rel_l2, 1e-4);
}

TEST(Indexer, BrokenNumbersEndInAFullSelection) {
  for (const VariantId variant : kBoth) {
    for (const uint16_t bad : {uint16_t{0x7fc0}, uint16_t{0x7f80}, uint16_t{0xff80}}) {
      IndexCase weights(kToy, 50, {50}, 39), queries(kToy, 50, {50}, 39);
      weights.weights[0] = {bad};
      queries.q[3] = {bad};
      EXPECT_TRUE(std::ranges::all_of(weights.Run({.variant = variant}, true, {}).selection,
                                      [](int32_t j) { return j >= 0 && j < 50; }));
      EXPECT_TRUE(std::ranges::all_of(queries.Run({.variant = variant}, true, {}).selection,
                                      [](int32_t j) { return j >= 0 && j < 50; }));
    }
    IndexCase keys(kToy, 50, {50}, 39);
    keys.source().IndexScale(7, 32)[0] = kE8m0Nan;
    const auto selection = keys.Run({.variant = variant}, true, {}).selection;
    EXPECT_EQ(std::ranges::count(selection, 7), 0);  // ranks below every number
  }
}

TEST(IndexQuery, CpuEqualsTheOracleForEveryBf16) {
  ThreadPool two(2);
  std::vector<bf16> x;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) x.push_back({static_cast<uint16_t>(bits)});
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    x.push_back({static_cast<uint16_t>(bits * 40503u)});
  }
  const auto run = [&](const Backend& backend) {
    testing::Guarded<bf16> buffer(std::ssize(x));
    std::copy(x.begin(), x.end(), buffer.data());
    QuantiseIndexQuery(backend, {.num_rows = 1024, .dim = 128, .x = buffer.data()});
    EXPECT_TRUE(buffer.GuardsIntact());
    return buffer.ToVector();
  };
  const auto want = run({.variant = kRefVariant});
  EXPECT_EQ(run({}), want);
  EXPECT_EQ(run({.threads = &two}), want);
}

TEST(IndexQuery, IsWhatAKeyOfTheSameValuesDecodesTo) {
  testing::Random random(40);
  std::vector<bf16> x = testing::MakeBf16(DataKind::kNormal, 1, 128, random);
  std::vector<uint8_t> record(68);
  uint8_t *key = record.data(), *scale = key + 64;
  WriteIndexKey({}, {.num_rows = 1, .dim = 128, .x = x.data(), .keys = &key, .scales = &scale});
  std::vector<float> decoded(128);
  DecodeIndexKey(key, scale, 128, decoded.data());
  QuantiseIndexQuery({}, {.num_rows = 1, .dim = 128, .x = x.data()});
  for (size_t i = 0; i < 128; ++i) EXPECT_EQ(ToFloat(x[i]), decoded[i]);
}

// A budget cuts long rows into tiles. Rows here have 9 to 3,000 candidates against 8 chosen ones,
// in tiles from 16 entries up, which end inside blocks, too.
TEST(IndexSelect, TilesChangeNothingAndKeepTheBudget) {
  for (const IndexScores scores : {IndexScores::kOfficial, IndexScores::kF32}) {
    IndexShape shape = kToy;
    shape.scores = scores;
    shape.block_size = 7;
    IndexCase c(shape, 3000, {0, 1, 9, 17, 1000, 2047, 2999, 3000}, 77);
    ThreadPool pool(2);
    const Backend backend{.threads = &pool};
    const auto run = [&](int64_t scratch_bytes) {
      c.set_scratch_bytes(scratch_bytes);
      pool.OnEveryThread([] { ThreadScratch::Mine().ResetPeak(); });
      const IndexResult first = c.Run(backend, true, {});
      IndexResult alone = c.Run(backend, true, {}, 7);  // one row: the threads share its entries
      std::atomic<int64_t> used{0};
      pool.OnEveryThread([&] { used += ThreadScratch::Mine().peak_bytes(); });
      const IndexResult second = c.Run(backend, false, first.blocks);
      return std::tuple(first, second, alone, used.load());
    };
    const auto [first, second, alone, untiled_bytes] = run(0);
    EXPECT_GT(untiled_bytes, 3000 * 16);
    for (const int64_t budget : {1, 6000, 9000, 30000, 90000, 1 << 20}) {
      const auto [a, b, c1, used] = run(budget);
      EXPECT_EQ(a, first) << budget;
      EXPECT_EQ(b, second) << budget;
      EXPECT_EQ(c1, alone) << budget;
      EXPECT_LE(used, std::max<int64_t>(budget, 6000)) << budget;
    }
  }
}

}  // namespace
}  // namespace deepinfer
