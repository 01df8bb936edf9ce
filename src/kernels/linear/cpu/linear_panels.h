// kernels/linear/cpu/linear_panels.h: Linear over weights in panels, for one set of inner loops.
#pragma once

#include <algorithm>
#include <span>

#include "kernels/cpu/scratch.h"
#include "kernels/linear/cpu/panel_kernels.h"
#include "kernels/linear/linear.h"

namespace deepinfer {

// Whether LinearPanels computes it: weights in panels, scales in their usual range.
inline bool HasPanels(const Matrix& w) { return w.panels != nullptr && w.usual_scales; }

// Rows of x in the forms in which sets of inner loops want them.
class PreparedRows {
 public:
  // x: num_rows rows of BF16; both it and `frame` outlive the result.
  PreparedRows(const PanelKernels& kernels, const Backend& backend, const bf16* x, int64_t x_stride,
               int64_t num_rows, int32_t cols, ScratchFrame& frame);
  // The most that it takes of a frame.
  static void Measure(const PanelKernels& kernels, int64_t num_rows, int32_t cols,
                      ScratchMeter& meter);

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
  // Stretches of some rows, at most.
  static int64_t MostStretches(const PanelKernels& kernels, int64_t num_rows) {
    return kernels.fallback != nullptr ? num_rows : std::min<int64_t>(1, num_rows);
  }

 private:
  bool IsRefused(int64_t row) const { return any_refused_ && refused_[row] != 0; }

  const PanelKernels* kernels_;
  const uint8_t* refused_ = nullptr;  // [num_rows]
  PanelRows rows_, fallback_rows_;    // the latter's hold the refused rows only
  bool any_refused_ = false;
};

// One product cut into units of panels, which any threads may run in any order.
class PanelProduct {
 public:
  // x: params.x prepared, which is not looked at. Requires: HasPanels(params.weight).
  PanelProduct(const PanelKernels& kernels, const LinearParams& params, PanelRows x);

  int32_t num_panels() const;
  int32_t panels_per_unit() const { return panels_per_unit_; }
  int32_t num_units() const { return (num_panels() + panels_per_unit_ - 1) / panels_per_unit_; }
  void Run(int64_t begin, int64_t end) const;  // panels; those past the last are none

 private:
  const PanelKernels* kernels_;
  LinearParams params_;
  PanelRows x_;
  int32_t panels_per_unit_;
};

// Products that are to run together.
class PanelProducts {
 public:
  // Of at most `most` products.
  PanelProducts(int64_t most, ScratchFrame& frame)
      : products_(frame.Get<PanelProduct>(most)), most_(most) {}
  static void Measure(int64_t most, ScratchMeter& meter) { meter.Get<PanelProduct>(most); }

  // Adds the products of rows [begin, end) with params.weight; the output is that of row `begin`.
  void Add(const PreparedRows& rows, int64_t begin, int64_t end, const LinearParams& params);
  // Runs them all. Threads meet once.
  void Run(const Backend& backend) const;

 private:
  void RunOne(const Backend& backend, int64_t threads) const;
  void RunSlabs(const Backend& backend, int64_t threads) const;

  PanelProduct* const products_;
  const int64_t most_;
  int64_t count_ = 0;
};

// What PanelProducts::Run takes.
ScratchBytes RunScratchBytes(const PanelKernels& kernels);

// The forms of LinearOp; matrices without panels run as LinearCpu does.
void LinearAvx2(const Backend& backend, const LinearParams& params);
void LinearAvx512(const Backend& backend, const LinearParams& params);
void LinearAmx(const Backend& backend, const LinearParams& params);
void LinearsAvx2(const Backend& backend, const LinearsParams& params);
void LinearsAvx512(const Backend& backend, const LinearsParams& params);
void LinearsAmx(const Backend& backend, const LinearsParams& params);

}  // namespace deepinfer
