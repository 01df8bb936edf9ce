#include "kernels/quantise/quantise.h"

#include <gtest/gtest.h>

#include "kernels/testing/batch.h"
#include "kernels/testing/data.h"
#include "kernels/testing/real_checks.h"

namespace deepinfer::testing {
namespace {

std::vector<bf16> Quantised(const Backend& backend, const std::vector<bf16>& x, int32_t dim) {
  Guarded<bf16> out(static_cast<int64_t>(x.size()));
  Quantise(backend, {.num_tokens = static_cast<int32_t>(x.size()) / dim,
                     .dim = dim,
                     .x = x.data(),
                     .out = out.data()});
  EXPECT_TRUE(out.GuardsIntact());
  return out.ToVector();
}

TEST(Quantise, GivesTheStoredBits) {
  const nlohmann::json checks = RealChecks();
  int num_cases = 0;
  for (const auto& check : checks["quantisers"]) {
    if (check["kind"] != "fp8_group32_e8m0") continue;
    std::vector<bf16> in, expected;
    for (const auto& bits : check["in_bf16"]) in.push_back({bits.get<uint16_t>()});
    for (const auto& bits : check["out_bf16"]) expected.push_back({bits.get<uint16_t>()});
    EXPECT_TRUE(Quantised(kRef, in, 32) == expected) << num_cases;
    EXPECT_TRUE(Quantised(kCpu, in, 32) == expected) << num_cases;
    ++num_cases;
  }
  EXPECT_EQ(num_cases, 11);
}

// For every largest magnitude there is: 31 random smaller values beside it.
TEST(Quantise, MatchesTheOracleBitForBitForEveryLargestMagnitude) {
  Random random(1);
  std::vector<bf16> x;
  for (uint32_t amax = 0; amax < 0x7f80; ++amax) {
    x.push_back({static_cast<uint16_t>(amax | (random.Below(2) << 15))});
    const uint32_t span = std::min(amax + 1, uint32_t{14} << 7);  // down to 2^-14 of the largest
    for (int i = 1; i < 32; ++i) {
      const auto below = static_cast<uint32_t>(random.Below(static_cast<int32_t>(span)));
      x.push_back({static_cast<uint16_t>((amax - below) | (random.Below(2) << 15))});
    }
  }
  EXPECT_TRUE(Quantised(kCpu, x, 32) == Quantised(kRef, x, 32));
}

TEST(Quantise, TheLargestMagnitudeMayLieAnywhere) {
  Random random(6);
  for (size_t place = 0; place < 32; ++place) {
    for (const float largest : {-3000.0f, 3000.0f, INFINITY}) {
      std::vector<bf16> x = MakeBf16(DataKind::kHotOutlier, 1, 32, random);
      x[place] = ToBf16(largest);
      EXPECT_TRUE(Quantised(kCpu, x, 32) == Quantised(kRef, x, 32)) << place << " " << largest;
    }
  }
}

TEST(Quantise, ChoosesTheNearestGridPoint) {
  Random random(2);
  const std::vector<bf16> x = MakeBf16(DataKind::kNormal, 40, 64, random);
  const std::vector<bf16> out = Quantised(kRef, x, 64);
  for (size_t group = 0; group < x.size(); group += 32) {
    float amax = 0;
    for (size_t i = group; i < group + 32; ++i) amax = std::fmax(amax, std::fabs(ToFloat(x[i])));
    const double scale = std::exp2(std::ceil(std::log2(amax / 448.0)));
    for (size_t i = group; i < group + 32; ++i) {
      double best = 1e300;
      for (int code = 0; code < 256; ++code) {
        if (IsE4m3Nan(static_cast<uint8_t>(code))) continue;
        const double point = E4m3ToFloat(static_cast<uint8_t>(code)) * scale;
        best = std::min(best, std::fabs(point - AsDouble(x[i])));
      }
      EXPECT_EQ(std::fabs(AsDouble(out[i]) - AsDouble(x[i])), best);
    }
  }
}

TEST(Quantise, NanAndInfinityStayInTheirGroup) {
  Random random(3);
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    std::vector<bf16> x = MakeBf16(DataKind::kNormal, 1, 96, random);
    x[40] = ToBf16(bad);
    for (const Backend& backend : {kRef, kCpu}) {
      const std::vector<bf16> out = Quantised(backend, x, 96);
      for (size_t i = 0; i < 96; ++i) EXPECT_EQ(std::isnan(ToFloat(out[i])), i / 32 == 1) << i;
    }
  }
}

TEST(Quantise, IsIdempotentAndMayWriteOverItsInput) {
  Random random(4);
  for (const DataKind kind : kAllDataKinds) {
    const std::vector<bf16> x = MakeBf16(kind, 5, 160, random);
    std::vector<bf16> y = x;
    Quantise(kCpu, {.num_tokens = 5, .dim = 160, .x = y.data(), .out = y.data()});
    EXPECT_TRUE(y == Quantised(kRef, x, 160));
    EXPECT_TRUE(y == Quantised(kCpu, y, 160));
    EXPECT_TRUE(kind == DataKind::kNormal ? !(y == x) : true) << "nothing was rounded";
  }
}

TEST(Quantise, RowsDoNotDependOnTheBatch) {
  Random random(5);
  const std::vector<bf16> x = MakeBf16(DataKind::kHotOutlier, kMostRows, 96, random);
  ExpectBatchInvariant<bf16>(
      kMostRows, 96, [&](const Backend& backend, int32_t begin, int32_t count, bf16* out) {
        Quantise(backend, {.num_tokens = count, .dim = 96, .x = x.data() + begin * 96, .out = out});
      });
}

}  // namespace
}  // namespace deepinfer::testing
