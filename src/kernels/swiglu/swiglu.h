// kernels/swiglu/swiglu.h: the activation between an expert's two products.
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/formats/number_formats.h"

namespace deepinfer {

// g = min(gate, limit), u = clamp(up, -limit, limit) (limit 0 = none); out = bf16(w * (silu(g) *
// u)), F32. The routing weight multiplies here, before the quantiser of w2's input. Source:
// model.md 3.7. Reference: swiglu_ref.cc.
struct SwigluParams {
  int32_t num_tokens = 0;  // T
  int32_t inner = 0;       // I
  float limit = 0;
  const bf16* gate = nullptr;     // [T, I]
  const bf16* up = nullptr;       // [T, I]
  const float* weight = nullptr;  // [T] routing weights, or null for 1
  bf16* out = nullptr;            // [T, I]; may be gate
};

Op<SwigluParams>& SwigluOp();
inline void Swiglu(const Backend& backend, const SwigluParams& params) {
  SwigluOp().Run(backend, params);
}

}  // namespace deepinfer
