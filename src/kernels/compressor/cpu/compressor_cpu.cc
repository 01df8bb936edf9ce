// Plain CPU form of CompressOp: the oracle's operations in its order, eight channels at a time.
#include "kernels/compressor/compressor.h"
#include "kernels/cpu/simd.h"

namespace deepinfer {
namespace {

// `count` channels from `first` on.
template <typename Count>
void CompressChannels(const float* const* rows, const CompressParams& params, int64_t first,
                      Count count, bf16* out) {
  const auto logits = [&](int32_t k) { return simd::Load(rows[k] + params.dim + first, count); };
  __m256 largest = logits(0);
  for (int32_t k = 1; k < params.ratio; ++k) largest = _mm256_max_ps(logits(k), largest);
  const auto weights = [&](int32_t k) { return simd::Exp(_mm256_sub_ps(logits(k), largest)); };
  __m256 denominator = _mm256_setzero_ps();
  for (int32_t k = 0; k < params.ratio; ++k) denominator = _mm256_add_ps(denominator, weights(k));
  __m256 sum = _mm256_setzero_ps();
  for (int32_t k = 0; k < params.ratio; ++k) {
    const __m256 share = _mm256_div_ps(weights(k), denominator);
    sum = _mm256_add_ps(sum, _mm256_mul_ps(simd::Load(rows[k] + first, count), share));
  }
  simd::Store(out + first, sum, count);
}

}  // namespace

void CompressCpu(const Backend& backend, const CompressParams& params) {
  backend.ParallelFor(params.num_entries, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      simd::ByEights(params.dim, [&](int64_t first, auto count) {
        CompressChannels(params.rows + n * params.ratio, params, first, count,
                         params.out + n * params.dim);
      });
    }
  });
}

}  // namespace deepinfer
