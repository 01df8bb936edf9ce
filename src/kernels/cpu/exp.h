// kernels/cpu/exp.h: exp of eight floats. Only for files compiled for AVX2 (*_cpu.cc).
#pragma once

#include <immintrin.h>

namespace deepinfer::simd {

// e^x for x <= 0, relative error about 1e-7; 0 below -87 (and for -infinity); NaN stays NaN.
// 2^n times a polynomial on [-ln2/2, ln2/2]: Taylor to the seventh power is exact enough there.
inline __m256 ExpOfNegative(__m256 x) {
  const __m256 low = _mm256_set1_ps(-87.0f);
  const __m256 is_zero = _mm256_cmp_ps(x, low, _CMP_LT_OQ);
  const __m256 clamped = _mm256_blendv_ps(x, low, is_zero);
  const __m256 n = _mm256_round_ps(_mm256_mul_ps(clamped, _mm256_set1_ps(1.44269504088896341f)),
                                   _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  // ln2 in two parts, the first exact in few bits.
  __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693359375f), clamped);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(-2.12194440e-4f), r);
  __m256 sum = _mm256_set1_ps(1.0f / 5040);
  for (const float c : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f}) {
    sum = _mm256_fmadd_ps(sum, r, _mm256_set1_ps(c));
  }
  const __m256i exponent =
      _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
  return _mm256_andnot_ps(is_zero, _mm256_mul_ps(sum, _mm256_castsi256_ps(exponent)));
}

}  // namespace deepinfer::simd
