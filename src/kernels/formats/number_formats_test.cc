#include "kernels/formats/number_formats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/testing/real_checks.h"

namespace deepinfer {
namespace {

float Bf16At(uint32_t bits) { return ToFloat(bf16{static_cast<uint16_t>(bits)}); }
bool IsFinite(uint32_t bits) { return (bits & 0x7f80) != 0x7f80; }

// OCP 8-bit e4m3 from its definition, in F64.
double E4m3ByDefinition(int code) {
  const int exponent = (code >> 3) & 15, mantissa = code & 7;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

// Nearest code in a table of ascending magnitudes, saturating; ties to the even code.
int Nearest(double magnitude, const std::vector<double>& table) {
  magnitude = std::min(magnitude, table.back());
  int best = 0;
  for (int code = 1; code < static_cast<int>(table.size()); ++code) {
    const double now = std::fabs(table[code] - magnitude);
    const double before = std::fabs(table[best] - magnitude);
    if (now < before || (now == before && code % 2 == 0)) best = code;
  }
  return best;
}

std::vector<double> E4m3Magnitudes() {
  std::vector<double> table;
  for (int code = 0; code < 0x7f; ++code) table.push_back(E4m3ByDefinition(code));
  return table;
}

TEST(NumberFormats, EveryE4m3CodeDecodesByDefinition) {
  for (int code = 0; code < 256; ++code) {
    const float value = E4m3ToFloat(static_cast<uint8_t>(code));
    EXPECT_EQ(IsE4m3Nan(static_cast<uint8_t>(code)), (code & 0x7f) == 0x7f);
    if ((code & 0x7f) == 0x7f) {
      EXPECT_TRUE(std::isnan(value));
      continue;
    }
    EXPECT_EQ(value, E4m3ByDefinition(code)) << code;
    EXPECT_EQ(std::signbit(value), (code & 0x80) != 0) << code;
    EXPECT_EQ(FloatToE4m3(value), code);
  }
}

TEST(NumberFormats, E4m3RoundsEveryBf16ToTheNearestCode) {
  const std::vector<double> table = E4m3Magnitudes();
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float x = Bf16At(bits);
    if (std::isnan(x)) {
      EXPECT_TRUE(IsE4m3Nan(FloatToE4m3(x)));
      continue;
    }
    const int nearest = Nearest(std::fabs(double{x}), table);
    ASSERT_EQ(FloatToE4m3(x), nearest | (std::signbit(x) ? 0x80 : 0)) << x;
  }
}

// Every midpoint between neighbouring codes, and one F32 step to each side of it.
TEST(NumberFormats, E4m3TiesGoToTheEvenCode) {
  for (int code = 0; code < 0x7e; ++code) {
    const auto tie = static_cast<float>((E4m3ByDefinition(code) + E4m3ByDefinition(code + 1)) / 2);
    EXPECT_EQ(FloatToE4m3(tie), code % 2 == 0 ? code : code + 1);
    EXPECT_EQ(FloatToE4m3(std::nextafterf(tie, 0)), code);
    EXPECT_EQ(FloatToE4m3(std::nextafterf(tie, 1e9f)), code + 1);
  }
}

TEST(NumberFormats, E2m1DecodesAndRoundsByTheTable) {
  const std::vector<double> table = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (int code = 0; code < 16; ++code) {
    const float value = E2m1ToFloat(static_cast<uint8_t>(code));
    EXPECT_EQ(std::fabs(value), table[code & 7]);
    EXPECT_EQ(std::signbit(value), code >= 8);
    EXPECT_EQ(FloatToE2m1(value), code);
  }
  // model.md 6.1: ties to the even code.
  const float ties[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
  const float rounded[] = {0, 1, 1, 2, 2, 4, 4};
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(E2m1ToFloat(FloatToE2m1(ties[i])), rounded[i]);
    EXPECT_EQ(E2m1ToFloat(FloatToE2m1(-ties[i])), -rounded[i]);
    EXPECT_EQ(FloatToE2m1(std::nextafterf(ties[i], 0)), i);
    EXPECT_EQ(FloatToE2m1(std::nextafterf(ties[i], 9)), i + 1);
  }
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float x = Bf16At(bits);
    if (std::isnan(x)) continue;
    const int nearest = Nearest(std::fabs(double{x}), table);
    ASSERT_EQ(FloatToE2m1(x), nearest | (std::signbit(x) ? 8 : 0)) << x;
  }
}

TEST(NumberFormats, EveryE8m0ByteIsItsPowerOfTwo) {
  for (int e = 0; e < 255; ++e) {
    EXPECT_EQ(E8m0ToFloat(static_cast<uint8_t>(e)), std::ldexp(1.0, e - 127)) << e;
  }
}

TEST(NumberFormats, Bf16RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float x = Bf16At(bits);
    if (std::isnan(x)) {
      EXPECT_TRUE(std::isnan(ToFloat(ToBf16(x))));
      continue;
    }
    ASSERT_EQ(ToBf16(x).bits, bits);
    const uint32_t above = std::bit_cast<uint32_t>(x);
    if (!IsFinite(bits)) continue;
    // Half a step up is a tie; less stays, more moves.
    const auto at = [&](uint32_t low) { return ToBf16(std::bit_cast<float>(above + low)).bits; };
    ASSERT_EQ(at(0x7fff), bits);
    ASSERT_EQ(at(0x8000), bits + bits % 2);
    ASSERT_EQ(at(0x8001), bits + 1);
  }
  EXPECT_EQ(ToFloat(ToBf16(1.0 + 0x1p-9)), 1.0f);
}

// model.md 6.1: the scale rules agree for every BF16 amax however they are written.
TEST(NumberFormats, ScaleRulesAgreeInAllThreeSpellings) {
  for (uint32_t bits = 1; bits < 0x7f80; ++bits) {
    const float amax = Bf16At(bits);
    const double fp8 = std::fmax(amax, 1e-4f), fp4 = std::fmax(amax, 6 * 0x1p-126f);
    // Division in F32.
    ASSERT_EQ(Fp8GroupScale(amax), CeilPow2Byte(static_cast<float>(fp8) / 448.0f)) << amax;
    ASSERT_EQ(Fp4GroupScaleE8m0(amax), CeilPow2Byte(static_cast<float>(fp4) / 6.0f)) << amax;
    // The smallest power of two that brings the largest value inside the format.
    const double fp8_scale = std::ldexp(1.0, Fp8GroupScale(amax) - 127);
    ASSERT_TRUE(fp8 <= 448 * fp8_scale && fp8 > 224 * fp8_scale) << amax;
    const double fp4_scale = std::ldexp(1.0, Fp4GroupScaleE8m0(amax) - 127);
    ASSERT_TRUE(fp4 <= 6 * fp4_scale && fp4 > 3 * fp4_scale) << amax;
  }
}

TEST(NumberFormats, GlobalKvScaleIsTheNearestE4m3) {
  const std::vector<double> table = E4m3Magnitudes();
  for (uint32_t bits = 0; bits < 0x7f80; ++bits) {
    const float amax = std::fmax(Bf16At(bits), 6 * 0x1p-9f);
    ASSERT_EQ(Fp4GroupScaleE4m3(Bf16At(bits)), Nearest(double{amax / 6.0f}, table)) << amax;
  }
  EXPECT_EQ(E4m3ToFloat(Fp4GroupScaleE4m3(0)), 0x1p-9f);  // a zero group keeps a scale
}

// Byte samples of the real checkpoint (model.md 2.3).
TEST(NumberFormats, RealByteSamplesDecode) {
  const uint8_t fp8[] = {0xd8, 0x71, 0xf2, 0x79};
  const float fp8_values[] = {-0.00390625f, 0.03515625f, -0.0390625f, 0.0703125f};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(E4m3ToFloat(fp8[i]) * E8m0ToFloat(0x73), fp8_values[i]);
  const uint8_t fp4[] = {0xa0, 0xa8, 0xec, 0x4a};
  const float fp4_values[] = {0, -0x1p-7f, -0.0f, -0x1p-7f, -0x1p-6f, -0x1p-5f, -0x1p-7f, 0x1p-6f};
  for (int k = 0; k < 8; ++k) {
    const uint8_t code = k % 2 == 0 ? fp4[k / 2] & 15 : fp4[k / 2] >> 4;
    EXPECT_EQ(E2m1ToFloat(code) * E8m0ToFloat(0x78), fp4_values[k]) << k;
  }
}

float FakeQuantise(const std::string& kind, float x, float amax) {
  if (kind == "fp8_group32_e8m0") {
    const float scale = E8m0ToFloat(Fp8GroupScale(amax));
    return E4m3ToFloat(FloatToE4m3(x / scale)) * scale;
  }
  const float scale = kind == "fp4_group32_e8m0" ? E8m0ToFloat(Fp4GroupScaleE8m0(amax))
                                                 : E4m3ToFloat(Fp4GroupScaleE4m3(amax));
  return E2m1ToFloat(FloatToE2m1(x / scale)) * scale;
}

TEST(NumberFormats, QuantisersGiveTheStoredBits) {
  const nlohmann::json checks = testing::RealChecks();
  int num_cases = 0;
  for (const auto& check : checks["quantisers"]) {
    const auto in = check["in_bf16"].get<std::vector<uint32_t>>();
    const auto out = check["out_bf16"].get<std::vector<uint32_t>>();
    float amax = 0;
    for (const uint32_t bits : in) amax = std::fmax(amax, std::fabs(Bf16At(bits)));
    for (size_t i = 0; i < in.size(); ++i) {
      const float value = FakeQuantise(check["kind"].get<std::string>(), Bf16At(in[i]), amax);
      EXPECT_EQ(ToBf16(value).bits, out[i]) << check["kind"] << " element " << i;
    }
    ++num_cases;
  }
  EXPECT_EQ(num_cases, 33);
}

}  // namespace
}  // namespace deepinfer
