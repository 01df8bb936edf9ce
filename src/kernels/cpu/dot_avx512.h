// kernels/cpu/dot_avx512.h: sum += a . b over pairs of BF16, 16 lanes, and one pair in all lanes.
// For *_avx512.cc only.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace deepinfer {

// VDPBF16PS: in each lane both products are added to `sum`, the odd element's first.
inline __m512 DotPairs(__m512 sum, __m512i a, __m512i b) {
#if defined(__clang__)
  // clang 16 crashes over vectors of BF16 when it optimises, and breaks them when it does not.
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  return sum;
#else
  return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
#endif
}

// Elements 2i and 2i + 1 of a row in every lane.
inline __m512i BroadcastPair(const void* row, int64_t i) {
  int32_t pair;
  std::memcpy(&pair, static_cast<const uint8_t*>(row) + 4 * i, sizeof pair);
  return _mm512_set1_epi32(pair);
}

}  // namespace deepinfer
