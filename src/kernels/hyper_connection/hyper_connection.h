// kernels/hyper_connection/hyper_connection.h: the residual streams of a layer (mHC, single-pass
// form).
//
// Order for a sub-layer: HyperMix and HyperCollapse read the streams, the sub-layer runs on the
// collapsed row, HyperUpdate writes the streams. `pre` flows to the NEXT sub-layer. Source:
// model.md 3.2.
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/formats/number_formats.h"

namespace deepinfer {

// m = (fn . flatten(X)) / sqrt(mean(flatten(X)^2) + norm_eps), all F32;
// pre_next = sigmoid(m[0:hc] * scale[0] + base[0:hc]) + hc_eps
// post     = 2 sigmoid(m[hc:2hc] * scale[1] + base[hc:2hc])
// comb     = Sinkhorn(m[2hc:] * scale[2] + base[2hc:]), [source][destination]; row softmax +
// hc_eps, column
//            normalisation, then (iterations - 1) times rows, columns. Ends on columns.
// Reference: hyper_connection_ref.cc.
struct HyperMixParams {
  int32_t num_tokens = 0;   // T
  int32_t num_streams = 0;  // hc
  int32_t dim = 0;          // D
  int32_t sinkhorn_iterations = 0;
  float norm_eps = 0;
  float hc_eps = 0;
  const bf16* streams = nullptr;  // X [T, hc, D]
  const float* fn = nullptr;      // [(2+hc)*hc, hc*D]
  const float* base = nullptr;    // [(2+hc)*hc]
  const float* scale = nullptr;   // [3]
  float* pre_next = nullptr;      // [T, hc]
  float* post = nullptr;          // [T, hc]
  float* comb = nullptr;          // [T, hc, hc]
};

// out[t, :] = bf16(sum_j pre[t, j] * X[t, j, :])
struct HyperCollapseParams {
  int32_t num_tokens = 0;         // T
  int32_t num_streams = 0;        // hc
  int32_t dim = 0;                // D
  const bf16* streams = nullptr;  // X [T, hc, D]
  const float* pre = nullptr;     // [T, hc]
  bf16* out = nullptr;            // [T, D]
};

// X[t, j, :] = bf16(post[t, j] * y[t, :] + sum_i comb[t, i, j] * X[t, i, :]), in place.
struct HyperUpdateParams {
  int32_t num_tokens = 0;       // T
  int32_t num_streams = 0;      // hc
  int32_t dim = 0;              // D
  const bf16* y = nullptr;      // [T, D]
  const float* post = nullptr;  // [T, hc]
  const float* comb = nullptr;  // [T, hc, hc]
  bf16* streams = nullptr;      // X [T, hc, D]
};

Op<HyperMixParams>& HyperMixOp();
Op<HyperCollapseParams>& HyperCollapseOp();
Op<HyperUpdateParams>& HyperUpdateOp();
inline void HyperMix(const Backend& backend, const HyperMixParams& params) {
  HyperMixOp().Run(backend, params);
}
inline void HyperCollapse(const Backend& backend, const HyperCollapseParams& params) {
  HyperCollapseOp().Run(backend, params);
}
inline void HyperUpdate(const Backend& backend, const HyperUpdateParams& params) {
  HyperUpdateOp().Run(backend, params);
}

}  // namespace deepinfer
