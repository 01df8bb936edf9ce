// kernels/cpu/simd.h: eight F32 lanes from and to BF16, and the sums that the CPU forms share.
//
// Only for files compiled for AVX2 (*_cpu.cc). A sum runs over lane k % 8 in order of k, then over
// the lanes as ReduceLanes says: its order depends on the length alone.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/formats/number_formats.h"

namespace deepinfer::simd {

inline __m256 Load(const bf16* p) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

// Rounds to nearest even as ToBf16 does; NaN stays NaN.
inline __m128i RoundToBf16(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i upper = _mm256_srli_epi32(bits, 16);
  const __m256i lsb = _mm256_and_si256(upper, _mm256_set1_epi32(1));
  const __m256i bias = _mm256_add_epi32(lsb, _mm256_set1_epi32(0x7fff));
  const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, bias), 16);
  const __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
  const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  const __m256i chosen = _mm256_blendv_epi8(rounded, quiet, is_nan);
  return _mm_packus_epi32(_mm256_castsi256_si128(chosen), _mm256_extracti128_si256(chosen, 1));
}

inline void Store(bf16* p, __m256 x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), RoundToBf16(x));
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

}  // namespace deepinfer::simd
