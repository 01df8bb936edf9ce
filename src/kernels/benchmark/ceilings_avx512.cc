#include <immintrin.h>

#include "kernels/benchmark/ceilings.h"
#include "kernels/cpu/dot_avx512.h"

namespace deepinfer::ceiling_loops {

float DotsAvx512(int64_t iterations) {
  __m512 sums[12];
  for (int i = 0; i < 12; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  __m512i x = _mm512_set1_epi32(0x3f003f00);  // pairs of 0.5
  for (int64_t n = 0; n < iterations; ++n) {
    asm volatile("" : "+v"(x));  // the compiler must not know that x stays the same
    for (int i = 0; i < 12; ++i) sums[i] = DotPairs(sums[i], x, x);
  }
  for (int i = 1; i < 12; ++i) sums[0] = _mm512_add_ps(sums[0], sums[i]);
  return _mm512_cvtss_f32(sums[0]);
}

}  // namespace deepinfer::ceiling_loops
