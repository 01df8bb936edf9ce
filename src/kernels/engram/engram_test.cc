#include "kernels/engram/engram.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/testing/compare.h"
#include "kernels/testing/data.h"

namespace deepinfer {
namespace {

using testing::DataKind;
using testing::Guarded;
using testing::Random;

TEST(EngramGather, DecodesRowsBitForBit) {
  ThreadPool two(2);
  Random random(6);
  for (const int32_t dim : {32, 256}) {
    constexpr int32_t kRows = 50, kTokens = 7, kColumns = 6;
    std::vector<uint8_t> data(kRows * static_cast<size_t>(dim)), scale(data.size() / 32);
    for (uint8_t& code : data) code = static_cast<uint8_t>(random.Below(127));
    for (uint8_t& e : scale) e = static_cast<uint8_t>(100 + random.Below(40));
    std::vector<int32_t> rows;
    for (int32_t i = 0; i < kTokens * kColumns; ++i) rows.push_back(random.Below(kRows));
    const auto run = [&](const Backend& backend) {
      Guarded<bf16> out(kTokens * kColumns * int64_t{dim});
      EngramGather(backend, {.num_tokens = kTokens,
                             .columns = kColumns,
                             .table = {kRows, dim, data.data(), scale.data()},
                             .rows = rows.data(),
                             .out = out.data()});
      EXPECT_TRUE(out.GuardsIntact());
      return out.ToVector();
    };
    const auto want = run({.variant = kRefVariant});
    EXPECT_EQ(run({}), want);
    EXPECT_EQ(run({.threads = &two}), want);
    // Token 1, column 2, last value: by hand.
    const auto row = static_cast<size_t>(rows[kColumns + 2]), n = static_cast<size_t>(dim);
    EXPECT_EQ(ToFloat(want[(kColumns + 2) * n + n - 1]),
              E4m3ToFloat(data[row * n + n - 1]) * E8m0ToFloat(scale[(row + 1) * (n / 32) - 1]));
  }
}

// Every code beside every scale; NaN only where the code, or 0 times the byte 255, is one.
TEST(EngramGather, DecodesEveryCodeAndScale) {
  std::vector<uint8_t> data, scale;
  std::vector<int32_t> rows;
  for (int e = 0; e < 256; ++e) {
    for (int code = 0; code < 256; ++code) data.push_back(static_cast<uint8_t>(code));
    scale.insert(scale.end(), 8, static_cast<uint8_t>(e));
    rows.push_back(e);
  }
  const auto run = [&](VariantId variant) {
    Guarded<bf16> out(256 * 256);
    EngramGather({.variant = variant}, {.num_tokens = 256,
                                        .columns = 1,
                                        .table = {256, 256, data.data(), scale.data()},
                                        .rows = rows.data(),
                                        .out = out.data()});
    EXPECT_TRUE(out.GuardsIntact());
    return out.ToVector();
  };
  const auto cpu = run(kCpuVariant), ref = run(kRefVariant);
  for (size_t i = 0; i < cpu.size(); ++i) {
    EXPECT_EQ(testing::UlpDistance(cpu[i], ref[i]), 0) << i / 256 << " " << i % 256;
    if (i / 256 < 255) {
      EXPECT_EQ(std::isnan(ToFloat(cpu[i])), i % 128 == 127) << i;
    }
  }
}

struct MixCase {
  MixCase(int32_t tokens, int32_t dim, DataKind kind, uint64_t seed) : tokens(tokens), dim(dim) {
    Random random(seed);
    kv = testing::MakeBf16(kind, int64_t{tokens} * 5, dim, random);
    q_weight = testing::MakeBf16(DataKind::kNormal, 4, dim, random);
    k_weight = testing::MakeBf16(DataKind::kNormal, 4, dim, random);
    streams = testing::MakeBf16(kind, int64_t{tokens} * 4, dim, random);
    for (int32_t t = 0; t < tokens; ++t) live.push_back(random.Below(4) != 0);
  }

  std::vector<bf16> Run(const Backend& backend, int32_t first = 0, int32_t count = -1) const {
    if (count < 0) count = tokens;
    const int64_t token = int64_t{4} * dim;
    Guarded<bf16> x(count * token);
    std::copy_n(streams.data() + first * token, count * token, x.data());
    EngramMix(backend, {.num_tokens = count,
                        .num_streams = 4,
                        .dim = dim,
                        .eps = 1e-20f,
                        .kv = kv.data() + int64_t{first} * 5 * dim,
                        .q_weight = q_weight.data(),
                        .k_weight = k_weight.data(),
                        .live = live.data() + first,
                        .streams = x.data()});
    EXPECT_TRUE(x.GuardsIntact());
    return x.ToVector();
  }

  int32_t tokens, dim;
  std::vector<bf16> kv, q_weight, k_weight, streams;
  std::vector<uint8_t> live;
};

TEST(EngramMix, CpuAgreesWithTheOracle) {
  for (const int32_t dim : {128, 5120, 100}) {
    for (const int32_t tokens : {1, 5, 17}) {
      for (const DataKind kind : testing::kAllDataKinds) {
        const MixCase c(tokens, dim, kind, 7);
        const auto want = c.Run({.variant = kRefVariant}), got = c.Run({});
        // One rounding flip of the gate moves a BF16 result by at most one step, and rarely.
        EXPECT_LT(testing::Compare(got, want).rel_l2, 2e-4) << dim << " " << static_cast<int>(kind);
        int32_t worst = 0;
        for (size_t i = 0; i < got.size(); ++i) {
          if (std::fabs(ToFloat(want[i])) < 1e-3f) continue;  // cancellation of x and gate * value
          worst = std::max(worst, testing::UlpDistance(got[i], want[i]));
        }
        EXPECT_LE(worst, 1);
      }
    }
  }
}

TEST(EngramMix, RowsDoNotDependOnBatchOrThreads) {
  ThreadPool two(2);
  const MixCase c(17, 128, DataKind::kNormal, 8);
  const auto whole = c.Run({});
  EXPECT_EQ(c.Run({}), whole);
  EXPECT_EQ(c.Run({.threads = &two}), whole);
  for (int32_t t = 0; t < 17; ++t) {
    const auto alone = c.Run({}, t, 1);
    EXPECT_TRUE(testing::BitEqual(alone.data(), whole.data() + int64_t{t} * 512, 512)) << t;
  }
}

TEST(EngramMix, DeadRowsKeepTheirStreams) {
  MixCase c(9, 64, DataKind::kNormal, 9);
  std::fill(c.live.begin(), c.live.end(), 0);
  c.kv[0] = ToBf16(std::nanf(""));
  EXPECT_EQ(c.Run({}), c.streams);
  EXPECT_EQ(c.Run({.variant = kRefVariant}), c.streams);
}

TEST(EngramMix, ZeroDotOpensTheGateByItsSign) {
  // Keys are 0, so dot = +0 and the gate is sigmoid(+1e-3), not sigmoid(0) = 1/2: with x = -value/2
  // what remains is (gate - 1/2) * value.
  MixCase c(1, 64, DataKind::kZero, 10);
  c.live = {1};
  std::fill(c.kv.end() - 64, c.kv.end(), ToBf16(1.0f));
  std::fill(c.streams.begin(), c.streams.end(), ToBf16(-0.5f));
  for (const VariantId variant : {kRefVariant, kCpuVariant}) {
    for (const bf16 x : c.Run({.variant = variant})) EXPECT_NEAR(ToFloat(x), 2.5e-4f, 1e-6f);
  }
}

}  // namespace
}  // namespace deepinfer
