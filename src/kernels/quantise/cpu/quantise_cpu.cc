#include <algorithm>
#include <limits>

#include "kernels/cpu/simd.h"
#include "kernels/quantise/quantise.h"

namespace deepinfer {
namespace {

constexpr int64_t kGroup = 32;

// The largest magnitude's bits: BF16 magnitudes compare as integers, infinity and NaN above all.
uint16_t LargestMagnitude(const bf16* x) {
  uint16_t largest = 0;
  for (int64_t i = 0; i < kGroup; ++i) largest = std::max<uint16_t>(largest, x[i].bits & 0x7fff);
  return largest;
}

// Nearest e4m3 value, ties to even, sign kept. Requires: |v| <= 448.
__m256 RoundToE4m3(__m256 v) {
  const __m256 sign_bit = _mm256_set1_ps(-0.0f);
  const __m256 magnitude = _mm256_andnot_ps(sign_bit, v);
  // Normal codes keep three mantissa bits of the F32.
  const __m256i bits = _mm256_castps_si256(magnitude);
  const __m256i lsb = _mm256_and_si256(_mm256_srli_epi32(bits, 20), _mm256_set1_epi32(1));
  const __m256i bias = _mm256_add_epi32(lsb, _mm256_set1_epi32(0x7ffff));
  const __m256 normal = _mm256_castsi256_ps(
      _mm256_and_si256(_mm256_add_epi32(bits, bias), _mm256_set1_epi32(~0xfffff)));
  // Below 2^-6 the grid is multiples of 2^-9: the step of F32 values in [2^14, 2^15).
  const __m256 shift = _mm256_set1_ps(0x1p14f);
  const __m256 subnormal = _mm256_sub_ps(_mm256_add_ps(magnitude, shift), shift);
  const __m256 is_normal = _mm256_cmp_ps(magnitude, _mm256_set1_ps(0x1p-6f), _CMP_GE_OQ);
  const __m256 rounded = _mm256_blendv_ps(subnormal, normal, is_normal);
  return _mm256_or_ps(rounded, _mm256_and_ps(sign_bit, v));
}

void QuantiseGroup(const bf16* x, bf16* out) {
  const uint16_t largest = LargestMagnitude(x);
  if (largest >= 0x7f80) {
    std::fill_n(out, kGroup, ToBf16(std::numeric_limits<float>::quiet_NaN()));
    return;
  }
  // The scale is 2^(e-127) with 105 <= e <= 247, so its inverse is a normal number too.
  const uint8_t e = Fp8GroupScale(ToFloat(bf16{largest}));
  const __m256 scale = _mm256_set1_ps(E8m0ToFloat(e));
  const __m256 inverse = _mm256_set1_ps(E8m0ToFloat(static_cast<uint8_t>(254 - e)));
  for (int64_t i = 0; i < kGroup; i += 8) {
    const __m256 code = RoundToE4m3(_mm256_mul_ps(simd::Load(x + i), inverse));
    simd::Store(out + i, _mm256_mul_ps(code, scale));
  }
}

}  // namespace

void QuantiseCpu(const Backend& backend, const QuantiseParams& p) {
  const int64_t num_groups = int64_t{p.num_tokens} * (p.dim / kGroup);
  backend.ParallelFor(num_groups, 512, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) QuantiseGroup(p.x + g * kGroup, p.out + g * kGroup);
  });
}

}  // namespace deepinfer
