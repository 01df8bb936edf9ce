#include <algorithm>
#include <cmath>

#include "kernels/cpu/scratch_sizes.h"
#include "kernels/cpu/simd.h"
#include "kernels/hyper_connection/cpu/split_four.h"
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

// F32 sum of x[i]^2 over the streams of a token: four chains of additions, and then the rest.
float SumOfSquares(const bf16* x, int64_t count) {
  __m256 sums[4] = {};
  int64_t i = 0;
  for (; i + 32 <= count; i += 32) {
    for (int k = 0; k < 4; ++k) {
      const __m256 v = simd::Load(x + i + 8 * k);
      sums[k] = _mm256_fmadd_ps(v, v, sums[k]);
    }
  }
  const __m256 sum =
      _mm256_add_ps(_mm256_add_ps(sums[0], sums[1]), _mm256_add_ps(sums[2], sums[3]));
  return simd::ReduceLanes(sum) + simd::SumOfSquares(x + i, count - i);
}

float InverseRms(const HyperMixParams& p, int64_t t) {
  const int64_t count = int64_t{p.num_streams} * p.dim;
  const float mean = SumOfSquares(p.streams + t * count, count) / static_cast<float>(count);
  return 1.0f / std::sqrt(mean + p.norm_eps);
}

// Any number of streams. mix [(2+hc)*hc]: the products with fn, not yet divided by the RMS of the
// streams.
void SplitToken(const HyperMixParams& p, int64_t t, const float* mix, float inverse) {
  const int hc = p.num_streams;
  const auto scaled = [&](int k, int part) { return mix[k] * inverse * p.scale[part] + p.base[k]; };
  for (int i = 0; i < hc; ++i) {
    p.pre_next[t * hc + i] = Sigmoid(scaled(i, 0)) + p.hc_eps;
    p.post[t * hc + i] = 2.0f * Sigmoid(scaled(hc + i, 1));
  }
  float* comb = p.comb + t * hc * hc;
  for (int k = 0; k < hc * hc; ++k) comb[k] = scaled(2 * hc + k, 2);
  Sinkhorn(comb, hc, p.hc_eps, p.sinkhorn_iterations);
}

constexpr int64_t kTokensAbreast = 4;

// Up to kTokensAbreast tokens. mix [count, (2+hc)*hc].
void SplitTokens(const HyperMixParams& p, int64_t first, int64_t count, const float* mix) {
  float inverse[kTokensAbreast];
  for (int64_t t = 0; t < count; ++t) inverse[t] = InverseRms(p, first + t);
  if (p.num_streams != 4) {
    const int64_t num_mixes = (2 + p.num_streams) * p.num_streams;
    for (int64_t t = 0; t < count; ++t) SplitToken(p, first + t, mix + t * num_mixes, inverse[t]);
  } else if (count <= 2) {
    split_four::SplitTokens<1>(p, first, count, mix, inverse);
  } else {
    split_four::SplitTokens<2>(p, first, count, mix, inverse);
  }
}

// One token: X[j, :] = post[j] * y + sum_i comb[i, j] * X[i, :], eight columns at a time.
// kFixed: the number of streams where it is known at compile time, else 0.
template <int kFixed>
void UpdateToken(const HyperUpdateParams& p, int64_t t) {
  const int hc = kFixed != 0 ? kFixed : p.num_streams;
  const float* post = p.post + t * hc;
  const float* comb = p.comb + t * hc * hc;
  bf16* streams = p.streams + t * hc * p.dim;
  simd::ByEights(p.dim, [&](int64_t d, auto count) {
    const __m256 y = simd::Load(p.y + t * p.dim + d, count);
    __m256 old[kFixed != 0 ? kFixed : kMaxHyperStreams];
    for (int i = 0; i < hc; ++i) old[i] = simd::Load(streams + i * int64_t{p.dim} + d, count);
    for (int j = 0; j < hc; ++j) {
      __m256 sum = _mm256_setzero_ps();
      for (int i = 0; i < hc; ++i) {
        sum = _mm256_add_ps(sum, _mm256_mul_ps(_mm256_set1_ps(comb[i * hc + j]), old[i]));
      }
      sum = _mm256_add_ps(_mm256_mul_ps(_mm256_set1_ps(post[j]), y), sum);
      simd::Store(streams + j * int64_t{p.dim} + d, sum, count);
    }
  });
}

void CollapseToken(const HyperCollapseParams& p, int64_t t) {
  const int hc = p.num_streams;
  const float* pre = p.pre + t * hc;
  const bf16* streams = p.streams + t * hc * p.dim;
  simd::ByEights(p.dim, [&](int64_t d, auto count) {
    __m256 sum = _mm256_setzero_ps();
    for (int j = 0; j < hc; ++j) {
      const __m256 x = simd::Load(streams + j * int64_t{p.dim} + d, count);
      sum = _mm256_add_ps(sum, _mm256_mul_ps(_mm256_set1_ps(pre[j]), x));
    }
    simd::Store(p.out + t * p.dim + d, sum, count);
  });
}

int32_t NumMixes(const HyperMixParams& p) { return (2 + p.num_streams) * p.num_streams; }

// The products of `count` tokens from `first` on. The output comes from `memory`.
template <typename Memory>
LinearParams MixProduct(const HyperMixParams& p, int64_t first, int64_t count, Memory& memory) {
  const int32_t cols = p.num_streams * p.dim;
  return {.num_tokens = static_cast<int32_t>(count),
          .weight = {.format = WeightFormat::kF32, .rows = NumMixes(p), .cols = cols, .data = p.fn},
          .x = p.streams + first * cols,
          .x_stride = cols,
          .out_f32 = memory.template Get<float>(count * NumMixes(p)),
          .out_stride = NumMixes(p)};
}

constexpr int64_t kTokensPerPiece = 8;        // fills the tiles of products
constexpr int64_t kMostFnBytes = 512 * 1024;  // stay in the L2 cache from piece to piece

// Many tokens: a thread does everything for its own. Few, or a large fn: threads share its rows.
void Mix(const Backend& backend, const HyperMixParams& p, const F32Tiles& tiles) {
  const auto mix = [&](const Backend& product_backend, int64_t first, int64_t count) {
    ScratchFrame frame;
    const LinearParams product = MixProduct(p, first, count, frame);
    LinearCpu(product_backend, product, tiles);
    const auto split = [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; t += kTokensAbreast) {
        SplitTokens(p, first + t, std::min(kTokensAbreast, end - t),
                    product.out_f32 + t * NumMixes(p));
      }
    };
    product_backend.ParallelFor(count, kTokensAbreast, split);
  };
  const int64_t num_threads = backend.threads == nullptr ? 1 : backend.threads->num_threads();
  const int64_t fn_bytes = int64_t{NumMixes(p)} * p.num_streams * p.dim * int64_t{sizeof(float)};
  if (p.num_tokens < num_threads * kTokensPerPiece || fn_bytes > kMostFnBytes) {
    return mix(backend, 0, p.num_tokens);
  }
  backend.ParallelFor(p.num_tokens, kTokensPerPiece, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; t += kTokensPerPiece) {
      mix({.variant = backend.variant}, t, std::min(kTokensPerPiece, end - t));
    }
  });
}

}  // namespace

void HyperMixCpu(const Backend& backend, const HyperMixParams& p) {
  Mix(backend, p, kAvx2F32Tiles);
}

void HyperMixAvx512(const Backend& backend, const HyperMixParams& p) {
  Mix(backend, p, kAvx512F32Tiles);
}

ScratchBytes HyperMixScratchBytes(const HyperMixParams& p) {
  const auto bytes = [&](int64_t count) {
    ScratchMeter meter;
    return LinearCpuScratchBytes(MixProduct(p, 0, count, meter)).Under(meter.bytes());
  };
  ScratchBytes most = bytes(p.num_tokens);
  const ScratchBytes piece = bytes(std::min<int64_t>(kTokensPerPiece, p.num_tokens));
  most.Include(OnAllThreads(std::max(piece.caller, piece.worker)));
  return most;
}

void HyperCollapseCpu(const Backend& backend, const HyperCollapseParams& p) {
  backend.ParallelFor(p.num_tokens, 4, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) CollapseToken(p, t);
  });
}

void HyperUpdateCpu(const Backend& backend, const HyperUpdateParams& p) {
  const auto update = p.num_streams == 4 ? UpdateToken<4> : UpdateToken<0>;
  backend.ParallelFor(p.num_tokens, 4, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) update(p, t);
  });
}

}  // namespace deepinfer
