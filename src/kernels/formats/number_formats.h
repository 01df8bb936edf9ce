// kernels/formats/number_formats.h: the number formats of checkpoint, activations and KV, shared by
// host and device code.
//
//   bf16   upper half of an F32                        E8M0   byte e = 2^(e-127), 255 = NaN
//   e4m3   OCP FP8: bias 7, max 448, 0x7f/0xff = NaN   e2m1   FP4: 0 .5 1 1.5 2 3 4 6, bit 3 = sign
// Rounding to nearest, ties to even everywhere; saturating where the text says so.
// This is the only file that oracle and fast forms share. Source: OCP MX formats; model.md 2.3
// and 6.1.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace deepinfer {

struct bf16 {
  uint16_t bits;
  friend bool operator==(bf16, bf16) = default;
};
static_assert(sizeof(bf16) == 2);

inline float ToFloat(bf16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }

inline bf16 ToBf16(float x) {
  uint32_t u = std::bit_cast<uint32_t>(x);
  if ((u & 0x7fffffffu) > 0x7f800000u)
    return {static_cast<uint16_t>((u >> 16) | 0x40)};  // NaN stays NaN
  u += 0x7fffu + ((u >> 16) & 1);
  return {static_cast<uint16_t>(u >> 16)};
}

// Through F32, as the official arithmetic does. A double sum is rounded twice; the first rounding
// is 2^16 times finer, and it is the one that exists there too.
inline bf16 ToBf16(double x) { return ToBf16(static_cast<float>(x)); }

// 2^(e-127), exact for every byte (0 is the F32 subnormal 2^-127). Requires: e != 255.
inline float E8m0ToFloat(uint8_t e) {
  return e == 0 ? std::bit_cast<float>(0x00400000u)
                : std::bit_cast<float>(static_cast<uint32_t>(e) << 23);
}

constexpr uint8_t kE8m0Nan = 255;
inline bool IsE4m3Nan(uint8_t code) { return (code & 0x7f) == 0x7f; }

inline float E4m3ToFloat(uint8_t code) {
  const uint32_t exponent = (code >> 3) & 15, mantissa = code & 7;
  if ((code & 0x7f) == 0x7f) return std::numeric_limits<float>::quiet_NaN();
  const float magnitude = exponent == 0
                              ? static_cast<float>(mantissa) * 0x1p-9f
                              : std::bit_cast<float>(((exponent + 120) << 23) | (mantissa << 20));
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

// Nearest e4m3 code, ties to even mantissa, saturating at 448; NaN gives the NaN code.
inline uint8_t FloatToE4m3(float x) {
  const uint8_t sign = std::bit_cast<uint32_t>(x) >> 31 ? 0x80 : 0;
  const float a = std::fabs(x);
  if (!(a < 448.0f)) return a != a ? 0x7f : sign | 0x7e;
  // The grid step is 2^-9 below 2^-6, else 2^(exponent-3).
  int exponent = static_cast<int>(std::bit_cast<uint32_t>(a) >> 23) - 127;
  if (exponent < -6) exponent = -6;
  const float step = std::bit_cast<float>(static_cast<uint32_t>(exponent - 3 + 127) << 23);
  const float units = std::nearbyint(a / step);  // 0..16, exact division by a power of two
  uint32_t n = static_cast<uint32_t>(units);
  if (n == 16) {
    n = 8;
    ++exponent;
  }
  if (n < 8) return sign | static_cast<uint8_t>(n);  // subnormal
  return sign | static_cast<uint8_t>(((exponent + 7) << 3) | (n - 8));
}

inline float E2m1ToFloat(uint8_t code) {
  constexpr float kMagnitudes[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
  const float magnitude = kMagnitudes[code & 7];
  return (code & 8) != 0 ? -magnitude : magnitude;
}

// Nearest e2m1 code, ties to the even code, saturating at 6. Requires: x is not NaN.
inline uint8_t FloatToE2m1(float x) {
  const uint8_t sign = std::bit_cast<uint32_t>(x) >> 31 ? 8 : 0;
  const float a = std::fabs(x);
  uint8_t code;
  if (a <= 0.25f)
    code = 0;
  else if (a < 0.75f)
    code = 1;
  else if (a <= 1.25f)
    code = 2;
  else if (a < 1.75f)
    code = 3;
  else if (a <= 2.5f)
    code = 4;
  else if (a < 3.5f)
    code = 5;
  else if (a <= 5.0f)
    code = 6;
  else
    code = 7;
  return sign | code;
}

// The E8M0 byte of 2^ceil(log2(x)), from the exponent bits. Requires: x > 0, normal.
inline uint8_t CeilPow2Byte(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  return static_cast<uint8_t>((u >> 23) + ((u & 0x7fffffu) != 0 ? 1 : 0));
}

// Scale bytes of one quantisation group from its largest magnitude (model.md 6.1).
inline uint8_t Fp8GroupScale(float amax) {  // E8M0, groups of 32: activations and SWA records
  return CeilPow2Byte(std::fmax(amax, 1e-4f) * (1.0f / 448.0f));
}
inline uint8_t Fp4GroupScaleE8m0(float amax) {  // E8M0, groups of 32: index queries and keys
  return CeilPow2Byte(std::fmax(amax, 6.0f * 0x1p-126f) * (1.0f / 6.0f));
}
inline uint8_t Fp4GroupScaleE4m3(float amax) {  // E4M3, groups of 16: global KV
  return FloatToE4m3(std::fmax(amax, 6.0f * 0x1p-9f) / 6.0f);
}

}  // namespace deepinfer
