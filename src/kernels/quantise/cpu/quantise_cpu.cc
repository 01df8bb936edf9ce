#include <algorithm>
#include <limits>

#include "kernels/cpu/simd.h"
#include "kernels/quantise/quantise.h"

namespace deepinfer {
namespace {

constexpr int64_t kGroup = 32;
constexpr int64_t kGroupsPerPiece = 64;  // a microsecond

// Nearest e4m3 value, ties to even, sign kept. Requires: |v| <= 448.
__m256 RoundToE4m3(__m256 v) {
  // The grid's step is 2^-3 of the power of two at or below |v|, and no finer than 2^-9. Of F32
  // values 1.5 * 2^23 times as large it is the last digit, so adding one rounds.
  const __m256 power = _mm256_and_ps(v, _mm256_castsi256_ps(_mm256_set1_epi32(0x7f800000)));
  const __m256 least = _mm256_max_ps(power, _mm256_set1_ps(0x1p-6f));
  const __m256 large = _mm256_mul_ps(least, _mm256_set1_ps(0x1.8p20f));
  const __m256 rounded = _mm256_sub_ps(_mm256_add_ps(v, large), large);
  return _mm256_or_ps(rounded, _mm256_and_ps(v, _mm256_set1_ps(-0.0f)));  // -0 too
}

void QuantiseGroup(const bf16* x, bf16* out) {
  const uint16_t largest = simd::LargestMagnitude(x, kGroup);
  if (largest >= 0x7f80) {
    std::fill_n(out, kGroup, ToBf16(std::numeric_limits<float>::quiet_NaN()));
    return;
  }
  // The scale is 2^(e-127) with 105 <= e <= 247, so its inverse is a normal number too.
  const uint8_t e = Fp8GroupScale(ToFloat(bf16{largest}));
  const __m256 scale = _mm256_set1_ps(E8m0ToFloat(e));
  const __m256 inverse = _mm256_set1_ps(E8m0ToFloat(static_cast<uint8_t>(254 - e)));
  // Quantised values have four digits: their BF16 is the upper half of their F32.
  const auto quantised = [&](__m256i bits) {
    const __m256 code = RoundToE4m3(_mm256_mul_ps(_mm256_castsi256_ps(bits), inverse));
    return _mm256_castps_si256(_mm256_mul_ps(code, scale));
  };
  const __m256i upper_half = _mm256_set1_epi32(~0xffff);
  for (int64_t i = 0; i < kGroup; i += 16) {
    const __m256i pairs = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
    const __m256i even = quantised(_mm256_slli_epi32(pairs, 16));
    const __m256i odd = quantised(_mm256_and_si256(pairs, upper_half));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i),
                        _mm256_or_si256(_mm256_srli_epi32(even, 16), odd));
  }
}

}  // namespace

void QuantiseCpu(const Backend& backend, const QuantiseParams& p) {
  const int64_t num_groups = int64_t{p.num_tokens} * (p.dim / kGroup);
  backend.ParallelFor(num_groups, kGroupsPerPiece, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) QuantiseGroup(p.x + g * kGroup, p.out + g * kGroup);
  });
}

}  // namespace deepinfer
