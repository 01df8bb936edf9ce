// kernels/formats/matrix.h: views of weight matrices, in checkpoint layout and in panels. Nothing
// here owns memory.
#pragma once

#include <cstdint>

#include "kernels/formats/number_formats.h"

namespace deepinfer {

enum class WeightFormat : uint8_t { kNone, kFp8, kFp4, kBf16, kF32 };

inline constexpr int32_t kPanelRows = 16;

// W[rows, cols], y = x W^T. Row-major.
//   kFp8   data [rows, cols] e4m3, scale [rows/32, cols/32] E8M0
//   kFp4   data [rows, cols/2], low nibble = even column; scale [rows, cols/32] E8M0
//   kBf16  data [rows, cols] bf16     kF32  data [rows, cols] float; both without scale
struct Matrix {
  WeightFormat format = WeightFormat::kNone;
  int32_t rows = 0;
  int32_t cols = 0;
  const void* data = nullptr;
  const uint8_t* scale = nullptr;
  // The same weights as panels (formats/panels.h), or null: the fast CPU forms read them instead.
  const uint8_t* panels = nullptr;
  // False when some scale byte lies outside [64, 190]: fast forms then take their exact slow path.
  bool usual_scales = true;

  bool empty() const { return format == WeightFormat::kNone; }
  const uint8_t* bytes() const { return static_cast<const uint8_t*>(data); }
  const bf16* bf16_data() const { return static_cast<const bf16*>(data); }
  const float* f32_data() const { return static_cast<const float*>(data); }
};

// An engram table: [rows, dim] e4m3 with its own scale per row and 32 columns: [rows, dim/32] E8M0.
struct EngramTable {
  int64_t rows = 0;
  int32_t dim = 0;
  const uint8_t* data = nullptr;
  const uint8_t* scale = nullptr;
};

}  // namespace deepinfer
