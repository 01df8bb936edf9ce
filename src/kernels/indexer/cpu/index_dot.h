// kernels/indexer/cpu/index_dot.h: exact dots of FP4 index queries with stored FP4 keys, on
// integers.
//
// Twice an e2m1 code is an integer of at most 12, so a group of 32 sums exactly in int32; groups
// are joined in F64 with their power-of-two scales. Include from *_cpu.cc only (AVX2).
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/check.h"
#include "kernels/formats/number_formats.h"
#include "kernels/kv_layout.h"

namespace deepinfer::index_dot {

inline constexpr int32_t kGroup = 32;  // values that share a scale
inline constexpr int32_t kQuad = 4;    // groups reduced together; short rows are padded with zeros

inline int32_t PaddedGroups(int32_t dim) { return (dim / kGroup + kQuad - 1) / kQuad * kQuad; }

// Integer form of the vectors that are scored together. Inside a group the 16 even dims come first,
// then the 16 odd ones: the order in which a key's nibbles unpack.
struct Codes {
  template <typename Memory>
  Codes(Memory& memory, int32_t rows, int32_t dim)
      : doubled(memory.template Get<int8_t>(int64_t{rows} * PaddedGroups(dim) * kGroup)),
        scales(memory.template Get<double>(int64_t{rows} * PaddedGroups(dim))) {}

  int8_t* doubled;  // [rows, padded groups, 32] twice the code
  double* scales;   // [rows, padded groups] half the scale; NaN spoils the row
};

// Largest magnitude of the group as the FP4 scale byte, or 255 if something is not finite.
inline uint8_t GroupScale(const bf16* x) {
  float amax = 0;
  for (int32_t i = 0; i < kGroup; ++i) {
    const float a = std::fabs(ToFloat(x[i]));
    if (!std::isfinite(a)) return kE8m0Nan;
    amax = a > amax ? a : amax;
  }
  return Fp4GroupScaleE8m0(amax);
}

// Recovers the integers of fake-quantised values. Their own largest magnitude gives the scale, or
// half of it (largest code 3); doubled codes are integers with either.
inline void EncodeQueries(const bf16* q, int32_t rows, int32_t dim, const Codes& out) {
  const int32_t padded = PaddedGroups(dim);
  std::fill_n(out.doubled, int64_t{rows} * padded * kGroup, int8_t{0});
  std::fill_n(out.scales, int64_t{rows} * padded, 0.0);
  for (int32_t row = 0; row < rows; ++row) {
    for (int32_t g = 0; g < dim / kGroup; ++g) {
      const bf16* x = q + int64_t{row} * dim + g * kGroup;
      const int64_t group = int64_t{row} * padded + g;
      const uint8_t scale = GroupScale(x);
      if (scale == kE8m0Nan) {
        out.scales[group] = std::numeric_limits<double>::quiet_NaN();
        continue;
      }
      const double half = 0.5 * E8m0ToFloat(scale);
      out.scales[group] = half;
      int8_t* doubled = out.doubled + group * kGroup;
      for (int32_t i = 0; i < kGroup; ++i) {
        const double value = ToFloat(x[i]) / half;
        CHECK(value == std::nearbyint(value) && std::fabs(value) <= 12);  // on the FP4 grid
        doubled[i / 2 + (i % 2) * 16] = static_cast<int8_t>(value);
      }
    }
  }
}

// One stored key, unpacked. Reused from key to key.
struct Key {
  template <typename Memory>
  Key(Memory& memory, int32_t dim)
      : padded_groups(PaddedGroups(dim)),
        doubled(memory.template Get<int8_t>(int64_t{padded_groups} * kGroup)),
        magnitude(memory.template Get<int8_t>(int64_t{padded_groups} * kGroup)),
        scales(memory.template Get<double>(padded_groups)) {}

  // Zeroes the padding, which unpacking leaves alone.
  void Clear() const {
    std::fill_n(doubled, int64_t{padded_groups} * kGroup, int8_t{0});
    std::fill_n(magnitude, int64_t{padded_groups} * kGroup, int8_t{0});
    std::fill_n(scales, padded_groups, 0.0);
  }

  int32_t padded_groups;
  int8_t *doubled, *magnitude;  // [padded groups, 32] twice the code, and |that|
  double* scales;               // [padded groups] half the scale
};

inline __m256i LoadGroup(const int8_t* values) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values));
}
inline void StoreGroup(__m256i values, int8_t* out) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), values);
}

inline void UnpackKey(const uint8_t* codes, const uint8_t* scales, int32_t dim, const Key& key) {
  const __m256i table = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12));
  for (int32_t g = 0; g < dim / kGroup; ++g) {
    const __m128i packed = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + g * 16));
    const __m128i low = _mm_and_si128(packed, _mm_set1_epi8(15));
    const __m128i high = _mm_and_si128(_mm_srli_epi16(packed, 4), _mm_set1_epi8(15));
    const __m256i doubled = _mm256_shuffle_epi8(table, _mm256_set_m128i(high, low));
    StoreGroup(doubled, key.doubled + g * kGroup);
    StoreGroup(_mm256_abs_epi8(doubled), key.magnitude + g * kGroup);
    key.scales[g] = scales[g] == kE8m0Nan ? std::numeric_limits<double>::quiet_NaN()
                                          : 0.5 * E8m0ToFloat(scales[g]);
  }
}

// Eight partial int32 sums of one group; |products| <= 144, so the int16 pairs cannot saturate.
inline __m256i GroupProducts(const int8_t* query, const Key& key, size_t group) {
  const __m256i q = LoadGroup(query + group * kGroup);
  const __m256i pairs =
      _mm256_maddubs_epi16(LoadGroup(key.magnitude + group * kGroup),
                           _mm256_sign_epi8(q, LoadGroup(key.doubled + group * kGroup)));
  return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

// q . key for row `row` of `queries`.
inline double Dot(const Codes& queries, int32_t row, const Key& key) {
  const auto padded = static_cast<size_t>(key.padded_groups);
  const int8_t* query = queries.doubled + static_cast<size_t>(row) * padded * kGroup;
  const double* scales = queries.scales + static_cast<size_t>(row) * padded;
  __m256d total = _mm256_setzero_pd();
  for (size_t g = 0; g < padded; g += kQuad) {
    const __m256i ab =
        _mm256_hadd_epi32(GroupProducts(query, key, g), GroupProducts(query, key, g + 1));
    const __m256i cd =
        _mm256_hadd_epi32(GroupProducts(query, key, g + 2), GroupProducts(query, key, g + 3));
    const __m256i abcd = _mm256_hadd_epi32(ab, cd);
    const __m128i sums =
        _mm_add_epi32(_mm256_castsi256_si128(abcd), _mm256_extracti128_si256(abcd, 1));
    const __m256d scale =
        _mm256_mul_pd(_mm256_loadu_pd(scales + g), _mm256_loadu_pd(key.scales + g));
    total = _mm256_fmadd_pd(_mm256_cvtepi32_pd(sums), scale, total);
  }
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(total), _mm256_extractf128_pd(total, 1));
  return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

}  // namespace deepinfer::index_dot
