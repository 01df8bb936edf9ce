#include "kernels/compressor/compressor.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/testing/batch.h"
#include "kernels/testing/compare.h"
#include "kernels/testing/data.h"

namespace deepinfer {
namespace {

using testing::DataKind;
using testing::Guarded;
using testing::Random;

std::vector<bf16> CompressRows(const std::vector<const float*>& rows, int32_t ratio, int32_t dim,
                               const Backend& backend) {
  const auto entries = static_cast<int32_t>(std::ssize(rows)) / ratio;
  Guarded<bf16> out(int64_t{entries} * dim);
  Compress(
      backend,
      {.num_entries = entries, .ratio = ratio, .dim = dim, .rows = rows.data(), .out = out.data()});
  EXPECT_TRUE(out.GuardsIntact());
  return out.ToVector();
}

// The exponentials differ in the last place of an F32, so a BF16 result may, rarely, round
// otherwise.
TEST(Compressor, CpuAgreesWithTheOracle) {
  ThreadPool two(2);
  Random random(5);
  for (const int32_t ratio : {2, 4}) {
    for (const int32_t dim : {64, 512, 100}) {
      for (const int32_t entries : {1, 3, 33}) {
        for (const DataKind kind : testing::kAllDataKinds) {
          const auto values = testing::MakeFloats(kind, int64_t{entries} * ratio, 2 * dim, random);
          std::vector<const float*> rows;  // in an order that no stride explains
          for (int32_t i = 0; i < entries * ratio; ++i) {
            rows.push_back(values.data() + int64_t{entries * ratio - 1 - i} * 2 * dim);
          }
          const auto want = CompressRows(rows, ratio, dim, {.variant = kRefVariant});
          const auto got = CompressRows(rows, ratio, dim, {});
          EXPECT_GE(testing::EqualShare(got, want), 0.995) << dim << " " << static_cast<int>(kind);
          EXPECT_LT(testing::Compare(got, want).rel_l2, 1e-4)
              << dim << " " << static_cast<int>(kind);
          EXPECT_EQ(CompressRows(rows, ratio, dim, {.threads = &two}), got);
        }
      }
    }
  }
}

TEST(Compressor, WeightsAreASoftmaxPerChannel) {
  // Channel 0: equal gates, the mean. Channel 1: the second token wins by e^100.
  const float first[] = {1, 2, 5, -50}, second[] = {3, 4, 5, 50};
  for (const VariantId variant : {kRefVariant, kCpuVariant}) {
    const auto out = CompressRows({first, second}, 2, 2, {.variant = variant});
    EXPECT_EQ(ToFloat(out[0]), 2.0f);
    EXPECT_EQ(ToFloat(out[1]), 4.0f);
  }
}

TEST(Compressor, BrokenLogitsStayInTheirChannel) {
  constexpr int32_t kDim = 13;  // a whole vector and a part
  Random random(6);
  const auto good = testing::MakeFloats(DataKind::kNormal, 3, 2 * kDim, random);
  const auto run = [](const std::vector<float>& values, VariantId variant) {
    std::vector<const float*> rows;
    for (int k = 0; k < 3; ++k) rows.push_back(values.data() + int64_t{k} * 2 * kDim);
    return CompressRows(rows, 3, kDim, {.variant = variant});
  };
  const auto expected = run(good, kCpuVariant);
  for (const float bad : {std::nanf(""), INFINITY, -INFINITY, 3e38f, -3e38f}) {
    for (int32_t token = 0; token < 3; ++token) {
      for (int32_t c = 0; c < kDim; ++c) {
        auto values = good;
        values[(token * 2 + 1) * kDim + c] = bad;
        const auto got = run(values, kCpuVariant), want = run(values, kRefVariant);
        for (int32_t i = 0; i < kDim; ++i) {
          EXPECT_LE(testing::UlpDistance(got[i], i == c ? want[i] : expected[i]), i == c ? 1 : 0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace deepinfer
