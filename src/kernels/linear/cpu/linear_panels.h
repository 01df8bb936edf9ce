// kernels/linear/cpu/linear_panels.h: Linear over weights in panels, for one set of inner loops.
#pragma once

#include "kernels/cpu/scratch.h"
#include "kernels/linear/cpu/panel_kernels.h"
#include "kernels/linear/linear.h"

namespace deepinfer {

// Whether LinearPanels computes it: weights in panels, scales in their usual range.
inline bool HasPanels(const Matrix& w) { return w.panels != nullptr && w.usual_scales; }

// num_rows rows of BF16 as `kernels` wants them: where they are, or converted into `scratch`.
PanelRows PreparePanelRows(const PanelKernels& kernels, const Backend& backend, const bf16* x,
                           int64_t x_stride, int64_t num_rows, int32_t cols,
                           AlignedScratch& scratch);

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

// Same contract as LinearParams. Requires: HasPanels(params.weight).
void LinearPanels(const PanelKernels& kernels, const Backend& backend, const LinearParams& params);

// The forms of LinearOp; matrices without panels run as LinearCpu does.
void LinearAvx2(const Backend& backend, const LinearParams& params);
void LinearAvx512(const Backend& backend, const LinearParams& params);
void LinearAmx(const Backend& backend, const LinearParams& params);

}  // namespace deepinfer
