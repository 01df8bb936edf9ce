#include "kernels/rms_norm/rms_norm.h"

#include <gtest/gtest.h>

#include "kernels/testing/batch.h"
#include "kernels/testing/data.h"

namespace deepinfer::testing {
namespace {

constexpr float kEps = 1e-20f;

// Rows [0, num_tokens) of x, `gap` unused elements between rows.
std::vector<bf16> Normalise(const Backend& backend, const std::vector<bf16>& x,
                            const std::vector<bf16>& gain, int32_t num_tokens) {
  const auto dim = static_cast<int32_t>(gain.size());
  Guarded<bf16> out(int64_t{num_tokens} * dim);
  RmsNorm(backend, {.num_tokens = num_tokens,
                    .dim = dim,
                    .eps = kEps,
                    .x = x.data(),
                    .x_stride = dim,
                    .gain = gain.data(),
                    .out = out.data()});
  EXPECT_TRUE(out.GuardsIntact());
  return out.ToVector();
}

TEST(RmsNorm, MatchesTheOracleForEveryWidthAndKindOfData) {
  for (const int32_t dim : {5, 32, 128, 512, 1280, 5120}) {
    for (const DataKind kind : kAllDataKinds) {
      Random random(static_cast<uint64_t>(dim));
      const std::vector<bf16> x = MakeBf16(kind, 9, dim, random);
      const std::vector<bf16> gain = MakeBf16(DataKind::kNormal, 1, dim, random);
      const std::vector<bf16> cpu = Normalise(kCpu, x, gain, 9), ref = Normalise(kRef, x, gain, 9);
      EXPECT_LE(WorstUlp(cpu, ref), 1) << dim << " " << static_cast<int>(kind);
      EXPECT_GE(EqualShare(cpu, ref), 0.995) << dim << " " << static_cast<int>(kind);
    }
  }
}

TEST(RmsNorm, OracleFollowsTheFormula) {
  Random random(3);
  const int32_t dim = 96;
  const std::vector<bf16> x = MakeBf16(DataKind::kNormal, 1, dim, random);
  const std::vector<bf16> gain = MakeBf16(DataKind::kNormal, 1, dim, random);
  const std::vector<bf16> out = Normalise(kRef, x, gain, 1);
  double squares = 0;
  for (const bf16 v : x) squares += AsDouble(v) * AsDouble(v);
  std::vector<double> expected;
  for (int32_t d = 0; d < dim; ++d)
    expected.push_back(AsDouble(gain[d]) * AsDouble(x[d]) / std::sqrt(squares / dim));
  EXPECT_LT(Compare(out, expected).rel_l2, 2e-3);
  std::vector<double> wrong = expected;  // eps of 1e-6 instead of 1e-20 on a small row
  for (double& v : wrong) v *= 1.01;
  EXPECT_GT(Compare(out, wrong).rel_l2, 2e-3);
}

// Rows (1, 1, 1, 1, 1, 3, 3, 3) have the RMS 2, so every product is exact and many are BF16 ties.
TEST(RmsNorm, RoundsToNearestEven) {
  std::vector<bf16> x, gain;
  std::vector<bf16> expected;
  for (int i = 0; i < 128; ++i) {
    const float value = i % 8 >= 5 ? 3 : 1, factor = static_cast<float>(128 + i) / 128;
    x.push_back(ToBf16(value));
    gain.push_back(ToBf16(i % 2 == 0 ? factor : -factor));
    expected.push_back(ToBf16(ToFloat(gain.back()) * value / 2));
  }
  EXPECT_TRUE(Normalise(kRef, x, gain, 1) == expected);
  EXPECT_TRUE(Normalise(kCpu, x, gain, 1) == expected);
}

TEST(RmsNorm, AZeroRowGivesZeros) {
  const std::vector<bf16> x(64, bf16{0}), gain(64, ToBf16(2.0f));
  for (const Backend& backend : {kRef, kCpu}) {
    for (const bf16 v : Normalise(backend, x, gain, 1)) EXPECT_EQ(v.bits, 0);
  }
}

TEST(RmsNorm, ASmallRowIsNotLostInEps) {
  const std::vector<bf16> x(64, ToBf16(0x1p-20f)), gain(64, ToBf16(1.0f));
  for (const Backend& backend : {kRef, kCpu}) {
    for (const bf16 v : Normalise(backend, x, gain, 1)) EXPECT_EQ(ToFloat(v), 1.0f);
  }
}

TEST(RmsNorm, RowsDoNotDependOnTheBatch) {
  Random random(4);
  const int32_t dim = 136, stride = 150;
  const std::vector<bf16> x = MakeBf16(DataKind::kHotOutlier, kMostRows, stride, random);
  const std::vector<bf16> gain = MakeBf16(DataKind::kNormal, 1, dim, random);
  ExpectBatchInvariant<bf16>(kMostRows, dim,
                             [&](const Backend& backend, int32_t begin, int32_t count, bf16* out) {
                               RmsNorm(backend, {.num_tokens = count,
                                                 .dim = dim,
                                                 .eps = kEps,
                                                 .x = x.data() + begin * stride,
                                                 .x_stride = stride,
                                                 .gain = gain.data(),
                                                 .out = out});
                             });
}

TEST(RmsNorm, MayWriteOverItsInput) {
  Random random(5);
  std::vector<bf16> x = MakeBf16(DataKind::kNormal, 3, 128, random);
  const std::vector<bf16> gain = MakeBf16(DataKind::kNormal, 1, 128, random);
  const std::vector<bf16> expected = Normalise(kCpu, x, gain, 3);
  RmsNorm(kCpu, {.num_tokens = 3,
                 .dim = 128,
                 .eps = kEps,
                 .x = x.data(),
                 .x_stride = 128,
                 .gain = gain.data(),
                 .out = x.data()});
  EXPECT_TRUE(x == expected);
}

}  // namespace
}  // namespace deepinfer::testing
