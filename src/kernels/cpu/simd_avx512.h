// kernels/cpu/simd_avx512.h: 32 BF16 as two vectors of F32, and back. For *_avx512.cc only.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/formats/number_formats.h"

namespace deepinfer::simd {

// The elements at even places and those at odd ones, which shifts and masks tell apart.
struct Floats {
  __m512 even, odd;
};

inline __mmask32 FirstOf32(int64_t count) {
  return count >= 32 ? ~__mmask32{0} : (__mmask32{1} << count) - 1;
}

// The first `count` of 32, and zeros.
inline Floats Load32(const bf16* p, int64_t count) {
  const __m512i pairs = _mm512_maskz_loadu_epi16(FirstOf32(count), p);
  return {_mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)),
          _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(~0xffff)))};
}

// As Bf16InUpperHalf of simd.h: to nearest even, NaN stays NaN, the lower half is of no meaning.
inline __m512i Bf16InUpperHalves(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i lsb = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i bias = _mm512_add_epi32(lsb, _mm512_set1_epi32(0x7fff));
  return _mm512_mask_or_epi32(_mm512_add_epi32(bits, bias), _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q),
                              bits, _mm512_set1_epi32(0x400000));
}

// The first `count` of 32.
inline void Store32(bf16* p, const Floats& x, int64_t count) {
  const __m512i even = _mm512_srli_epi32(Bf16InUpperHalves(x.even), 16);
  const __m512i pairs = _mm512_mask_blend_epi16(0xaaaaaaaa, even, Bf16InUpperHalves(x.odd));
  _mm512_mask_storeu_epi16(p, FirstOf32(count), pairs);
}

}  // namespace deepinfer::simd
