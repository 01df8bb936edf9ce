// Plain CPU forms of the engram ops: F32, sums in the order of simd.h.
#include <cmath>

#include "kernels/cpu/simd.h"
#include "kernels/engram/engram.h"
#include "kernels/linear/cpu/decode_rows.h"

namespace deepinfer {
namespace {

struct MixSums {
  float dot = 0, x_squares = 0, key_squares = 0;
};

// The three sums over the channels of one stream. All pointers are [dim].
MixSums SumChannels(const bf16* x, const bf16* key, const bf16* qw, const bf16* kw, int32_t dim) {
  __m256 dot = _mm256_setzero_ps(), x_squares = dot, key_squares = dot;
  int32_t c = 0;
  for (; c + 8 <= dim; c += 8) {
    const __m256 xc = simd::Load(x + c), kc = simd::Load(key + c);
    const __m256 weight = _mm256_mul_ps(simd::Load(qw + c), simd::Load(kw + c));
    dot = _mm256_fmadd_ps(_mm256_mul_ps(xc, weight), kc, dot);
    x_squares = _mm256_fmadd_ps(xc, xc, x_squares);
    key_squares = _mm256_fmadd_ps(kc, kc, key_squares);
  }
  MixSums sums{simd::ReduceLanes(dot), simd::ReduceLanes(x_squares),
               simd::ReduceLanes(key_squares)};
  for (; c < dim; ++c) {
    const float xc = ToFloat(x[c]), kc = ToFloat(key[c]);
    sums.dot += xc * (ToFloat(qw[c]) * ToFloat(kw[c])) * kc;
    sums.x_squares += xc * xc;
    sums.key_squares += kc * kc;
  }
  return sums;
}

float Gate(const MixSums& sums, int32_t dim, float eps) {
  const auto n = static_cast<float>(dim);
  const float x_scale = 1.0f / std::sqrt(sums.x_squares / n + eps);
  const float key_scale = 1.0f / std::sqrt(sums.key_squares / n + eps);
  const float dot = sums.dot * x_scale * key_scale * (1.0f / std::sqrt(n));
  const float root = std::sqrt(std::fmax(std::fabs(dot), 1e-6f));
  return 1.0f / (1.0f + std::exp(-std::copysign(root, dot)));
}

void MixStream(const bf16* key, const bf16* value, const bf16* qw, const bf16* kw, int32_t dim,
               float eps, bf16* x) {
  const float gate = Gate(SumChannels(x, key, qw, kw, dim), dim, eps);
  const auto mixed = [&](__m256 old, __m256 v) {
    return _mm256_add_ps(old, _mm256_mul_ps(_mm256_set1_ps(gate), v));
  };
  simd::Transform(dim, x, mixed, x, value);
}

void GatherRow(const EngramTable& table, int64_t row, bf16* out) {
  const uint8_t* codes = table.data + row * table.dim;
  const uint8_t* scales = table.scale + row * (table.dim / 32);
  for (int32_t g = 0; g < table.dim / 32; ++g) {
    const __m256 scale = _mm256_set1_ps(E8m0ToFloat(scales[g]));
    for (int32_t c = g * 32; c < (g + 1) * 32; c += 8) {
      simd::Store(out + c, _mm256_mul_ps(simd::E4m3Values(codes + c), scale));
    }
  }
}

}  // namespace

void EngramGatherCpu(const Backend& backend, const EngramGatherParams& params) {
  const int64_t rows = int64_t{params.num_tokens} * params.columns;
  backend.ParallelFor(rows, 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      GatherRow(params.table, params.rows[i], params.out + i * params.table.dim);
    }
  });
}

void EngramMixCpu(const Backend& backend, const EngramMixParams& params) {
  const int64_t dim = params.dim, hc = params.num_streams;
  backend.ParallelFor(params.num_tokens * hc, 1, [&](int64_t begin, int64_t end) {
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
