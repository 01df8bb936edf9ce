// kernels/embedding/embedding.h: token ids -> the hc identical streams that the first layer reads.
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/formats/matrix.h"

namespace deepinfer {

// streams[t, j, :] = override[t] ? override[t][:] : table[ids[t], :] for every stream j;
// pre[t, :] = (1, 0, ..., 0). Source: model.md 3.1 steps 2-3. Reference: embedding_ref.cc.
struct EmbeddingParams {
  int32_t num_tokens = 0;        // T
  int32_t dim = 0;               // D
  int32_t num_streams = 0;       // hc
  const int32_t* ids = nullptr;  // [T], each in [0, table.rows)
  Matrix table;                  // [V, D] BF16
  const bf16* const* overrides =
      nullptr;              // [T] rows of D that replace the table's, or null; may be null
  bf16* streams = nullptr;  // [T, hc, D]
  float* pre = nullptr;     // [T, hc]
};

Op<EmbeddingParams>& EmbeddingOp();
inline void Embedding(const Backend& backend, const EmbeddingParams& params) {
  EmbeddingOp().Run(backend, params);
}

}  // namespace deepinfer
