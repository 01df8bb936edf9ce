#include "kernels/embedding/embedding.h"

namespace deepinfer {

void EmbeddingRef(const Backend&, const EmbeddingParams& p) {
  for (int64_t t = 0; t < p.num_tokens; ++t) {
    const bf16* row = p.table.bf16_data() + int64_t{p.ids[t]} * p.dim;
    if (p.overrides != nullptr && p.overrides[t] != nullptr) row = p.overrides[t];
    for (int64_t j = 0; j < p.num_streams; ++j) {
      for (int64_t d = 0; d < p.dim; ++d) p.streams[(t * p.num_streams + j) * p.dim + d] = row[d];
      p.pre[t * p.num_streams + j] = j == 0 ? 1.0f : 0.0f;
    }
  }
}

}  // namespace deepinfer
