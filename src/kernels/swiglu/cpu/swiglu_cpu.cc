#include <limits>

#include "kernels/cpu/simd.h"
#include "kernels/swiglu/swiglu.h"

namespace deepinfer {
namespace {

// NaN passes through minimum and maximum because it is their second operand.
void SwigluRow(const bf16* gate, const bf16* up, int64_t inner, float limit, float weight,
               bf16* out) {
  const __m256 most = _mm256_set1_ps(limit), least = _mm256_set1_ps(-limit);
  const auto product = [&](__m256 g, __m256 u) {
    const __m256 clamped = _mm256_min_ps(most, _mm256_max_ps(least, u));
    const __m256 activated = _mm256_mul_ps(simd::Silu(_mm256_min_ps(most, g)), clamped);
    return _mm256_mul_ps(_mm256_set1_ps(weight), activated);
  };
  simd::Transform(inner, out, product, gate, up);
}

}  // namespace

void SwigluCpu(const Backend& backend, const SwigluParams& p) {
  const float limit = p.limit > 0 ? p.limit : std::numeric_limits<float>::infinity();
  backend.ParallelFor(p.num_tokens, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t at = t * p.inner;
      const float weight = p.weight != nullptr ? p.weight[t] : 1.0f;
      SwigluRow(p.gate + at, p.up + at, p.inner, limit, weight, p.out + at);
    }
  });
}

}  // namespace deepinfer
