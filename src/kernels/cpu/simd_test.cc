#include "kernels/cpu/simd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace deepinfer {
namespace {

float Exp(float x) { return _mm256_cvtss_f32(simd::Exp(_mm256_set1_ps(x))); }

TEST(SimdExp, IsWithinTwoUnitsOfTheLastPlace) {
  double worst = 0;
  for (float x = -86; x < 88.7f; x += 0.00137f) {
    const double exact = std::exp(double{x});
    const auto nearest = static_cast<float>(exact);
    const double unit =
        std::nextafter(nearest, std::numeric_limits<float>::infinity()) - double{nearest};
    worst = std::max(worst, std::fabs(Exp(x) - exact) / unit);
  }
  EXPECT_LE(worst, 2.0);
}

TEST(SimdExp, EndsOfTheRange) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Exp(0), 1.0f);
  EXPECT_EQ(Exp(89), kInfinity);
  EXPECT_EQ(Exp(kInfinity), kInfinity);
  EXPECT_EQ(Exp(-kInfinity), 0.0f);
  EXPECT_EQ(Exp(-1e30f), 0.0f);
  EXPECT_NEAR(Exp(-100), std::exp(-100.0), 1e-44);  // below the normal numbers
  EXPECT_TRUE(std::isnan(Exp(std::numeric_limits<float>::quiet_NaN())));
}

// Parts of vectors leave alone what lies after them.
TEST(SimdParts, LoadAndStoreWhatThereIs) {
  for (int64_t count = 0; count <= 9; ++count) {
    const int64_t seen = std::min<int64_t>(count, 8);
    bf16 in[9], out[9];
    float in_f32[9], loaded[8], loaded_f32[8];
    for (int i = 0; i < 9; ++i) {
      in_f32[i] = static_cast<float>(i + 1);
      in[i] = ToBf16(in_f32[i]);
      out[i] = {0xffff};
    }
    _mm256_storeu_ps(loaded, simd::Load(in, count));
    _mm256_storeu_ps(loaded_f32, simd::Load(in_f32, count));
    simd::Store(out, simd::Load(in), count);
    for (int64_t i = 0; i < 8; ++i) {
      EXPECT_EQ(loaded[i], i < seen ? in_f32[i] : 0.0f);
      EXPECT_EQ(loaded_f32[i], loaded[i]);
    }
    for (int64_t i = 0; i < 9; ++i) EXPECT_EQ(out[i].bits, i < seen ? in[i].bits : 0xffff);
  }
}

TEST(SimdParts, ByEightsMeetsEveryElementOnce) {
  for (int64_t count = 0; count <= 25; ++count) {
    int64_t next = 0;
    simd::ByEights(count, [&](int64_t begin, int64_t n) {
      EXPECT_EQ(begin, next);
      EXPECT_LE(n, 8);
      next += n;
    });
    EXPECT_EQ(next, count);
  }
}

TEST(SimdTransform, GivesWhatOneByOneGivesForEveryBf16AndLeavesTheRest) {
  std::vector<bf16> all;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) all.push_back({static_cast<uint16_t>(bits)});
  const std::vector<bf16> ones(all.size(), ToBf16(1.0f));
  // By thirds, so that every digit below a BF16's last is met.
  const auto body = [](__m256 x, __m256 y) {
    return _mm256_add_ps(_mm256_div_ps(x, _mm256_set1_ps(3)), _mm256_mul_ps(y, x));
  };
  const auto expected = [](bf16 x) { return ToBf16(ToFloat(x) / 3 + ToFloat(x)); };
  std::vector<bf16> out = all;  // in place
  simd::Transform(std::ssize(out), out.data(), body, out.data(), ones.data());
  for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(out[i].bits, expected(all[i]).bits) << i;
  for (int64_t count = 0; count < 40; ++count) {
    const bf16* const in = all.data() + 0x3f80;
    std::vector<bf16> part(48, bf16{0xffff});
    simd::Transform(count, part.data(), body, in, ones.data());
    for (int64_t i = 0; i < 48; ++i)
      EXPECT_EQ(part[i].bits, i < count ? expected(in[i]).bits : 0xffff) << count << " " << i;
  }
}

TEST(SimdLargestMagnitude, LooksEverywhereAndPutsNanAboveAll) {
  for (int64_t place = 0; place < 32; ++place) {
    for (const uint16_t bits : {0x0001, 0x8002, 0xbf80, 0x7f80, 0xffc1}) {
      bf16 x[32] = {};
      x[place].bits = bits;
      EXPECT_EQ(simd::LargestMagnitude(x, 32), bits & 0x7fff);
      EXPECT_EQ(simd::LargestMagnitude(x, 16), place < 16 ? bits & 0x7fff : 0);
    }
  }
}

}  // namespace
}  // namespace deepinfer
