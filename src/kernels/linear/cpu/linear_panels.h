// kernels/linear/cpu/linear_panels.h: Linear over weights in panels, for one set of inner loops.
#pragma once

#include <vector>

#include "kernels/cpu/scratch.h"
#include "kernels/linear/cpu/panel_kernels.h"
#include "kernels/linear/linear.h"

namespace deepinfer {

// Whether LinearPanels computes it: weights in panels, scales in their usual range.
inline bool HasPanels(const Matrix& w) { return w.panels != nullptr && w.usual_scales; }

// Rows of x in the forms in which sets of inner loops want them.
class PreparedRows {
 public:
  struct Scratch {
    AlignedScratch rows, fallback_rows;
    std::vector<uint8_t> refused;
  };
  // x: num_rows rows of BF16; both it and `scratch` outlive the result.
  PreparedRows(const PanelKernels& kernels, const Backend& backend, const bf16* x, int64_t x_stride,
               int64_t num_rows, int32_t cols, Scratch& scratch);

  // visit(kernels, rows from `first` on, first, count) for the stretches of rows [begin, end) that
  // one set multiplies.
  template <typename Visit>
  void ForStretches(int64_t begin, int64_t end, const Visit& visit) const {
    for (int64_t first = begin; first < end;) {
      const bool refused = IsRefused(first);
      int64_t last = first + 1;
      while (last < end && IsRefused(last) == refused) ++last;
      const PanelRows& rows = refused ? fallback_rows_ : rows_;
      visit(refused ? *kernels_->fallback : *kernels_,
            PanelRows{rows.data + first * rows.stride, rows.stride}, first, last - first);
      first = last;
    }
  }

 private:
  bool IsRefused(int64_t row) const {
    return any_refused_ && scratch_->refused[static_cast<size_t>(row)] != 0;
  }

  const PanelKernels* kernels_;
  const Scratch* scratch_;
  PanelRows rows_, fallback_rows_;  // the latter's hold the refused rows only
  bool any_refused_ = false;
};

// One product cut into units of panels, which any threads may run in any order.
class PanelProduct {
 public:
  // x: params.x prepared, which is not looked at. Requires: HasPanels(params.weight).
  PanelProduct(const PanelKernels& kernels, const LinearParams& params, PanelRows x);

  int32_t num_units() const;
  void Run(int64_t begin, int64_t end) const;  // units

 private:
  const PanelKernels* kernels_;
  LinearParams params_;
  PanelRows x_;
  int32_t panels_per_unit_;
};

// Adds the products of rows [begin, end) with params.weight; the output is that of row `begin`.
void AddProducts(const PreparedRows& rows, int64_t begin, int64_t end, const LinearParams& params,
                 std::vector<PanelProduct>& products);
// Runs them all together. Threads meet once.
void RunProducts(const Backend& backend, const std::vector<PanelProduct>& products);

// The forms of LinearOp; matrices without panels run as LinearCpu does.
void LinearAvx2(const Backend& backend, const LinearParams& params);
void LinearAvx512(const Backend& backend, const LinearParams& params);
void LinearAmx(const Backend& backend, const LinearParams& params);
void LinearsAvx2(const Backend& backend, const LinearsParams& params);
void LinearsAvx512(const Backend& backend, const LinearsParams& params);
void LinearsAmx(const Backend& backend, const LinearsParams& params);

}  // namespace deepinfer
