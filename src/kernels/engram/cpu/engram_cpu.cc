// Plain CPU forms of the engram ops: F32 with eight partial sums in a fixed order.
#include <array>
#include <cmath>

#include "kernels/engram/engram.h"

namespace deepinfer {
namespace {

constexpr int32_t kLanes = 8;

// Three sums over the channels of one stream; lane i takes channels i, i + 8, ...
struct MixSums {
  std::array<float, kLanes> dot = {}, x = {}, key = {};
};

float Total(const std::array<float, kLanes>& lanes) {
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

MixSums SumChannels(const bf16* x, const bf16* key, const bf16* qw, const bf16* kw, int32_t dim) {
  MixSums sums;
  for (int32_t first = 0; first < dim; first += kLanes) {
    const int32_t n = dim - first < kLanes ? dim - first : kLanes;
    for (int32_t i = 0; i < n; ++i) {
      const auto lane = static_cast<size_t>(i);
      const float xc = ToFloat(x[first + i]), kc = ToFloat(key[first + i]);
      const float weight = ToFloat(qw[first + i]) * ToFloat(kw[first + i]);
      sums.dot[lane] += xc * weight * kc;
      sums.x[lane] += xc * xc;
      sums.key[lane] += kc * kc;
    }
  }
  return sums;
}

float Gate(const MixSums& sums, int32_t dim, float eps) {
  const auto n = static_cast<float>(dim);
  const float x_scale = 1.0f / std::sqrt(Total(sums.x) / n + eps);
  const float key_scale = 1.0f / std::sqrt(Total(sums.key) / n + eps);
  const float dot = Total(sums.dot) * x_scale * key_scale * (1.0f / std::sqrt(n));
  const float root = std::sqrt(std::fmax(std::fabs(dot), 1e-6f));
  return 1.0f / (1.0f + std::exp(-std::copysign(root, dot)));
}

void MixStream(const bf16* key, const bf16* value, const bf16* qw, const bf16* kw, int32_t dim,
               float eps, bf16* x) {
  const float gate = Gate(SumChannels(x, key, qw, kw, dim), dim, eps);
  for (int32_t c = 0; c < dim; ++c) x[c] = ToBf16(ToFloat(x[c]) + gate * ToFloat(value[c]));
}

void GatherRow(const EngramTable& table, int64_t row, const std::array<float, 256>& e4m3,
               bf16* out) {
  const uint8_t* codes = table.data + row * table.dim;
  const uint8_t* scales = table.scale + row * (table.dim / 32);
  for (int32_t g = 0; g < table.dim / 32; ++g) {
    const float scale = E8m0ToFloat(scales[g]);
    for (int32_t c = g * 32; c < (g + 1) * 32; ++c) out[c] = ToBf16(e4m3[codes[c]] * scale);
  }
}

}  // namespace

void EngramGatherCpu(const Backend& backend, const EngramGatherParams& params) {
  std::array<float, 256> e4m3;
  for (size_t code = 0; code < 256; ++code) e4m3[code] = E4m3ToFloat(static_cast<uint8_t>(code));
  const int64_t rows = int64_t{params.num_tokens} * params.columns;
  backend.threads->ParallelFor(rows, 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      GatherRow(params.table, params.rows[i], e4m3, params.out + i * params.table.dim);
    }
  });
}

void EngramMixCpu(const Backend& backend, const EngramMixParams& params) {
  const int64_t dim = params.dim, hc = params.num_streams;
  backend.threads->ParallelFor(params.num_tokens * hc, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t t = row / hc, j = row % hc;
      if (params.live != nullptr && params.live[t] == 0) continue;
      const bf16* kv = params.kv + t * (hc + 1) * dim;
      MixStream(kv + j * dim, kv + hc * dim, params.q_weight + j * dim, params.k_weight + j * dim,
                params.dim, params.eps, params.streams + row * dim);
    }
  });
}

}  // namespace deepinfer
