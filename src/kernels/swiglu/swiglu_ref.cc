#include <algorithm>
#include <cmath>

#include "kernels/fault.h"
#include "kernels/swiglu/swiglu.h"

namespace deepinfer {

void SwigluRef(const Backend&, const SwigluParams& p) {
  const bool clamp = p.limit > 0 && !DI_FAULT("no_swiglu_clamp");
  for (int64_t t = 0; t < p.num_tokens; ++t) {
    for (int64_t i = 0; i < p.inner; ++i) {
      float gate = ToFloat(p.gate[t * p.inner + i]);
      float up = ToFloat(p.up[t * p.inner + i]);
      if (clamp) {
        gate = std::min(gate, p.limit);
        up = std::clamp(up, -p.limit, p.limit);
      }
      const float silu = static_cast<float>(gate / (1.0 + std::exp(-double{gate})));
      float product = silu * up;
      if (p.weight != nullptr) product = p.weight[t] * product;
      p.out[t * p.inner + i] = ToBf16(product);
    }
  }
}

}  // namespace deepinfer
