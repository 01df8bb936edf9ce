// Oracle of the engram ops. Sums in F64; gate and update round where the official F32 code does.
#include <cmath>

#include "kernels/engram/engram.h"
#include "kernels/fault.h"

namespace deepinfer {
namespace {

// dot_j of the contract, for one stream. All pointers are [dim].
float GateDot(const bf16* x, const bf16* key, const bf16* qw, const bf16* kw, int32_t dim,
              float eps) {
  double dot = 0, x_squares = 0, key_squares = 0;
  for (int32_t c = 0; c < dim; ++c) {
    const double xc = ToFloat(x[c]), kc = ToFloat(key[c]);
    dot += xc * ToFloat(qw[c]) * ToFloat(kw[c]) * kc;
    x_squares += xc * xc;
    key_squares += kc * kc;
  }
  const double x_scale = 1 / std::sqrt(x_squares / dim + eps);
  const double key_scale = 1 / std::sqrt(key_squares / dim + eps);
  return static_cast<float>(dot * x_scale * key_scale / std::sqrt(static_cast<double>(dim)));
}

float Gate(float dot) {
  const float magnitude = std::fmax(std::fabs(dot), 1e-6f);
  const float root = DI_FAULT("engram_gate_without_sqrt") ? magnitude : std::sqrt(magnitude);
  // copysign, not sign: dot = +0 gives the gate of +1e-3.
  return 1.0f / (1.0f + std::exp(-std::copysign(root, dot)));
}

}  // namespace

void EngramGatherRef(const Backend&, const EngramGatherParams& params) {
  const int32_t dim = params.table.dim;
  bf16* out = params.out;
  for (int64_t i = 0; i < int64_t{params.num_tokens} * params.columns; ++i) {
    const int64_t row = params.rows[i];
    for (int32_t c = 0; c < dim; ++c) {
      const float code = E4m3ToFloat(params.table.data[row * dim + c]);
      const float scale = E8m0ToFloat(params.table.scale[row * (dim / 32) + c / 32]);
      *out++ = ToBf16(code * scale);
    }
  }
}

void EngramMixRef(const Backend&, const EngramMixParams& params) {
  const int64_t dim = params.dim, hc = params.num_streams;
  for (int64_t t = 0; t < params.num_tokens; ++t) {
    if (params.live != nullptr && params.live[t] == 0) continue;
    const bf16* kv = params.kv + t * (hc + 1) * dim;
    const bf16* value = kv + hc * dim;
    for (int64_t j = 0; j < hc; ++j) {
      bf16* x = params.streams + (t * hc + j) * dim;
      const float gate = Gate(GateDot(x, kv + j * dim, params.q_weight + j * dim,
                                      params.k_weight + j * dim, params.dim, params.eps));
      for (int64_t c = 0; c < dim; ++c) x[c] = ToBf16(ToFloat(x[c]) + gate * ToFloat(value[c]));
    }
  }
}

}  // namespace deepinfer
