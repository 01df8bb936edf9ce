#include <algorithm>

#include "kernels/embedding/embedding.h"

namespace deepinfer {

void EmbeddingCpu(const Backend& backend, const EmbeddingParams& p) {
  backend.ParallelFor(p.num_tokens, 16, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const bf16* row = p.table.bf16_data() + int64_t{p.ids[t]} * p.dim;
      if (p.overrides != nullptr && p.overrides[t] != nullptr) row = p.overrides[t];
      bf16* out = p.streams + t * p.num_streams * p.dim;
      for (int32_t j = 0; j < p.num_streams; ++j, out += p.dim) std::copy_n(row, p.dim, out);
      float* pre = p.pre + t * p.num_streams;
      std::fill_n(pre, p.num_streams, 0.0f);
      pre[0] = 1.0f;
    }
  });
}

}  // namespace deepinfer
