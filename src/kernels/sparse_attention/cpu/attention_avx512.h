// kernels/sparse_attention/cpu/attention_avx512.h: the decoded block of the sets for AVX-512 and
// AMX, and what both make of its scores. For *_avx512.cc and *_amx.cc only.
//
// A decoded block holds its slots twice. Scores: lanes are slots, so that nothing is added across
// lanes: [dim / 2][64 slots][2 dims]. Sums: lanes are dims: [32 pairs of slots][dim][2 slots], of
// 32 dims first 0-3, 8-11, 16-19 and 24-27, as unpacking leaves them (InOrder).
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/sparse_attention/cpu/attention_kernels.h"

namespace deepinfer::attention_avx512 {

inline constexpr int32_t kSlots = 64;  // kAttentionBlock
inline constexpr int32_t kLanes = 16;
inline constexpr int32_t kPadding = 16;  // dims; else rows would share sets of the cache

// Dwords from pair to pair of slots.
inline int64_t PairStride(int32_t dim) { return dim + kPadding; }
inline int64_t KeyBytes(int32_t dim) { return int64_t{dim} / 2 * kSlots * 4; }
inline int64_t BlockBytes(int32_t dim) {
  return KeyBytes(dim) + kSlots / 2 * PairStride(dim) * 4;
}

inline int64_t WorkBytes(int32_t dim) { return int64_t{kLanes} * dim * 2; }

// work: decoded rows of kLanes slots. Slots past the last are zeros up to whole vectors of keys and
// to whole pairs.
void DecodeBlock(const AttentionSlot* slots, int32_t n, int32_t dim, void* block, void* work);

inline uint32_t* Keys(void* block) { return static_cast<uint32_t*>(block); }
inline const uint32_t* Keys(const void* block) { return static_cast<const uint32_t*>(block); }
inline uint32_t* Pairs(void* block, int32_t dim) { return Keys(block) + KeyBytes(dim) / 4; }
inline const uint32_t* Pairs(const void* block, int32_t dim) {
  return Keys(block) + KeyBytes(dim) / 4;
}

// 32 dims in the order of unpacking -> in their own.
inline void InOrder(__m512& first, __m512& second) {
  const __m512i lower =
      _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
  const __m512i upper = _mm512_add_epi32(lower, _mm512_set1_epi32(8));
  const __m512 a = first, b = second;
  first = _mm512_permutex2var_ps(a, lower, b);
  second = _mm512_permutex2var_ps(a, upper, b);
}

// e^x with an error of at most 2 ulp: NaN stays NaN, what underflows is 0. Requires: x <= 0, or
// NaN.
inline __m512 Exp(__m512 x) {
  x = _mm512_max_ps(_mm512_set1_ps(-104.0f), x);  // the second operand where one is NaN
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)),
                                        _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0x1.62e4p-1f), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0x1.7f7d1cp-20f), r);
  __m512 sum = _mm512_set1_ps(1.0f / 5040);
  sum = _mm512_fmadd_ps(sum, r, _mm512_set1_ps(1.0f / 720));
  sum = _mm512_fmadd_ps(sum, r, _mm512_set1_ps(1.0f / 120));
  sum = _mm512_fmadd_ps(sum, r, _mm512_set1_ps(1.0f / 24));
  sum = _mm512_fmadd_ps(sum, r, _mm512_set1_ps(1.0f / 6));
  sum = _mm512_fmadd_ps(sum, r, _mm512_set1_ps(0.5f));
  sum = _mm512_fmadd_ps(sum, r, _mm512_set1_ps(1.0f));
  sum = _mm512_fmadd_ps(sum, r, _mm512_set1_ps(1.0f));
  return _mm512_scalef_ps(sum, n);
}

// Dims whose products are summed before the sum joins the total: one chain over all of them would
// carry the rounding of its many steps into the probabilities.
inline constexpr int32_t kChain = 128;

// Scores -> BF16 probabilities; updates the head's maximum and denominator. Returns the factor by
// which older sums shrink.
template <int kVectors>
inline float SoftmaxBlock(__m512* scores, int32_t n, float scale, float& max, float& denominator,
                   uint16_t* probabilities) {
  const __m512 infinity = _mm512_set1_ps(__builtin_inff());
  __m512 largest = _mm512_set1_ps(max);
  for (int v = 0; v < kVectors; ++v) {
    const int32_t filled = n - v * kLanes;
    const auto valid = static_cast<__mmask16>(filled >= kLanes ? 0xffff : (1 << filled) - 1);
    scores[v] = _mm512_mask_mul_ps(_mm512_sub_ps(_mm512_setzero_ps(), infinity), valid, scores[v],
                                   _mm512_set1_ps(scale));
    largest = _mm512_max_ps(scores[v], largest);  // NaN leaves it alone
  }
  const float new_max = _mm512_reduce_max_ps(largest);
  __m512 total = _mm512_setzero_ps();
  for (int v = 0; v < kVectors; ++v) {
    const __m512 p = Exp(_mm512_sub_ps(scores[v], _mm512_set1_ps(new_max)));
    total = _mm512_add_ps(total, p);
    // To nearest even; NaN from these sums is quiet, so adding keeps it one.
    const __m512i bits = _mm512_castps_si512(p);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded =
        _mm512_add_epi32(_mm512_add_epi32(bits, odd), _mm512_set1_epi32(0x7fff));
    _mm256_store_si256(reinterpret_cast<__m256i*>(probabilities + v * kLanes),
                       _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16)));
  }
  const float correction = _mm512_cvtss_f32(Exp(_mm512_set1_ps(max - new_max)));
  max = new_max;
  denominator = denominator * correction + _mm512_reduce_add_ps(total);
  return correction;
}

}  // namespace deepinfer::attention_avx512
