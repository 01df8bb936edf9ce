// kernels/compressor/compressor.h: the tokens of one group -> one latent row (ratio > 1).
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/formats/number_formats.h"

namespace deepinfer {

// Per channel c: w = softmax over the group's tokens of b[., c]; out[n, c] = bf16(sum w * a[., c]);
// F32. Source: model.md 3.5. Reference: compressor_ref.cc.
struct CompressParams {
  int32_t num_entries = 0;  // n
  int32_t ratio = 0;        // tokens per entry, >= 2
  int32_t dim = 0;          // head_dim
  const float* const* rows =
      nullptr;          // [n, ratio] pointers to rows (a[dim], b[dim]): step scratch or tail ring
  bf16* out = nullptr;  // [n, dim], before the latent's norm
};

Op<CompressParams>& CompressOp();
inline void Compress(const Backend& backend, const CompressParams& params) {
  CompressOp().Run(backend, params);
}

}  // namespace deepinfer
