// Oracle of CompressOp: channel by channel, every F32 operation of the official arithmetic rounded.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/compressor/compressor.h"
#include "kernels/fault.h"

namespace deepinfer {
namespace {

// sum_k softmax(b)_k * a_k over one channel of a group. `a` and `b` are [ratio].
float WeightedSum(const std::vector<float>& a, const std::vector<float>& b) {
  const float max = *std::max_element(b.begin(), b.end());
  std::vector<float> weights;
  float denominator = 0;
  for (const float logit : b) {
    weights.push_back(std::exp(logit - max));
    denominator += weights.back();
  }
  float sum = 0;
  for (size_t k = 0; k < a.size(); ++k) sum += a[k] * (weights[k] / denominator);
  return sum;
}

}  // namespace

void CompressRef(const Backend&, const CompressParams& params) {
  const auto ratio = static_cast<size_t>(params.ratio);
  std::vector<float> a(ratio), b(ratio);
  for (int32_t n = 0; n < params.num_entries; ++n) {
    const float* const* rows = params.rows + int64_t{n} * params.ratio;
    for (int32_t c = 0; c < params.dim; ++c) {
      for (size_t k = 0; k < ratio; ++k) {
        a[k] = rows[k][c];
        b[k] = DI_FAULT("compressor_without_gate") ? 0.0f : rows[k][params.dim + c];
      }
      params.out[int64_t{n} * params.dim + c] = ToBf16(WeightedSum(a, b));
    }
  }
}

}  // namespace deepinfer
