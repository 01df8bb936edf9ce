// Plain CPU form of QuantiseIndexQuery. Bit-equal to the oracle.
#include <algorithm>

#include "kernels/cpu/simd.h"
#include "kernels/indexer/cpu/index_group.h"
#include "kernels/indexer/indexer.h"

namespace deepinfer {
namespace {

// The nearest e2m1 value of |a| <= 6, ties to the even code. Steps are half of the power of two
// below a, 0.5 below 1: adding a number whose last place that is rounds to them.
__m256 RoundToE2m1(__m256 a) {
  const __m256 exponent = _mm256_castsi256_ps(_mm256_set1_epi32(0x7f800000));
  const __m256 power = _mm256_and_ps(_mm256_max_ps(a, _mm256_set1_ps(1)), exponent);
  const __m256 large = _mm256_mul_ps(power, _mm256_set1_ps(0x1.8p22f));
  return _mm256_sub_ps(_mm256_add_ps(a, large), large);
}

void QuantiseGroup(bf16* x) {
  const uint8_t scale = index_group::Scale(x);
  if (scale == kE8m0Nan) {
    std::fill_n(x, index_group::kValues, ToBf16(std::numeric_limits<float>::quiet_NaN()));
    return;
  }
  const __m256 inverse = _mm256_set1_ps(E8m0ToFloat(static_cast<uint8_t>(254 - scale)));
  const __m256 factor = _mm256_set1_ps(E8m0ToFloat(scale));
  const __m256 sign = _mm256_set1_ps(-0.0f);
  for (int32_t i = 0; i < index_group::kValues; i += 8) {
    const __m256 value = simd::Load(x + i);
    const __m256 scaled = _mm256_andnot_ps(sign, _mm256_mul_ps(value, inverse));
    const __m256 rounded = _mm256_mul_ps(RoundToE2m1(scaled), factor);
    simd::Store(x + i, _mm256_or_ps(rounded, _mm256_and_ps(value, sign)));
  }
}

}  // namespace

void QuantiseIndexQueryCpu(const Backend& backend, const QuantiseIndexQueryParams& params) {
  const int64_t row_groups = params.dim / index_group::kValues;
  backend.ParallelFor(params.num_rows, 64, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin * row_groups; g < end * row_groups; ++g) {
      QuantiseGroup(params.x + g * index_group::kValues);
    }
  });
}

}  // namespace deepinfer
