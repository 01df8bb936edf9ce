// kernels/engram/engram.h: n-gram memory: table rows -> BF16, and their mix into the streams.
//
// Row ids are computed on the host (model/engram_hash.h). Source: model.md 3.9.
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/formats/matrix.h"

namespace deepinfer {

// out[t, c*dim : (c+1)*dim] = bf16 of table row rows[t, c], each 32-column group times its scale.
struct EngramGatherParams {
  int32_t num_tokens = 0;         // T
  int32_t columns = 0;            // C: rows per token
  EngramTable table;              // dim columns
  const int32_t* rows = nullptr;  // [T, C] in [0, table.rows)
  bf16* out = nullptr;            // [T, C * dim]
};

// dot_j  = sum_c X[j]_c * qw[j]_c * kw[j]_c * key[j]_c * rsqrt(mean X[j]^2 + eps) * rsqrt(mean
// key[j]^2 + eps) * D^-0.5 gate_j = live ? sigmoid(copysign(sqrt(max(|dot_j|, 1e-6)), dot_j)) : 0
// X[j]   = bf16(X[j] + gate_j * value); all F32 inside.
// Reference: engram_ref.cc.
struct EngramMixParams {
  int32_t num_tokens = 0;   // T
  int32_t num_streams = 0;  // hc
  int32_t dim = 0;          // D
  float eps = 0;
  const bf16* kv = nullptr;        // [T, (hc+1) * D]: hc keys, then the value
  const bf16* q_weight = nullptr;  // [hc, D]
  const bf16* k_weight = nullptr;  // [hc, D]
  const uint8_t* live = nullptr;   // [T] 0 = row of an image span (gate 0); null = all live
  bf16* streams = nullptr;         // X [T, hc, D]
};

Op<EngramGatherParams>& EngramGatherOp();
Op<EngramMixParams>& EngramMixOp();
inline void EngramGather(const Backend& backend, const EngramGatherParams& params) {
  EngramGatherOp().Run(backend, params);
}
inline void EngramMix(const Backend& backend, const EngramMixParams& params) {
  EngramMixOp().Run(backend, params);
}

}  // namespace deepinfer
