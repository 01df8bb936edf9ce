// kernels/kv_records/cpu/kv_codes.h: groups of F32 values <-> codes, as loops that vectorise.
//
// Bit-equal to kernels/formats/number_formats.h; shared by the plain CPU forms that write or read
// records. Include from *_cpu.cc only.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/formats/number_formats.h"

namespace deepinfer::kv_codes {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Widens n BF16 values; returns their largest magnitude, infinity if some value is not finite.
inline float WidenGroup(const bf16* x, int32_t n, float* out) {
  uint32_t max_bits = 0;
  for (int32_t i = 0; i < n; ++i) {
    out[i] = ToFloat(x[i]);
    const uint32_t bits = std::bit_cast<uint32_t>(out[i]) & 0x7fffffffu;
    max_bits = bits > max_bits ? bits : max_bits;
  }
  return max_bits >= 0x7f800000u ? kInfinity : std::bit_cast<float>(max_bits);
}

// e4m3 codes of finite x / divisor.
inline void EncodeE4m3(const float* x, float divisor, int32_t n, uint8_t* codes) {
  for (int32_t i = 0; i < n; ++i) {
    const float scaled = x[i] / divisor;
    const float a = std::fabs(scaled) < 448.0f ? std::fabs(scaled) : 448.0f;
    const uint32_t bits = std::bit_cast<uint32_t>(a);
    // Normal: keep three mantissa bits, ties to even, exponent bias 127 -> 7.
    const uint32_t normal = ((bits + 0x7ffffu + ((bits >> 20) & 1)) >> 20) - (120u << 3);
    const uint32_t subnormal = static_cast<uint32_t>(static_cast<int32_t>(std::nearbyint(a * 512)));
    const uint32_t sign = (std::bit_cast<uint32_t>(scaled) >> 24) & 0x80u;
    codes[i] = static_cast<uint8_t>((a < 0x1p-6f ? subnormal : normal) | sign);
  }
}

inline uint32_t E2m1Code(float scaled) {
  const float a = std::fabs(scaled);
  const uint32_t magnitude = (a > 0.25f ? 1u : 0u) + (a >= 0.75f ? 1u : 0u) +
                             (a > 1.25f ? 1u : 0u) + (a >= 1.75f ? 1u : 0u) + (a > 2.5f ? 1u : 0u) +
                             (a >= 3.5f ? 1u : 0u) + (a > 5.0f ? 1u : 0u);
  return magnitude | ((std::bit_cast<uint32_t>(scaled) >> 28) & 8u);
}

// e2m1 codes of finite x / divisor, two a byte, even dim in the low nibble.
inline void EncodeE2m1(const float* x, float divisor, int32_t n, uint8_t* codes) {
  for (int32_t i = 0; i < n / 2; ++i) {
    codes[i] =
        static_cast<uint8_t>(E2m1Code(x[2 * i] / divisor) | E2m1Code(x[2 * i + 1] / divisor) << 4);
  }
}

inline float E8m0OrNan(uint8_t e) {
  return e == kE8m0Nan ? std::numeric_limits<float>::quiet_NaN() : E8m0ToFloat(e);
}

struct FloatPair {
  float low, high;
};

inline const std::array<float, 256>& E4m3Table() {
  static const auto table = [] {
    std::array<float, 256> values;
    for (int code = 0; code < 256; ++code) {
      values[static_cast<size_t>(code)] = E4m3ToFloat(static_cast<uint8_t>(code));
    }
    return values;
  }();
  return table;
}

inline const std::array<FloatPair, 256>& E2m1PairTable() {
  static const auto table = [] {
    std::array<FloatPair, 256> values;
    for (int byte = 0; byte < 256; ++byte) {
      values[static_cast<size_t>(byte)] = {E2m1ToFloat(static_cast<uint8_t>(byte & 15)),
                                           E2m1ToFloat(static_cast<uint8_t>(byte >> 4))};
    }
    return values;
  }();
  return table;
}

// Record layouts: kernels/kv_layout.h. out: [dim].
inline void DecodeSwa(const uint8_t* record, int32_t dim, float* out) {
  const std::array<float, 256>& table = E4m3Table();
  for (int32_t g = 0; g < dim / 32; ++g) {
    const float scale = E8m0OrNan(record[dim + g]);
    for (int32_t i = g * 32; i < (g + 1) * 32; ++i) out[i] = table[record[i]] * scale;
  }
}

inline void DecodeGlobal(const uint8_t* record, int32_t dim, float* out) {
  const std::array<FloatPair, 256>& table = E2m1PairTable();
  for (int32_t g = 0; g < dim / 16; ++g) {
    const float scale = E4m3Table()[record[dim / 2 + g]];
    for (int32_t i = g * 8; i < (g + 1) * 8; ++i) {
      const FloatPair pair = table[record[i]];
      out[2 * i] = pair.low * scale;
      out[2 * i + 1] = pair.high * scale;
    }
  }
}

}  // namespace deepinfer::kv_codes
