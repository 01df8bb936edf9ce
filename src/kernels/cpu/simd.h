// kernels/cpu/simd.h: eight F32 lanes from and to BF16, and the sums that the CPU forms share.
//
// Only for files compiled for AVX2 (*_cpu.cc). A sum runs over lane k % 8 in order of k, then over
// the lanes as ReduceLanes says: its order depends on the length alone.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "kernels/formats/number_formats.h"

namespace deepinfer::simd {

inline __m256 Load(const bf16* p) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

// Rounds to nearest even as ToBf16 does; NaN stays NaN. The lower half of a lane is of no meaning.
inline __m256i Bf16InUpperHalf(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i lsb = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i bias = _mm256_add_epi32(lsb, _mm256_set1_epi32(0x7fff));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  return _mm256_blendv_epi8(_mm256_add_epi32(bits, bias), quiet, is_nan);
}

inline __m128i RoundToBf16(__m256 x) {
  const __m256i rounded = _mm256_srli_epi32(Bf16InUpperHalf(x), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1));
}

inline void Store(bf16* p, __m256 x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), RoundToBf16(x));
}

// The values that there are of eight, and zeros.
inline __m256 Load(const bf16* p, int64_t count) {
  if (count >= 8) return Load(p);
  bf16 values[8] = {};
  std::copy_n(p, count, values);
  return Load(values);
}

// The first `count` of eight.
inline void Store(bf16* p, __m256 x, int64_t count) {
  if (count >= 8) return Store(p, x);
  bf16 values[8];
  Store(values, x);
  std::copy_n(values, count, p);
}

// out[i] = bf16(body(in[i]...)) for `count` elements; `out` may be one of `in`. Sixteen a time:
// those at even places and those at odd ones, which shifts and masks tell apart.
template <typename Body, typename... In>
[[gnu::always_inline]] inline void Transform(int64_t count, bf16* out, const Body& body,
                                             const In*... in) {
  const __m256i upper = _mm256_set1_epi32(~0xffff);
  const auto pairs = [](const bf16* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  };
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m256 even = body(_mm256_castsi256_ps(_mm256_slli_epi32(pairs(in + i), 16))...);
    const __m256 odd = body(_mm256_castsi256_ps(_mm256_and_si256(pairs(in + i), upper))...);
    const __m256i low = _mm256_srli_epi32(Bf16InUpperHalf(even), 16);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i),
                        _mm256_blend_epi16(low, Bf16InUpperHalf(odd), 0xaa));
  }
  for (; i < count; i += 8) Store(out + i, body(Load(in + i, count - i)...), count - i);
}

// body(i, n) for the elements [i, i + n) of `count`: eight a time, then those left over. While
// there are eight, n is a constant, which Load and Store above know at compile time.
template <typename Body>
[[gnu::always_inline]] inline void ByEights(int64_t count, const Body& body) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) body(i, std::integral_constant<int64_t, 8>{});
  if (i < count) body(i, count - i);
}

inline __m256 Load(const float* p, int64_t count) {
  if (count >= 8) return _mm256_loadu_ps(p);
  float values[8] = {};
  std::copy_n(p, count, values);
  return _mm256_loadu_ps(values);
}

// The bits of the largest magnitude: those of BF16 compare as integers, infinity and NaN above all.
// Requires: count is a multiple of 16, not 0.
inline uint16_t LargestMagnitude(const bf16* x, int64_t count) {
  __m256i largest = _mm256_setzero_si256();
  for (int64_t i = 0; i < count; i += 16) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
    largest = _mm256_max_epu16(largest, _mm256_and_si256(bits, _mm256_set1_epi16(0x7fff)));
  }
  const __m128i eight =
      _mm_max_epu16(_mm256_castsi256_si128(largest), _mm256_extracti128_si256(largest, 1));
  // There is an instruction for the smallest.
  const __m128i flipped = _mm_minpos_epu16(_mm_xor_si128(eight, _mm_set1_epi16(-1)));
  return static_cast<uint16_t>(~_mm_cvtsi128_si32(flipped));
}

// ((0+4)+(2+6)) + ((1+5)+(3+7)), lanes by number.
inline float ReduceLanes(__m256 x) {
  __m128 sum = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
  return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}

// F32 sum of x[i]^2.
inline float SumOfSquares(const bf16* x, int64_t count) {
  __m256 sum = _mm256_setzero_ps();
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256 v = Load(x + i);
    sum = _mm256_fmadd_ps(v, v, sum);
  }
  float total = ReduceLanes(sum);
  for (; i < count; ++i) total += ToFloat(x[i]) * ToFloat(x[i]);
  return total;
}

// e^x with an error of at most 2 ulp: NaN stays NaN, what overflows is infinite, what underflows 0.
inline __m256 Exp(__m256 x) {
  // The second operand is returned where one is NaN.
  x = _mm256_max_ps(_mm256_set1_ps(-104.0f), _mm256_min_ps(_mm256_set1_ps(104.0f), x));
  // x = n ln 2 + r, |r| <= ln 2 / 2; ln 2 in two parts, so that n times the first is exact.
  const __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(1.44269504f)),
                                   _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0x1.62e4p-1f), x);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0x1.7f7d1cp-20f), r);
  __m256 sum = _mm256_set1_ps(1.0f / 5040);
  for (const float term : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f}) {
    sum = _mm256_fmadd_ps(sum, r, _mm256_set1_ps(term));
  }
  // 2^n as two factors: n reaches past the exponents of normal numbers.
  const __m256i exponent = _mm256_cvtps_epi32(n);
  const __m256i half = _mm256_srai_epi32(exponent, 1);
  const auto power = [](__m256i e) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(e, _mm256_set1_epi32(127)), 23));
  };
  sum = _mm256_mul_ps(sum, power(half));
  return _mm256_mul_ps(sum, power(_mm256_sub_epi32(exponent, half)));
}

// x with the other sign, that of zeros and NaN too.
inline __m256 Negate(__m256 x) { return _mm256_xor_ps(x, _mm256_set1_ps(-0.0f)); }

inline __m256 OnePlusExpOfMinus(__m256 x) {
  return _mm256_add_ps(_mm256_set1_ps(1.0f), Exp(Negate(x)));
}
inline __m256 Sigmoid(__m256 x) {
  return _mm256_div_ps(_mm256_set1_ps(1.0f), OnePlusExpOfMinus(x));
}
inline __m256 Silu(__m256 x) { return _mm256_div_ps(x, OnePlusExpOfMinus(x)); }

}  // namespace deepinfer::simd
