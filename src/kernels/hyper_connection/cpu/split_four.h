// kernels/hyper_connection/cpu/split_four.h: mixes -> coefficients of four streams, which are what
// the model has.
//
// A vector holds one row, or one column, of the matrices of two tokens, a token in each half; all
// sums run from vector to vector. Same operations in the same order as for any number of streams,
// but for the exponentials. Only for files compiled for AVX2 (*_cpu.cc).
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/simd.h"
#include "kernels/hyper_connection/hyper_connection.h"

namespace deepinfer::split_four {

inline constexpr int64_t kMixes = 24;  // a token's: pre [4], post [4], comb [4, 4]

// Matrices [4, 4] of two tokens: by row or by column.
struct Pair {
  __m256 v[4];
};

// Rows <-> columns, in each half.
inline void Transpose(Pair& c) {
  const auto pairs = [](__m256 a, __m256 b, bool upper) {
    const __m256d x = _mm256_castps_pd(a), y = _mm256_castps_pd(b);
    return _mm256_castpd_ps(upper ? _mm256_unpackhi_pd(x, y) : _mm256_unpacklo_pd(x, y));
  };
  const __m256 low01 = _mm256_unpacklo_ps(c.v[0], c.v[1]);
  const __m256 high01 = _mm256_unpackhi_ps(c.v[0], c.v[1]);
  const __m256 low23 = _mm256_unpacklo_ps(c.v[2], c.v[3]);
  const __m256 high23 = _mm256_unpackhi_ps(c.v[2], c.v[3]);
  c = {{pairs(low01, low23, false), pairs(low01, low23, true), pairs(high01, high23, false),
        pairs(high01, high23, true)}};
}

// Divides what lies in the same lane by its sum + eps.
inline void Normalise(Pair& c, __m256 eps) {
  __m256 sum = _mm256_add_ps(_mm256_add_ps(c.v[0], c.v[1]), c.v[2]);
  sum = _mm256_add_ps(_mm256_add_ps(sum, c.v[3]), eps);
  for (__m256& v : c.v) v = _mm256_div_ps(v, sum);
}

// By columns: every row e to its distance from the row's largest.
inline void ExpOfRows(Pair& c) {
  const __m256 largest =
      _mm256_max_ps(_mm256_max_ps(c.v[0], c.v[1]), _mm256_max_ps(c.v[2], c.v[3]));
  for (__m256& v : c.v) v = simd::Exp(_mm256_sub_ps(v, largest));
}

// By rows. Of several pairs, because each waits for its own sums and quotients most of the time.
template <int kPairs>
void Sinkhorn(Pair (&pairs)[kPairs], float hc_eps, int iterations) {
  const __m256 eps = _mm256_set1_ps(hc_eps);
  for (Pair& c : pairs) {
    Transpose(c);
    ExpOfRows(c);
    Normalise(c, _mm256_setzero_ps());
    for (__m256& v : c.v) v = _mm256_add_ps(v, eps);
    Transpose(c);
    Normalise(c, eps);
  }
  for (int n = 1; n < iterations; ++n) {
    for (Pair& c : pairs) {
      Transpose(c);
      Normalise(c, eps);
      Transpose(c);
      Normalise(c, eps);
    }
  }
}

// Mixes [first, first + 8) of a token, of which the parts `low` and `high` have four each.
inline __m256 Scaled(const HyperMixParams& p, const float* mix, float inverse, int first, int low,
                     int high) {
  const __m256 scale = _mm256_set_m128(_mm_set1_ps(p.scale[high]), _mm_set1_ps(p.scale[low]));
  const __m256 product = _mm256_mul_ps(_mm256_loadu_ps(mix + first), _mm256_set1_ps(inverse));
  return _mm256_add_ps(_mm256_mul_ps(product, scale), _mm256_loadu_ps(p.base + first));
}

inline void SplitPreAndPost(const HyperMixParams& p, int64_t t, const float* mix, float inverse) {
  const __m256 gates = simd::Sigmoid(Scaled(p, mix, inverse, 0, 0, 1));
  const __m128 pre = _mm_add_ps(_mm256_castps256_ps128(gates), _mm_set1_ps(p.hc_eps));
  const __m128 post = _mm_mul_ps(_mm_set1_ps(2.0f), _mm256_extractf128_ps(gates, 1));
  _mm_storeu_ps(p.pre_next + t * 4, pre);
  _mm_storeu_ps(p.post + t * 4, post);
}

// `count` tokens from `first` on, 1..2 * kPairs of them. mix [count, kMixes]: the products with fn,
// not yet divided by the RMS of the streams; inverse [count]: 1 / that RMS.
template <int kPairs>
void SplitTokens(const HyperMixParams& p, int64_t first, int64_t count, const float* mix,
                 const float* inverse) {
  Pair pairs[kPairs];
  for (int64_t i = 0; i < 2 * kPairs; i += 2) {
    __m256 upper[2], lower[2];  // rows 0 and 1, rows 2 and 3 of a token
    for (int64_t half = 0; half < 2; ++half) {
      const int64_t t = std::min(i + half, count - 1);  // the last once more where none is left
      upper[half] = Scaled(p, mix + t * kMixes, inverse[t], 8, 2, 2);
      lower[half] = Scaled(p, mix + t * kMixes, inverse[t], 16, 2, 2);
    }
    pairs[i / 2] = {{_mm256_permute2f128_ps(upper[0], upper[1], 0x20),
                     _mm256_permute2f128_ps(upper[0], upper[1], 0x31),
                     _mm256_permute2f128_ps(lower[0], lower[1], 0x20),
                     _mm256_permute2f128_ps(lower[0], lower[1], 0x31)}};
  }
  Sinkhorn(pairs, p.hc_eps, p.sinkhorn_iterations);
  for (int64_t t = 0; t < count; ++t) {
    SplitPreAndPost(p, first + t, mix + t * kMixes, inverse[t]);
    for (int64_t i = 0; i < 4; ++i) {
      const __m256 rows = pairs[t / 2].v[i];
      _mm_storeu_ps(p.comb + (first + t) * 16 + i * 4,
                    t % 2 == 0 ? _mm256_castps256_ps128(rows) : _mm256_extractf128_ps(rows, 1));
    }
  }
}

}  // namespace deepinfer::split_four
