#include "kernels/formats/panels.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/cpu/features.h"
#include "kernels/formats/panels_avx2.h"

namespace deepinfer {
namespace {

// Every second nibble of eight, the first in the lowest bits.
uint16_t EveryOtherNibble(uint32_t nibbles) {
  nibbles &= 0x0f0f0f0f;
  nibbles = (nibbles | nibbles >> 4) & 0x00ff00ff;
  return static_cast<uint16_t>(nibbles | nibbles >> 8);
}

// Each packs columns [first, cols) of one row. Requires: `first` is where a block begins.
void PackFp4Row(const uint8_t* row, int32_t first, int32_t cols, int32_t lane, uint8_t* panel) {
  for (int32_t k = first; k < cols; k += 8) {
    uint32_t codes;
    std::memcpy(&codes, row + k / 2, sizeof codes);
    const uint16_t even_odd[2] = {EveryOtherNibble(codes), EveryOtherNibble(codes >> 4)};
    std::memcpy(panel + k / 8 * 64 + lane * 4, even_odd, sizeof even_odd);
  }
}

void PackFp8Row(const uint8_t* row, int32_t first, int32_t cols, int32_t lane, uint8_t* panel) {
  uint8_t* const out = panel + lane / 4 * 16 + lane % 4 * 2;
  for (int32_t k = first; k < cols; k += 4) {
    std::memcpy(out + k / 4 * 64, row + k, 2);
    std::memcpy(out + k / 4 * 64 + 8, row + k + 2, 2);
  }
}

void PackBf16Row(const bf16* row, int32_t first, int32_t cols, int32_t lane, uint8_t* panel) {
  uint8_t* const out = panel + lane * 4;
  for (int32_t k = first; k + 2 <= cols; k += 2) std::memcpy(out + k / 2 * 64, row + k, 4);
  if (cols % 2 != 0) std::memcpy(out + cols / 2 * 64, row + cols - 1, 2);
}

int64_t RowBytes(const Matrix& w) {
  return w.format == WeightFormat::kFp4   ? w.cols / 2
         : w.format == WeightFormat::kFp8 ? w.cols
                                          : int64_t{w.cols} * 2;
}

// Codes of columns [first, cols) of row `row` in lane `lane` of its panel.
void PackRow(const Matrix& w, int64_t row, int32_t first, int32_t lane, uint8_t* panel) {
  const uint8_t* const codes = w.bytes() + row * RowBytes(w);
  switch (w.format) {
    case WeightFormat::kFp4:
      return PackFp4Row(codes, first, w.cols, lane, panel);
    case WeightFormat::kFp8:
      return PackFp8Row(codes, first, w.cols, lane, panel);
    default:
      return PackBf16Row(reinterpret_cast<const bf16*>(codes), first, w.cols, lane, panel);
  }
}

// Scales of `rows` rows from `row` on; out: the panel's scale bytes.
void PackScales(const Matrix& w, int64_t row, int32_t rows, bool avx2, uint8_t* out) {
  const int32_t groups = NumGroups(w.cols);
  if (w.format == WeightFormat::kFp8) {
    std::memcpy(out, w.scale + row / 32 * groups, static_cast<size_t>(groups));
  }
  if (w.format != WeightFormat::kFp4) return;
  const uint8_t* const scales = w.scale + row * groups;
  const int32_t done = avx2 && rows == kPanelRows ? PackFp4ScalesAvx2(scales, groups, out) : 0;
  for (int32_t lane = 0; lane < rows; ++lane) {
    for (int32_t g = done; g < groups; ++g) out[g * 16 + lane] = scales[lane * groups + g];
  }
}

void PackPanel(const Matrix& w, int32_t index, bool avx2, uint8_t* panel) {
  const int64_t first_row = int64_t{index} * kPanelRows;
  const int32_t rows = std::min(kPanelRows, w.rows - index * kPanelRows);
  int32_t first_col = 0;
  if (avx2 && rows == kPanelRows) {
    const int64_t row_bytes = RowBytes(w);
    const int64_t done =
        PackPanelAvx2(w.format, w.bytes() + first_row * row_bytes, row_bytes, panel);
    first_col = static_cast<int32_t>(done * w.cols / row_bytes);
  }
  if (first_col < w.cols) {
    for (int32_t lane = 0; lane < rows; ++lane) {
      PackRow(w, first_row + lane, first_col, lane, panel);
    }
  }
  PackScales(w, first_row, rows, avx2, panel + NumGroups(w.cols) * PanelGroupBytes(w.format));
}

void Pack(const Matrix& w, int32_t begin, int32_t end, bool avx2, uint8_t* out) {
  const int64_t bytes = PanelBytes(w.format, w.cols);
  CHECK_GT(PanelGroupBytes(w.format), 0);
  CHECK(w.format == WeightFormat::kBf16 || w.cols % kGroupCols == 0);
  const int64_t scales_end =
      NumGroups(w.cols) * (PanelGroupBytes(w.format) + PanelScaleBytes(w.format));
  for (int32_t p = begin; p < end; ++p, out += bytes) {
    const bool full = w.cols % kGroupCols == 0 && (p + 1) * kPanelRows <= w.rows;
    const int64_t first_zero = full ? scales_end : 0;
    std::memset(out + first_zero, 0, static_cast<size_t>(bytes - first_zero));
    PackPanel(w, p, avx2, out);
  }
}

}  // namespace

void PackPanels(const Matrix& w, int32_t begin, int32_t end, uint8_t* out) {
  Pack(w, begin, end, ThisCpu().avx2, out);
}
void PackPanelsPlain(const Matrix& w, int32_t begin, int32_t end, uint8_t* out) {
  Pack(w, begin, end, false, out);
}

Matrix RowSlice(const Matrix& w, int32_t first, int32_t count) {
  CHECK(first >= 0 && count >= 0 && first + count <= w.rows);
  Matrix slice = w;
  slice.rows = count;
  const int64_t skipped = int64_t{first} * w.cols;
  switch (w.format) {
    case WeightFormat::kFp4:
      slice.data = w.bytes() + skipped / 2;
      slice.scale = w.scale + skipped / 32;
      break;
    case WeightFormat::kFp8:
      CHECK_EQ(first % 32, 0);
      slice.data = w.bytes() + skipped;
      slice.scale = w.scale + skipped / 1024;
      break;
    case WeightFormat::kBf16:
      slice.data = w.bf16_data() + skipped;
      break;
    case WeightFormat::kF32:
      slice.data = w.f32_data() + skipped;
      break;
    case WeightFormat::kNone:
      break;
  }
  if (w.panels != nullptr) {
    CHECK_EQ(first % kPanelRows, 0);
    slice.panels = w.panels + first / kPanelRows * PanelBytes(w.format, w.cols);
  }
  return slice;
}

}  // namespace deepinfer
