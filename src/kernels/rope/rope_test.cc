#include "kernels/rope/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "kernels/testing/compare.h"
#include "kernels/testing/data.h"

namespace deepinfer {
namespace {

using testing::BitEqual;
using testing::DataKind;
using testing::Guarded;
using testing::Random;

const RopeScaling kYarn{.factor = 16, .beta_fast = 32, .beta_slow = 1, .original_positions = 65536};

nlohmann::json RopeVectors() {
  std::ifstream file(DI_SOURCE_DIR "/tests/golden/real_checks.json");
  return nlohmann::json::parse(file).at("rope");
}

// The stored lists come from a vectorised power function that misses the correct rounding by one
// unit in the last place at the pairs that model.md 3.3 names; everywhere else they are equal.
void ExpectStoredFrequencies(const std::vector<float>& ours, const nlohmann::json& stored,
                             const std::set<size_t>& variants) {
  ASSERT_EQ(ours.size(), stored.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    const auto value = static_cast<float>(stored[i].get<double>());
    if (variants.count(i) != 0) {
      EXPECT_NE(ours[i], value) << i;
      EXPECT_LE(std::fabs(ours[i] - value), 1.2e-7f * value) << i;
    } else {
      EXPECT_EQ(ours[i], value) << i;
    }
  }
}

TEST(RopeFrequencies, EqualTheStoredListsExceptWhereThoseAreOffByOneUlp) {
  const nlohmann::json vectors = RopeVectors();
  ExpectStoredFrequencies(RopeFrequencies(64, 160000, &kYarn), vectors["ratio_pos_freqs"],
                          {3, 11, 15});
  ExpectStoredFrequencies(RopeFrequencies(64, 10000, nullptr), vectors["ratio0_freqs"],
                          {4, 6, 15, 18, 21});
}

TEST(RopeFrequencies, MatchTheWrittenValues) {  // model.md 7b
  const std::vector<float> yarn = RopeFrequencies(64, 160000, &kYarn);
  const std::pair<size_t, double> yarn_values[] = {{0, 1},
                                                   {1, 6.876560e-1},
                                                   {15, 3.635539e-3},
                                                   {16, 2.265625e-3},
                                                   {20, 2.969778e-4},
                                                   {24, 1.953125e-5},
                                                   {25, 5.372313e-6},
                                                   {31, 5.680529e-7}};
  for (const auto& [i, value] : yarn_values) EXPECT_NEAR(yarn[i], value, 5e-7 * value) << i;
  const std::vector<float> plain = RopeFrequencies(64, 10000, nullptr);
  const std::pair<size_t, double> plain_values[] = {
      {1, 7.498942e-1}, {16, 1e-2}, {31, 1.333521e-4}};
  for (const auto& [i, value] : plain_values) EXPECT_NEAR(plain[i], value, 5e-7 * value) << i;
}

TEST(RopeFrequencies, BlendRangeFollowsTheConfiguration) {
  // rope_dim 16, 256 positions: low = 0, high = 3, so pair 0 is kept and pairs 3.. are divided.
  const RopeScaling tiny{.factor = 16, .original_positions = 256};
  const std::vector<float> scaled = RopeFrequencies(16, 160000, &tiny);
  const std::vector<float> plain = RopeFrequencies(16, 160000, nullptr);
  EXPECT_EQ(scaled[0], plain[0]);
  EXPECT_NEAR(scaled[1], plain[1] * (2.0 / 3 + 1.0 / 48), 1e-6 * plain[1]);
  for (size_t i = 3; i < 8; ++i) EXPECT_EQ(scaled[i], plain[i] / 16) << i;
  // No room between low and high: a step, not a division by zero.
  const RopeScaling narrow{.factor = 4, .beta_fast = 1, .beta_slow = 1, .original_positions = 6};
  for (const float f : RopeFrequencies(16, 160000, &narrow)) EXPECT_TRUE(std::isfinite(f));
  const RopeScaling none{.factor = 1};
  EXPECT_EQ(RopeFrequencies(16, 160000, &none), plain);
}

TEST(RopeCosSin, case_R23_TableEqualsTheStoredVectors) {
  const std::vector<float> freqs = RopeFrequencies(64, 160000, &kYarn);
  const nlohmann::json vectors = RopeVectors();
  for (const nlohmann::json& row : vectors["cos_sin_at"]) {
    const int32_t position = row["pos"];
    float cos[32], sin[32];
    RopeCosSin(freqs, &position, 1, cos, sin);
    for (size_t i = 0; i < 32; ++i) {
      EXPECT_NEAR(cos[i], row["cos"][i].get<double>(), 3e-8) << position << " " << i;
      EXPECT_NEAR(sin[i], row["sin"][i].get<double>(), 3e-8) << position << " " << i;
    }
  }
}

struct RopeCase {
  int32_t tokens, heads, head_dim, rope_dim;
};

std::vector<bf16> Rotate(const RopeCase& c, const std::vector<bf16>& x, const Backend& backend,
                         bool inverse = false) {
  std::vector<int32_t> positions;
  for (int32_t t = 0; t < c.tokens; ++t) positions.push_back(t * 977 % 100000);
  const std::vector<float> freqs = RopeFrequencies(c.rope_dim, 10000, nullptr);
  std::vector<float> cos(positions.size() * freqs.size()), sin(cos.size());
  RopeCosSin(freqs, positions.data(), c.tokens, cos.data(), sin.data());
  Guarded<bf16> buffer(std::ssize(x));
  std::copy(x.begin(), x.end(), buffer.data());
  Rope(backend, {.num_tokens = c.tokens,
                 .num_heads = c.heads,
                 .head_dim = c.head_dim,
                 .rope_dim = c.rope_dim,
                 .cos = cos.data(),
                 .sin = sin.data(),
                 .inverse = inverse,
                 .x = buffer.data()});
  EXPECT_TRUE(buffer.GuardsIntact());
  return buffer.ToVector();
}

constexpr RopeCase kCases[] = {{1, 64, 512, 64},  {5, 64, 512, 64}, {65, 1, 512, 64},
                               {33, 32, 128, 64}, {7, 4, 64, 16},   {3, 3, 32, 6},
                               {0, 4, 64, 16}};

TEST(Rope, CpuEqualsTheOracleBitForBit) {
  ThreadPool two(2);
  Random random(1);
  for (const RopeCase& c : kCases) {
    for (const DataKind kind : testing::kAllDataKinds) {
      for (const bool inverse : {false, true}) {
        const auto x = testing::MakeBf16(kind, int64_t{c.tokens} * c.heads, c.head_dim, random);
        const auto want = Rotate(c, x, {.variant = kRefVariant}, inverse);
        EXPECT_EQ(Rotate(c, x, {}, inverse), want) << c.tokens << " " << static_cast<int>(kind);
        EXPECT_EQ(Rotate(c, x, {.threads = &two}, inverse), want);
      }
    }
  }
}

TEST(Rope, TurnsAdjacentPairsOfTheLastDimsOnly) {
  const RopeCase c{2, 1, 8, 4};
  std::vector<bf16> x(16, ToBf16(0.0f));
  x[0] = x[8] = ToBf16(1.0f);   // outside the rotated part
  x[4] = x[12] = ToBf16(1.0f);  // first of pair 0
  for (const VariantId variant : {kRefVariant, kCpuVariant}) {
    const auto y = Rotate(c, x, {.variant = variant});
    EXPECT_EQ(y[0], ToBf16(1.0f));
    EXPECT_EQ(y[4], ToBf16(1.0f));  // position 0
    EXPECT_EQ(y[12], ToBf16(std::cos(977.0f)));
    EXPECT_EQ(y[13], ToBf16(std::sin(977.0f)));
    EXPECT_EQ(ToFloat(y[14]), 0);
    EXPECT_EQ(ToFloat(y[15]), 0);
  }
}

TEST(Rope, InverseUndoesIt) {
  const RopeCase c{9, 2, 128, 64};
  Random random(2);
  const auto x = testing::MakeBf16(DataKind::kNormal, 18, 128, random);
  const auto back = Rotate(c, Rotate(c, x, {}), {}, true);
  EXPECT_LT(testing::Compare(back, x).rel_l2, 3e-3);  // two BF16 roundings
}

}  // namespace
}  // namespace deepinfer
