#include <cmath>

#include "kernels/rms_norm/rms_norm.h"

namespace deepinfer {

void RmsNormRef(const Backend&, const RmsNormParams& p) {
  for (int64_t t = 0; t < p.num_tokens; ++t) {
    const bf16* x = p.x + t * p.x_stride;
    double sum = 0;
    for (int64_t d = 0; d < p.dim; ++d) sum += double{ToFloat(x[d])} * ToFloat(x[d]);
    const float mean = static_cast<float>(sum / p.dim);
    const float inverse = 1.0f / std::sqrt(mean + p.eps);
    for (int64_t d = 0; d < p.dim; ++d) {
      const float normalised = ToFloat(x[d]) * inverse;
      p.out[t * p.dim + d] = ToBf16(ToFloat(p.gain[d]) * normalised);
    }
  }
}

}  // namespace deepinfer
