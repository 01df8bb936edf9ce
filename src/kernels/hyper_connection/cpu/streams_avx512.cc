// Updates and collapses of four streams, which are what the model has, 32 columns at a time. The
// operations and their order are those of hyper_connection_cpu.cc.
#include "kernels/cpu/simd_avx512.h"
#include "kernels/hyper_connection/hyper_connection.h"

namespace deepinfer {

void HyperCollapseCpu(const Backend& backend, const HyperCollapseParams& params);
void HyperUpdateCpu(const Backend& backend, const HyperUpdateParams& params);

namespace {

constexpr int kStreams = 4;
constexpr int64_t kTokensPerPiece = 4;

void AddProduct(simd::Floats& sum, float factor, const simd::Floats& x) {
  const __m512 f = _mm512_set1_ps(factor);
  sum.even = _mm512_add_ps(sum.even, _mm512_mul_ps(f, x.even));
  sum.odd = _mm512_add_ps(sum.odd, _mm512_mul_ps(f, x.odd));
}

// X[j, :] = post[j] * y + sum_i comb[i, j] * X[i, :].
void UpdateToken(const HyperUpdateParams& p, int64_t t) {
  const float* const post = p.post + t * kStreams;
  const float* const comb = p.comb + t * kStreams * kStreams;
  bf16* const streams = p.streams + t * kStreams * p.dim;
  for (int64_t d = 0; d < p.dim; d += 32) {
    const int64_t count = p.dim - d;
    const simd::Floats y = simd::Load32(p.y + t * p.dim + d, count);
    simd::Floats old[kStreams];
    for (int i = 0; i < kStreams; ++i) old[i] = simd::Load32(streams + i * p.dim + d, count);
    for (int j = 0; j < kStreams; ++j) {
      simd::Floats sum = {_mm512_setzero_ps(), _mm512_setzero_ps()};
      for (int i = 0; i < kStreams; ++i) AddProduct(sum, comb[i * kStreams + j], old[i]);
      AddProduct(sum, post[j], y);
      simd::Store32(streams + j * p.dim + d, sum, count);
    }
  }
}

void CollapseToken(const HyperCollapseParams& p, int64_t t) {
  const bf16* const streams = p.streams + t * kStreams * p.dim;
  for (int64_t d = 0; d < p.dim; d += 32) {
    simd::Floats sum = {_mm512_setzero_ps(), _mm512_setzero_ps()};
    for (int j = 0; j < kStreams; ++j) {
      AddProduct(sum, p.pre[t * kStreams + j], simd::Load32(streams + j * p.dim + d, p.dim - d));
    }
    simd::Store32(p.out + t * p.dim + d, sum, p.dim - d);
  }
}

}  // namespace

void HyperCollapseAvx512(const Backend& backend, const HyperCollapseParams& p) {
  if (p.num_streams != kStreams) return HyperCollapseCpu(backend, p);
  backend.ParallelFor(p.num_tokens, kTokensPerPiece, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) CollapseToken(p, t);
  });
}

void HyperUpdateAvx512(const Backend& backend, const HyperUpdateParams& p) {
  if (p.num_streams != kStreams) return HyperUpdateCpu(backend, p);
  backend.ParallelFor(p.num_tokens, kTokensPerPiece, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) UpdateToken(p, t);
  });
}

}  // namespace deepinfer
