#include <immintrin.h>

#include "kernels/benchmark/ceilings.h"

namespace deepinfer::ceiling_loops {

uint64_t ReadAvx2(const uint8_t* memory, int64_t num_bytes) {
  __m256i sum[4] = {};
  for (int64_t i = 0; i < num_bytes; i += 256) {
    for (int line = 0; line < 4; ++line) {
      const uint8_t* const p = memory + i + line * 64;
      _mm_prefetch(reinterpret_cast<const char*>(p + 4096), _MM_HINT_T0);
      const auto* const v = reinterpret_cast<const __m256i*>(p);
      sum[line] = _mm256_add_epi64(
          sum[line], _mm256_add_epi64(_mm256_loadu_si256(v), _mm256_loadu_si256(v + 1)));
    }
  }
  const __m256i total =
      _mm256_add_epi64(_mm256_add_epi64(sum[0], sum[1]), _mm256_add_epi64(sum[2], sum[3]));
  return static_cast<uint64_t>(_mm256_extract_epi64(total, 0) + _mm256_extract_epi64(total, 1) +
                               _mm256_extract_epi64(total, 2) + _mm256_extract_epi64(total, 3));
}

float DotsAvx2(int64_t iterations) {
  __m256 sums[12];
  for (int i = 0; i < 12; ++i) sums[i] = _mm256_set1_ps(static_cast<float>(i));
  __m256 x = _mm256_set1_ps(0.5f);
  for (int64_t n = 0; n < iterations; ++n) {
    asm volatile("" : "+x"(x));  // the compiler must not know that x stays the same
    for (int i = 0; i < 12; ++i) sums[i] = _mm256_fmadd_ps(sums[i], x, x);
  }
  for (int i = 1; i < 12; ++i) sums[0] = _mm256_add_ps(sums[0], sums[i]);
  return _mm256_cvtss_f32(sums[0]);
}

}  // namespace deepinfer::ceiling_loops
