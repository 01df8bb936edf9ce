// Two rows of W abreast in a vector, each in its eight lanes.
#include <immintrin.h>

#include "kernels/linear/cpu/f32_tiles.h"

namespace deepinfer {
namespace {

constexpr int kPairs = kF32TileWeights / 2;
constexpr int kMostTokens = 8;

template <int kTokens>
void AccumulateTokens(const float* w, int64_t w_stride, const float* x, int64_t x_stride,
                      int64_t count, float* sums) {
  __m512 acc[kTokens][kPairs];
  for (int t = 0; t < kTokens; ++t) {
    for (int n = 0; n < kPairs; ++n) acc[t][n] = _mm512_setzero_ps();
  }
  for (int64_t k = 0; k < count; k += 8) {
    __m512 pairs[kPairs];
    for (int n = 0; n < kPairs; ++n) {
      const float* const row = w + 2 * n * w_stride + k;
      pairs[n] = _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(row)),
                                    _mm256_loadu_ps(row + w_stride), 1);
    }
    for (int t = 0; t < kTokens; ++t) {
      const __m512 xs = _mm512_broadcast_f32x8(_mm256_loadu_ps(x + t * x_stride + k));
      for (int n = 0; n < kPairs; ++n) acc[t][n] = _mm512_fmadd_ps(pairs[n], xs, acc[t][n]);
    }
  }
  for (int t = 0; t < kTokens; ++t) {
    for (int n = 0; n < kPairs; ++n) {
      float* const sum = sums + (t * kPairs + n) * 16;
      _mm512_storeu_ps(sum, _mm512_add_ps(_mm512_loadu_ps(sum), acc[t][n]));
    }
  }
}

void Accumulate(const float* w, int64_t w_stride, const float* x, int64_t x_stride, int64_t count,
                int64_t num_tokens, float* sums) {
  constexpr decltype(&AccumulateTokens<1>) kForms[] = {
      AccumulateTokens<1>, AccumulateTokens<2>, AccumulateTokens<3>, AccumulateTokens<4>,
      AccumulateTokens<5>, AccumulateTokens<6>, AccumulateTokens<7>, AccumulateTokens<kMostTokens>};
  kForms[num_tokens - 1](w, w_stride, x, x_stride, count, sums);
}

}  // namespace

const F32Tiles kAvx512F32Tiles = {.most_tokens = kMostTokens, .accumulate = Accumulate};

}  // namespace deepinfer
