// kernels/indexer/cpu/index_group.h: the FP4 scale of a group of index values.
//
// Include from *_cpu.cc only (AVX2).
#pragma once

#include <cstdint>

#include "kernels/cpu/simd.h"
#include "kernels/formats/number_formats.h"

namespace deepinfer::index_group {

inline constexpr int32_t kValues = 32;

// Of the largest magnitude, or the NaN code if something is not finite. Never 0 or 254: 2^-126 to
// 2^126, so that its half and the inverses of both are F32 numbers.
inline uint8_t Scale(const bf16* x) {
  const uint16_t largest = simd::LargestMagnitude(x, kValues);
  return largest >= 0x7f80 ? kE8m0Nan : Fp4GroupScaleE8m0(ToFloat(bf16{largest}));
}

}  // namespace deepinfer::index_group
