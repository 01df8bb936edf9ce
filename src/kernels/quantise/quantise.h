// kernels/quantise/quantise.h: activations onto the FP8 grid ("Q8"), kept as BF16 values.
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/formats/number_formats.h"

namespace deepinfer {

// out = bf16(e4m3(clamp(x / s, +-448)) * s), s = the power-of-two scale of each group of 32 along
// the row. Exact in BF16: code times power of two. A NaN stays in its group (all 32 values become
// NaN). Source: model.md 6.1. Reference: quantise_ref.cc.
struct QuantiseParams {
  int32_t num_tokens = 0;   // T
  int32_t dim = 0;          // N, a multiple of 32
  const bf16* x = nullptr;  // [T, N], contiguous
  bf16* out = nullptr;      // [T, N]; may be x
};

Op<QuantiseParams>& QuantiseOp();
inline void Quantise(const Backend& backend, const QuantiseParams& params) {
  QuantiseOp().Run(backend, params);
}

}  // namespace deepinfer
