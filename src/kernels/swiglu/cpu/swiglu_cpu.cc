#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/swiglu/swiglu.h"

namespace deepinfer {

void SwigluCpu(const Backend& backend, const SwigluParams& p) {
  const float limit = p.limit > 0 ? p.limit : std::numeric_limits<float>::infinity();
  backend.ParallelFor(p.num_tokens, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const float weight = p.weight != nullptr ? p.weight[t] : 1.0f;
      for (int64_t i = t * p.inner; i < (t + 1) * p.inner; ++i) {
        const float gate = std::min(ToFloat(p.gate[i]), limit);
        const float up = std::clamp(ToFloat(p.up[i]), -limit, limit);
        const float silu = gate / (1.0f + std::exp(-gate));
        p.out[i] = ToBf16(weight * (silu * up));
      }
    }
  });
}

}  // namespace deepinfer
