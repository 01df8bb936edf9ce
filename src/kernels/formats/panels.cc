#include "kernels/formats/panels.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace deepinfer {
namespace {

// Every second nibble of eight, the first in the lowest bits.
uint16_t EveryOtherNibble(uint32_t nibbles) {
  nibbles &= 0x0f0f0f0f;
  nibbles = (nibbles | nibbles >> 4) & 0x00ff00ff;
  return static_cast<uint16_t>(nibbles | nibbles >> 8);
}

void PackFp4Row(const uint8_t* row, int32_t cols, int32_t lane, uint8_t* panel) {
  for (int32_t k = 0; k < cols; k += 8) {
    uint32_t codes;
    std::memcpy(&codes, row + k / 2, sizeof codes);
    const uint16_t even_odd[2] = {EveryOtherNibble(codes), EveryOtherNibble(codes >> 4)};
    std::memcpy(panel + k / 8 * 64 + lane * 4, even_odd, sizeof even_odd);
  }
}

void PackFp8Row(const uint8_t* row, int32_t cols, int32_t lane, uint8_t* panel) {
  uint8_t* const out = panel + lane / 4 * 16 + lane % 4 * 2;
  for (int32_t k = 0; k < cols; k += 4) {
    std::memcpy(out + k / 4 * 64, row + k, 2);
    std::memcpy(out + k / 4 * 64 + 8, row + k + 2, 2);
  }
}

void PackBf16Row(const bf16* row, int32_t cols, int32_t lane, uint8_t* panel) {
  uint8_t* const out = panel + lane * 4;
  for (int32_t k = 0; k + 2 <= cols; k += 2) std::memcpy(out + k / 2 * 64, row + k, 4);
  if (cols % 2 != 0) std::memcpy(out + cols / 2 * 64, row + cols - 1, 2);
}

// Codes and scales of row `row` in lane `lane` of its panel.
void PackRow(const Matrix& w, int64_t row, int32_t lane, uint8_t* panel) {
  const int32_t groups = NumGroups(w.cols);
  uint8_t* const scales = panel + groups * PanelGroupBytes(w.format);
  const int64_t first = row * w.cols;
  switch (w.format) {
    case WeightFormat::kFp4:
      PackFp4Row(w.bytes() + first / 2, w.cols, lane, panel);
      for (int32_t g = 0; g < groups; ++g) scales[g * 16 + lane] = w.scale[row * groups + g];
      return;
    case WeightFormat::kFp8:
      PackFp8Row(w.bytes() + first, w.cols, lane, panel);
      if (lane == 0) std::memcpy(scales, w.scale + row / 32 * groups, static_cast<size_t>(groups));
      return;
    case WeightFormat::kBf16:
      PackBf16Row(w.bf16_data() + first, w.cols, lane, panel);
      return;
    case WeightFormat::kF32:
    case WeightFormat::kNone:
      CHECK(false);
  }
}

}  // namespace

void PackPanels(const Matrix& w, int32_t begin, int32_t end, uint8_t* out) {
  const int64_t bytes = PanelBytes(w.format, w.cols);
  CHECK_GT(PanelGroupBytes(w.format), 0);
  CHECK(w.format == WeightFormat::kBf16 || w.cols % kGroupCols == 0);
  for (int32_t p = begin; p < end; ++p) {
    uint8_t* const panel = out + p * bytes;
    const int32_t rows = std::min(kPanelRows, w.rows - p * kPanelRows);
    if (rows < kPanelRows || w.cols % kGroupCols != 0) {
      std::memset(panel, 0, static_cast<size_t>(bytes));
    }
    for (int32_t lane = 0; lane < rows; ++lane) {
      PackRow(w, int64_t{p} * kPanelRows + lane, lane, panel);
    }
  }
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
