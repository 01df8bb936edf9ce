#include <cmath>

#include "kernels/cpu/simd.h"
#include "kernels/rms_norm/rms_norm.h"

namespace deepinfer {
namespace {

void NormRow(const RmsNormParams& p, const bf16* x, bf16* out) {
  const float mean = simd::SumOfSquares(x, p.dim) / static_cast<float>(p.dim);
  const float inverse = 1.0f / std::sqrt(mean + p.eps);
  const __m256 scale = _mm256_set1_ps(inverse);
  const auto norm = [&](__m256 value, __m256 gain) {
    return _mm256_mul_ps(gain, _mm256_mul_ps(value, scale));
  };
  simd::Transform(p.dim, out, norm, x, p.gain);
}

}  // namespace

void RmsNormCpu(const Backend& backend, const RmsNormParams& p) {
  backend.ParallelFor(p.num_tokens, 8, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) NormRow(p, p.x + t * p.x_stride, p.out + t * p.dim);
  });
}

}  // namespace deepinfer
