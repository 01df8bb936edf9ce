// kernels/kv_records/cpu/kv_codes.h: groups of values <-> codes.
//
// Bit-equal to kernels/formats/number_formats.h; shared by the plain CPU forms that write or read
// records. Include from *_cpu.cc only.
#pragma once

#include <immintrin.h>

#include <array>
#include <cstdint>
#include <limits>

#include "kernels/cpu/simd.h"
#include "kernels/formats/number_formats.h"

namespace deepinfer::kv_codes {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Codes of eight finite values, the nearest with ties to even, saturating at `largest`. A format of
// kMantissa bits whose normal numbers begin at 2^kMinExponent, and whose codes have a sign above.
template <int kMantissa, int kMinExponent>
__m256i Codes(__m256 x, float largest, int sign_bit) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  const __m256 magnitude = _mm256_min_ps(_mm256_andnot_ps(sign, x), _mm256_set1_ps(largest));
  // Normal: keep the upper mantissa bits; the exponent's bias is 127 here and 1 - kMinExponent
  // there.
  constexpr int kShift = 23 - kMantissa;
  const __m256i bits = _mm256_castps_si256(magnitude);
  const __m256i lsb = _mm256_and_si256(_mm256_srli_epi32(bits, kShift), _mm256_set1_epi32(1));
  const __m256i half = _mm256_add_epi32(lsb, _mm256_set1_epi32((1 << (kShift - 1)) - 1));
  const __m256i normal = _mm256_sub_epi32(_mm256_srli_epi32(_mm256_add_epi32(bits, half), kShift),
                                          _mm256_set1_epi32((126 + kMinExponent) << kMantissa));
  // Below: multiples of the smallest code.
  constexpr auto kUnits = static_cast<float>(1 << (kMantissa - kMinExponent));
  const __m256i subnormal = _mm256_cvtps_epi32(_mm256_mul_ps(magnitude, _mm256_set1_ps(kUnits)));
  constexpr float kLeastNormal = static_cast<float>(1 << kMantissa) / kUnits;
  const __m256 is_normal = _mm256_cmp_ps(magnitude, _mm256_set1_ps(kLeastNormal), _CMP_GE_OQ);
  const __m256i code = _mm256_blendv_epi8(subnormal, normal, _mm256_castps_si256(is_normal));
  const __m256i minus =
      _mm256_srli_epi32(_mm256_castps_si256(_mm256_and_ps(x, sign)), 31 - sign_bit);
  return _mm256_or_si256(code, minus);
}

// Sixteen codes, a byte each.
inline __m128i Bytes(__m256i first, __m256i second) {
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packus_epi32(first, second), 0xd8);
  return _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}

// e4m3 codes of finite x / divisor. Requires, here and below: n % 16 == 0.
inline void EncodeE4m3(const bf16* x, float divisor, int32_t n, uint8_t* codes) {
  const auto eight = [&](const bf16* p) {
    return Codes<3, -6>(_mm256_div_ps(simd::Load(p), _mm256_set1_ps(divisor)), 448.0f, 7);
  };
  for (int32_t i = 0; i < n; i += 16) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(codes + i), Bytes(eight(x + i), eight(x + i + 8)));
  }
}

// e2m1 codes of finite x / divisor, two a byte, even dim in the low nibble.
inline void EncodeE2m1(const bf16* x, float divisor, int32_t n, uint8_t* codes) {
  const auto eight = [&](const bf16* p) {
    return Codes<1, 0>(_mm256_div_ps(simd::Load(p), _mm256_set1_ps(divisor)), 6.0f, 3);
  };
  for (int32_t i = 0; i < n; i += 16) {
    const __m128i bytes = Bytes(eight(x + i), eight(x + i + 8));
    const __m128i pairs = _mm_maddubs_epi16(bytes, _mm_set1_epi16(0x1001));  // low + 16 high
    _mm_storel_epi64(reinterpret_cast<__m128i*>(codes + i / 2), _mm_packus_epi16(pairs, pairs));
  }
}

inline float E8m0OrNan(uint8_t e) {
  return e == kE8m0Nan ? std::numeric_limits<float>::quiet_NaN() : E8m0ToFloat(e);
}

inline const std::array<float, 256>& E4m3Table() {
  static const auto table = [] {
    std::array<float, 256> values;
    for (int code = 0; code < 256; ++code) {
      values[static_cast<size_t>(code)] = E4m3ToFloat(static_cast<uint8_t>(code));
    }
    return values;
  }();
  return table;
}

}  // namespace deepinfer::kv_codes
