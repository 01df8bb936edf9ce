// kernels/linear/cpu/panel_kernels.h: the inner loops of products with panels (formats/panels.h),
// one set per instruction set.
//
// One output is always the same chain, however many rows of x there are and whichever loop runs:
// per group of 32 columns a sum of unscaled products in order of k, starting at 0; then
// total = fma(sum, scale of the group, total), groups in order. (AMX has its own chain: scaled
// products, even and odd columns of the group apart; total = total + (even + odd).) Files that
// define a set hold nothing but these loops: what else they instantiated, the linker could hand to
// a processor without the instructions.
#pragma once

#include <cstdint>

#include "kernels/formats/panels.h"

namespace deepinfer {

// Rows of x in the form that a set wants, one group of 32 columns after the other. Columns are
// padded with zeros to whole groups.
struct PanelRows {
  const uint8_t* data = nullptr;
  int64_t stride = 0;  // bytes from row to row

  template <typename T>
  __attribute__((always_inline)) const T* Row(int64_t t) const {
    return reinterpret_cast<const T*>(data + t * stride);
  }
};

// Decoded groups of a few panels. Element type as the set's own; scales [panel][group][16], which a
// set may leave out that multiplies them into its weights.
struct DecodedPanels {
  void* weights = nullptr;  // [panel][group][32 * 16]
  float* scales = nullptr;  // [panel][group][16]
  int32_t num_groups = 0;   // groups decoded = distance from panel to panel
};

inline constexpr int32_t kMaxStreamRows = 8, kMaxStreamPanels = 4;

// out[t, i] = ToBf16(values[t, i]) for i < count.
using RoundRowsFn = void(const float* values, int64_t stride, int64_t num_rows, int64_t count,
                         bf16* out, int64_t out_stride);
RoundRowsFn RoundRowsAvx2, RoundRowsAvx512;

struct PanelKernels {
  int32_t x_group_bytes;  // of a row of x
  // Writes a row in the set's form. False: this set cannot multiply the row exactly, `fallback`
  // does; whether it can depends on that row alone. Null: the form is BF16 as it comes.
  bool (*prepare)(const bf16* x, int32_t cols, uint8_t* out);
  const PanelKernels* fallback;  // null where every row can be prepared
  // Most rows of x that are multiplied straight from the codes; 0: none ever are, and the two
  // functions for it are null.
  int32_t stream_rows;
  // Panels that stream side by side: enough chains of sums to keep the multipliers busy, few enough
  // streams for the memory. At most kMaxStreamPanels.
  int32_t (*stream_panels)(WeightFormat format, int32_t num_rows);
  int32_t tile_panels;   // panels a tile computes together
  int32_t tile_rows;     // most rows of x in a tile
  int32_t tile_groups;   // groups decoded at a time, so that they stay in cache
  int32_t weight_bytes;  // of a decoded element

  // totals[t][panel][16] = x[t] . panel for num_rows <= stream_rows rows and 1 or stream_panels()
  // panels, which follow each other in memory.
  void (*stream)(WeightFormat format, const uint8_t* panels, int32_t num_panels, int32_t num_groups,
                 PanelRows x, int32_t num_rows, float* totals);
  // Groups [begin, begin + out.num_groups) of a panel of `num_groups` into panel `index` of `out`.
  void (*decode)(WeightFormat format, const uint8_t* panel, int32_t num_groups, int32_t begin,
                 int32_t index, const DecodedPanels& out);
  // As RoundRowsFn says; of every set the same bits.
  RoundRowsFn* round;
  // totals[t][panel][16] += x[t] . decoded groups, for 1 or tile_panels panels and num_rows <=
  // tile_rows. x starts at the first decoded column; totals have row_stride floats from row to row.
  void (*tile)(const DecodedPanels& w, int32_t num_panels, PanelRows x, int32_t num_rows,
               float* totals, int64_t row_stride);
};

extern const PanelKernels kAvx2Panels;
extern const PanelKernels kAvx2Fp4Panels;         // FP4 alone
extern const PanelKernels kAvx2FewRowsFp8Panels;  // FP8 alone, streams only: the same bits faster
inline constexpr int32_t kFewRows = 4;
inline const PanelKernels& Avx2PanelsFor(WeightFormat format, int64_t num_rows) {
  if (format == WeightFormat::kFp4) return kAvx2Fp4Panels;
  return format == WeightFormat::kFp8 && num_rows <= kFewRows ? kAvx2FewRowsFp8Panels : kAvx2Panels;
}
extern const PanelKernels kAvx512Panels;
extern const PanelKernels kAmxPanels;

}  // namespace deepinfer
