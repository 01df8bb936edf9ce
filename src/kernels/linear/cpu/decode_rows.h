// kernels/linear/cpu/decode_rows.h: weight codes -> exact F32 values, eight at a time.
//
// Only for files compiled for AVX2 with F16C (*_cpu.cc).
#pragma once

#include <immintrin.h>

#include <cstring>
#include <limits>

#include "kernels/cpu/simd.h"
#include "kernels/formats/matrix.h"

namespace deepinfer::simd {

// e4m3 placed in the upper bits of an F16 has the same mantissa and an exponent bias larger by 8:
// the F16 value is 2^-8 of the code's, subnormals included. Requires: no NaN codes.
inline __m256 DecodeE4m3(const uint8_t* codes, __m256 scale_times_256) {
  const __m128i wide = _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes)));
  const __m128i sign = _mm_slli_epi16(_mm_and_si128(wide, _mm_set1_epi16(0x80)), 8);
  const __m128i rest = _mm_slli_epi16(_mm_and_si128(wide, _mm_set1_epi16(0x7f)), 7);
  return _mm256_mul_ps(_mm256_cvtph_ps(_mm_or_si128(sign, rest)), scale_times_256);
}

// Values of eight codes, NaN for theirs.
inline __m256 E4m3Values(const uint8_t* codes) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes));
  const __m128i nan_code = _mm_set1_epi8(0x7f);
  const __m128i is_nan = _mm_cmpeq_epi8(_mm_and_si128(bytes, nan_code), nan_code);
  return _mm256_blendv_ps(DecodeE4m3(codes, _mm256_set1_ps(256.0f)),
                          _mm256_set1_ps(std::numeric_limits<float>::quiet_NaN()),
                          _mm256_castsi256_ps(_mm256_cvtepi8_epi32(is_nan)));
}

struct SixteenFloats {
  __m256 first, second;
};

// 16 e2m1 codes (8 bytes, low nibble first) times a scale, in order. Code -0 decodes to +0: no sum
// can tell.
inline SixteenFloats DecodeE2m1Half(const uint8_t* pairs, float scale) {
  // Twice the values, which are integers.
  const __m128i table = _mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);
  const __m128i low_nibbles = _mm_set1_epi8(15);
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(pairs));
  const __m128i even = _mm_shuffle_epi8(table, _mm_and_si128(bytes, low_nibbles));
  const __m128i odd = _mm_shuffle_epi8(table, _mm_and_si128(_mm_srli_epi16(bytes, 4), low_nibbles));
  const __m128i codes = _mm_unpacklo_epi8(even, odd);
  const auto scaled = [half_scale = _mm256_set1_ps(0.5f * scale)](__m128i eight) {
    return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(eight)), half_scale);
  };
  return {scaled(codes), scaled(_mm_srli_si128(codes, 8))};
}

// 32 of them, 16 bytes.
inline void DecodeE2m1Group(const uint8_t* pairs, float scale, float* out) {
  for (int i = 0; i < 2; ++i) {
    const auto [first, second] = DecodeE2m1Half(pairs + 8 * i, scale);
    _mm256_storeu_ps(out + 16 * i, first);
    _mm256_storeu_ps(out + 16 * i + 8, second);
  }
}

// BF16 or F32 columns, count of them, then zeros up to the next multiple of 8.
inline void DecodeBf16(const bf16* x, int64_t count, float* out) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) _mm256_storeu_ps(out + i, Load(x + i));
  if (i == count) return;
  _mm256_storeu_ps(out + i, _mm256_setzero_ps());
  for (; i < count; ++i) out[i] = ToFloat(x[i]);
}

// Columns [begin, begin + count) of a row, then zeros up to the next multiple of 8.
// Requires: begin % 32 == 0; every scale byte in [64, 190], so that code times scale is normal.
inline void DecodeRow(const Matrix& w, int64_t row, int64_t begin, int64_t count, float* out) {
  const int64_t index = row * w.cols + begin;
  switch (w.format) {
    case WeightFormat::kFp8: {
      const uint8_t* scale = w.scale + row / 32 * (w.cols / 32) + begin / 32;
      for (int64_t i = 0; i < count; i += 8) {
        const __m256 factor = _mm256_set1_ps(E8m0ToFloat(scale[i / 32]) * 256.0f);
        _mm256_storeu_ps(out + i, DecodeE4m3(w.bytes() + index + i, factor));
      }
      return;
    }
    case WeightFormat::kFp4: {
      const uint8_t* scale = w.scale + index / 32;
      for (int64_t i = 0; i < count; i += 32)
        DecodeE2m1Group(w.bytes() + (index + i) / 2, E8m0ToFloat(scale[i / 32]), out + i);
      return;
    }
    case WeightFormat::kBf16:
      DecodeBf16(w.bf16_data() + index, count, out);
      return;
    case WeightFormat::kF32:
      std::memcpy(out, w.f32_data() + index, static_cast<size_t>(count) * sizeof(float));
      for (int64_t i = count; i % 8 != 0; ++i) out[i] = 0;
      return;
    case WeightFormat::kNone:
      return;
  }
}

}  // namespace deepinfer::simd
