#include "kernels/compressor/compressor.h"

#include <gtest/gtest.h>

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

TEST(Compressor, CpuEqualsTheOracleBitForBit) {
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
          EXPECT_EQ(CompressRows(rows, ratio, dim, {}), want);
          EXPECT_EQ(CompressRows(rows, ratio, dim, {.threads = &two}), want);
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

}  // namespace
}  // namespace deepinfer
