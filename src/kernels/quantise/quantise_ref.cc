#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/fault.h"
#include "kernels/quantise/quantise.h"

namespace deepinfer {
namespace {

constexpr int64_t kGroup = 32;

void QuantiseGroup(const bf16* x, bf16* out) {
  float amax = 0;
  bool finite = true;
  for (int64_t i = 0; i < kGroup; ++i) {
    const float v = ToFloat(x[i]);
    amax = std::fmax(amax, std::fabs(v));
    finite = finite && std::isfinite(v);
  }
  if (!finite) {
    std::fill_n(out, kGroup, ToBf16(std::numeric_limits<float>::quiet_NaN()));
    return;
  }
  const float scale = E8m0ToFloat(Fp8GroupScale(amax));
  for (int64_t i = 0; i < kGroup; ++i)
    out[i] = ToBf16(E4m3ToFloat(FloatToE4m3(ToFloat(x[i]) / scale)) * scale);
}

}  // namespace

void QuantiseRef(const Backend&, const QuantiseParams& p) {
  const int64_t count = int64_t{p.num_tokens} * p.dim;
  if (DI_FAULT("no_activation_quant")) {
    std::copy_n(p.x, count, p.out);
    return;
  }
  for (int64_t i = 0; i < count; i += kGroup) QuantiseGroup(p.x + i, p.out + i);
}

}  // namespace deepinfer
