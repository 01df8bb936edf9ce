#include <algorithm>
#include <cmath>

#include "kernels/cpu/scratch_sizes.h"
#include "kernels/cpu/simd.h"
#include "kernels/hyper_connection/max_streams.h"
#include "kernels/linear/cpu/linear_cpu.h"

namespace deepinfer {
namespace {

float Sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

// Divides `count` elements, `step` apart, by their sum + eps.
void Normalise(float* c, int count, int step, float eps) {
  float sum = 0;
  for (int i = 0; i < count; ++i) sum += c[i * step];
  for (int i = 0; i < count; ++i) c[i * step] /= sum + eps;
}

void NormaliseRows(float* c, int hc, float eps) {
  for (int i = 0; i < hc; ++i) Normalise(c + i * hc, hc, 1, eps);
}

void NormaliseColumns(float* c, int hc, float eps) {
  for (int j = 0; j < hc; ++j) Normalise(c + j, hc, hc, eps);
}

void Sinkhorn(float* c, int hc, float eps, int iterations) {
  for (int i = 0; i < hc; ++i) {
    float* row = c + i * hc;
    const float largest = *std::max_element(row, row + hc);
    for (int j = 0; j < hc; ++j) row[j] = std::exp(row[j] - largest);
  }
  NormaliseRows(c, hc, 0);
  for (int k = 0; k < hc * hc; ++k) c[k] += eps;
  NormaliseColumns(c, hc, eps);
  for (int n = 1; n < iterations; ++n) {
    NormaliseRows(c, hc, eps);
    NormaliseColumns(c, hc, eps);
  }
}

// mix [(2+hc)*hc]: the products with fn, not yet divided by the RMS of the streams.
void SplitToken(const HyperMixParams& p, int64_t t, const float* mix) {
  const int hc = p.num_streams;
  const int64_t count = int64_t{hc} * p.dim;
  const float mean = simd::SumOfSquares(p.streams + t * count, count) / static_cast<float>(count);
  const float inverse = 1.0f / std::sqrt(mean + p.norm_eps);
  const auto scaled = [&](int k, int part) { return mix[k] * inverse * p.scale[part] + p.base[k]; };
  for (int i = 0; i < hc; ++i) {
    p.pre_next[t * hc + i] = Sigmoid(scaled(i, 0)) + p.hc_eps;
    p.post[t * hc + i] = 2.0f * Sigmoid(scaled(hc + i, 1));
  }
  float* comb = p.comb + t * hc * hc;
  for (int k = 0; k < hc * hc; ++k) comb[k] = scaled(2 * hc + k, 2);
  Sinkhorn(comb, hc, p.hc_eps, p.sinkhorn_iterations);
}

// One token: X[j, :] = post[j] * y + sum_i comb[i, j] * X[i, :], a few columns at a time.
void UpdateToken(const HyperUpdateParams& p, int64_t t) {
  const int hc = p.num_streams;
  const float* comb = p.comb + t * hc * hc;
  bf16* streams = p.streams + t * hc * p.dim;
  constexpr int kColumns = 64;
  float old[kMaxHyperStreams][kColumns];
  for (int begin = 0; begin < p.dim; begin += kColumns) {
    const int count = std::min(kColumns, p.dim - begin);
    const bf16* y = p.y + t * p.dim + begin;
    for (int i = 0; i < hc; ++i) {
      const bf16* x = streams + int64_t{i} * p.dim + begin;
      for (int d = 0; d < count; ++d) old[i][d] = ToFloat(x[d]);
    }
    for (int j = 0; j < hc; ++j) {
      bf16* x = streams + int64_t{j} * p.dim + begin;
      const float post = p.post[t * hc + j];
      float sum[kColumns] = {};
      for (int i = 0; i < hc; ++i) {
        const float factor = comb[i * hc + j];
        for (int d = 0; d < count; ++d) sum[d] += factor * old[i][d];
      }
      for (int d = 0; d < count; ++d) x[d] = ToBf16(post * ToFloat(y[d]) + sum[d]);
    }
  }
}

void CollapseToken(const HyperCollapseParams& p, int64_t t) {
  const int hc = p.num_streams;
  const float* pre = p.pre + t * hc;
  const bf16* streams = p.streams + t * hc * p.dim;
  constexpr int32_t kColumns = 64;
  for (int32_t begin = 0; begin < p.dim; begin += kColumns) {
    const int32_t count = std::min(kColumns, p.dim - begin);
    float sum[kColumns] = {};
    for (int j = 0; j < hc; ++j) {
      const bf16* x = streams + int64_t{j} * p.dim + begin;
      for (int32_t d = 0; d < count; ++d) sum[d] += pre[j] * ToFloat(x[d]);
    }
    bf16* out = p.out + t * p.dim + begin;
    for (int32_t d = 0; d < count; ++d) out[d] = ToBf16(sum[d]);
  }
}

int32_t NumMixes(const HyperMixParams& p) { return (2 + p.num_streams) * p.num_streams; }

// Its output comes from `memory`.
template <typename Memory>
LinearParams MixProduct(const HyperMixParams& p, Memory& memory) {
  const int32_t count = p.num_streams * p.dim;
  return {
      .num_tokens = p.num_tokens,
      .weight = {.format = WeightFormat::kF32, .rows = NumMixes(p), .cols = count, .data = p.fn},
      .x = p.streams,
      .x_stride = count,
      .out_f32 = memory.template Get<float>(int64_t{p.num_tokens} * NumMixes(p)),
      .out_stride = NumMixes(p)};
}

}  // namespace

void HyperMixCpu(const Backend& backend, const HyperMixParams& p) {
  ScratchFrame frame;
  const LinearParams product = MixProduct(p, frame);
  LinearCpu(backend, product);
  backend.ParallelFor(p.num_tokens, 4, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) SplitToken(p, t, product.out_f32 + t * NumMixes(p));
  });
}

ScratchBytes HyperMixScratchBytes(const HyperMixParams& p) {
  ScratchMeter meter;
  const LinearParams product = MixProduct(p, meter);
  return LinearCpuScratchBytes(product).Under(meter.bytes());
}

void HyperCollapseCpu(const Backend& backend, const HyperCollapseParams& p) {
  backend.ParallelFor(p.num_tokens, 4, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) CollapseToken(p, t);
  });
}

void HyperUpdateCpu(const Backend& backend, const HyperUpdateParams& p) {
  backend.ParallelFor(p.num_tokens, 4, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) UpdateToken(p, t);
  });
}

}  // namespace deepinfer
