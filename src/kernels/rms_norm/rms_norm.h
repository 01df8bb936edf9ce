// kernels/rms_norm/rms_norm.h: RMS normalisation of rows.
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/formats/number_formats.h"

namespace deepinfer {

// out[t, :] = bf16(gain * x[t, :] / sqrt(mean(x[t, :]^2) + eps)), statistics and product in F32
// with one rounding. A zero row gives zeros, not NaN. Source: model.md 3. Reference:
// rms_norm_ref.cc.
struct RmsNormParams {
  int32_t num_tokens = 0;  // T
  int32_t dim = 0;         // N
  float eps = 0;
  const bf16* x = nullptr;     // [T, N]
  int64_t x_stride = 0;        // elements from row to row
  const bf16* gain = nullptr;  // [N]
  bf16* out = nullptr;         // [T, N], contiguous; may be x if x_stride == N
};

Op<RmsNormParams>& RmsNormOp();
inline void RmsNorm(const Backend& backend, const RmsNormParams& params) {
  RmsNormOp().Run(backend, params);
}

}  // namespace deepinfer
