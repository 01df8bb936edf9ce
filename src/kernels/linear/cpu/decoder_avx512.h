// kernels/linear/cpu/decoder_avx512.h: codes of panels as exact BF16 values, for the sets that are
// compiled for AVX-512 (*_avx512.cc, *_amx.cc). Not for other files.
#pragma once

#include <immintrin.h>

#include "kernels/formats/panels.h"

namespace deepinfer {

inline constexpr int kPairs = kGroupCols / 2;  // vectors of a decoded group

// The 16 e2m1 values as BF16, twice: VPERMW reads five index bits, of which the fifth is noise.
inline __m512i Fp4Table() {
  const __m256i values = _mm256_setr_epi16(
      0x0000, 0x3f00, 0x3f80, 0x3fc0, 0x4000, 0x4040, 0x4080, 0x40c0, static_cast<short>(0x8000),
      static_cast<short>(0xbf00), static_cast<short>(0xbf80), static_cast<short>(0xbfc0),
      static_cast<short>(0xc000), static_cast<short>(0xc040), static_cast<short>(0xc080),
      static_cast<short>(0xc0c0));
  return _mm512_broadcast_i64x4(values);
}

// Bytes of the BF16 values of the 128 e4m3 magnitudes; the last is NaN.
struct Fp8Bytes {
  alignas(64) uint8_t low[128], high[128];
  constexpr Fp8Bytes() : low(), high() {
    for (int code = 0; code < 128; ++code) {
      int exponent = code >> 3, mantissa = code & 7;
      if (exponent == 0 && mantissa != 0) {  // subnormal: shift up to a leading one
        exponent = 1;
        for (; mantissa < 8; mantissa *= 2) --exponent;
        mantissa -= 8;
      } else if (exponent == 0) {
        exponent = -120;
      }
      const int bits = code == 127 ? 0x7fc0 : (exponent + 120) << 7 | mantissa << 4;
      low[code] = static_cast<uint8_t>(bits);
      high[code] = static_cast<uint8_t>(bits >> 8);
    }
  }
};
inline constexpr Fp8Bytes kFp8Bytes;

template <WeightFormat kFormat>
struct Avx512Decoder;  // 64 bytes of codes -> kVectors vectors of [16 rows][2 columns] BF16

template <>
struct Avx512Decoder<WeightFormat::kFp4> {
  static constexpr int kVectors = 4;
  const __m512i table = Fp4Table();
  void Block(const uint8_t* codes, __m512i* out) const {
    const __m512i v = _mm512_load_si512(codes);
    out[0] = _mm512_permutexvar_epi16(v, table);
    out[1] = _mm512_permutexvar_epi16(_mm512_srli_epi32(v, 4), table);
    out[2] = _mm512_permutexvar_epi16(_mm512_srli_epi32(v, 8), table);
    out[3] = _mm512_permutexvar_epi16(_mm512_srli_epi32(v, 12), table);
  }
  static __m512 Scale(const uint8_t* scales, int64_t group) {
    const __m128i bytes =
        _mm_load_si128(reinterpret_cast<const __m128i*>(scales + group * kPanelRows));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu8_epi32(bytes), 23));
  }
};

template <>
struct Avx512Decoder<WeightFormat::kFp8> {
  static constexpr int kVectors = 2;
  const __m512i low0 = _mm512_load_si512(kFp8Bytes.low);
  const __m512i low1 = _mm512_load_si512(kFp8Bytes.low + 64);
  const __m512i high0 = _mm512_load_si512(kFp8Bytes.high);
  const __m512i high1 = _mm512_load_si512(kFp8Bytes.high + 64);
  const __m512i sign = _mm512_set1_epi8(static_cast<char>(0x80));
  void Block(const uint8_t* codes, __m512i* out) const {
    const __m512i v = _mm512_load_si512(codes);
    const __m512i low = _mm512_permutex2var_epi8(low0, v, low1);
    const __m512i magnitude = _mm512_permutex2var_epi8(high0, v, high1);
    const __m512i high = _mm512_ternarylogic_epi32(magnitude, v, sign, 0xf8);  // a | (b & c)
    out[0] = _mm512_unpacklo_epi8(low, high);
    out[1] = _mm512_unpackhi_epi8(low, high);
  }
  static __m512 Scale(const uint8_t* scales, int64_t group) {
    return _mm512_castsi512_ps(_mm512_set1_epi32(scales[group] << 23));
  }
};

template <>
struct Avx512Decoder<WeightFormat::kBf16> {
  static constexpr int kVectors = 1;
  void Block(const uint8_t* codes, __m512i* out) const { out[0] = _mm512_load_si512(codes); }
  static __m512 Scale(const uint8_t*, int64_t) { return _mm512_set1_ps(1.0f); }
};

}  // namespace deepinfer
