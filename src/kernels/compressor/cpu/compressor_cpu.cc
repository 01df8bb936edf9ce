// Plain CPU form of CompressOp: the oracle's operations in its order, one pass a token over a strip
// of channels.
#include <algorithm>
#include <cmath>

#include "kernels/compressor/compressor.h"

namespace deepinfer {
namespace {

constexpr int32_t kStrip = 64;

void CompressStrip(const float* const* rows, int32_t ratio, int32_t dim, int32_t first, int32_t n,
                   bf16* out) {
  float max[kStrip], denominator[kStrip] = {}, sum[kStrip] = {}, weight[kStrip];
  std::copy_n(rows[0] + dim + first, n, max);
  for (int32_t k = 1; k < ratio; ++k) {
    const float* b = rows[k] + dim + first;
    for (int32_t c = 0; c < n; ++c) max[c] = std::max(max[c], b[c]);
  }
  for (int32_t k = 0; k < ratio; ++k) {
    const float* b = rows[k] + dim + first;
    for (int32_t c = 0; c < n; ++c) denominator[c] += std::exp(b[c] - max[c]);
  }
  for (int32_t k = 0; k < ratio; ++k) {
    const float* a = rows[k] + first;
    const float* b = rows[k] + dim + first;
    for (int32_t c = 0; c < n; ++c) weight[c] = std::exp(b[c] - max[c]);
    for (int32_t c = 0; c < n; ++c) sum[c] += a[c] * (weight[c] / denominator[c]);
  }
  for (int32_t c = 0; c < n; ++c) out[c] = ToBf16(sum[c]);
}

}  // namespace

void CompressCpu(const Backend& backend, const CompressParams& params) {
  backend.ParallelFor(params.num_entries, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      for (int32_t first = 0; first < params.dim; first += kStrip) {
        CompressStrip(params.rows + n * params.ratio, params.ratio, params.dim, first,
                      std::min(kStrip, params.dim - first), params.out + n * params.dim + first);
      }
    }
  });
}

}  // namespace deepinfer
