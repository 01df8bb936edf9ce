// kernels/formats/panels.h: weight matrices in the order in which the fast CPU forms read them.
//
// A panel is 16 rows of W; a vector lane is an output row, so that products need no sums across
// lanes. Columns come in groups of 32, padded with zeros; absent rows of the last panel are zeros.
// A group holds, for row r in 0..15 and column k in 0..31:
//   kFp4   256 bytes: blocks k/8 of 64; in a block row r has 4 bytes, the even columns' four
//          nibbles in the lower two, the odd columns' in the upper two
//   kFp8   512 bytes: blocks k/4 of 64; in a block four rows share 16 bytes: their column pairs
//          k%4 < 2, then their pairs k%4 >= 2
//   kBf16  1,024 bytes: blocks k/2 of 64; in a block row r has the pair (k, k+1)
// After the groups of a panel come its scale bytes (E8M0): 16 a group for kFp4, one for kFp8;
// padded to 64 bytes. Source: kernels.md 6.1.
#pragma once

#include <cstdint>

#include "kernels/formats/matrix.h"

namespace deepinfer {

inline constexpr int32_t kGroupCols = 32;

inline constexpr int64_t PanelGroupBytes(WeightFormat format) {
  return format == WeightFormat::kFp4    ? 256
         : format == WeightFormat::kFp8  ? 512
         : format == WeightFormat::kBf16 ? 1024
                                         : 0;
}
inline constexpr int64_t PanelScaleBytes(WeightFormat format) {  // a group
  return format == WeightFormat::kFp4 ? 16 : format == WeightFormat::kFp8 ? 1 : 0;
}
inline constexpr int32_t NumGroups(int32_t cols) { return (cols + kGroupCols - 1) / kGroupCols; }
inline constexpr int32_t NumPanels(int32_t rows) { return (rows + kPanelRows - 1) / kPanelRows; }
inline constexpr int64_t PanelBytes(WeightFormat format, int32_t cols) {
  const int64_t scales = (NumGroups(cols) * PanelScaleBytes(format) + 63) / 64 * 64;
  return NumGroups(cols) * PanelGroupBytes(format) + scales;
}

// Bytes of the whole matrix in panels; 0 for formats that have none (kF32).
inline constexpr int64_t PackedBytes(WeightFormat format, int32_t rows, int32_t cols) {
  return PanelGroupBytes(format) == 0 ? 0 : NumPanels(rows) * PanelBytes(format, cols);
}

// Writes panels [begin, end) of the plain matrix `w`, all of their bytes. out: where the first of
// them goes, 64-byte aligned. Uses what this processor has; the plain form gives the same bytes.
void PackPanels(const Matrix& w, int32_t begin, int32_t end, uint8_t* out);
void PackPanelsPlain(const Matrix& w, int32_t begin, int32_t end, uint8_t* out);

// Rows [first, first + count) of `w`; plain views and panels alike. Requires: a panel boundary
// where `w` has panels, a multiple of 32 for kFp8.
Matrix RowSlice(const Matrix& w, int32_t first, int32_t count);

}  // namespace deepinfer
