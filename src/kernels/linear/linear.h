// kernels/linear/linear.h: y = x W^T for every weight format. The workhorse.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/backend.h"
#include "kernels/formats/matrix.h"

namespace deepinfer {

// out[t, n] = sum_k x[t, k] * W[n, k]; F32 accumulation, one rounding to the output type.
// x is BF16 (already on the FP8 grid where the model quantises). Weights are decoded exactly: code
// times scale. The order of the sum depends on K and the format alone, never on T. Scales outside
// the usual range stay exact (weight.usual_scales == false takes a slower path). Reference:
// linear_ref.cc (F64 sums). Source: model.md 6.2, kernels.md 2.
struct LinearParams {
  int32_t num_tokens = 0;    // T
  Matrix weight;             // [N, K]
  const bf16* x = nullptr;   // [T, K]
  int64_t x_stride = 0;      // elements from row to row, >= K
  bf16* out = nullptr;       // [T, N] BF16, or null
  float* out_f32 = nullptr;  // [T, N] F32, or null; exactly one of the two is given
  int64_t out_stride = 0;    // elements from row to row, >= N
};

Op<LinearParams>& LinearOp();
inline void Linear(const Backend& backend, const LinearParams& params) {
  LinearOp().Run(backend, params);
}

// Products that do not depend on each other: the same as one after the other, in one go of the
// threads.
struct LinearsParams {
  std::span<const LinearParams> products;
};

Op<LinearsParams>& LinearsOp();
inline void Linears(const Backend& backend, std::span<const LinearParams> products) {
  LinearsOp().Run(backend, {products});
}

}  // namespace deepinfer
