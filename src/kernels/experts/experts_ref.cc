#include <vector>

#include "kernels/experts/experts.h"
#include "kernels/fault.h"
#include "kernels/linear/linear.h"
#include "kernels/quantise/quantise.h"
#include "kernels/swiglu/swiglu.h"

namespace deepinfer {
namespace {

constexpr Backend kRef{.variant = kRefVariant};

std::vector<bf16> Product(const Matrix& weight, const bf16* x) {
  std::vector<bf16> out(static_cast<size_t>(weight.rows));
  Linear(kRef, {.num_tokens = 1,
                .weight = weight,
                .x = x,
                .x_stride = weight.cols,
                .out = out.data(),
                .out_stride = weight.rows});
  return out;
}

std::vector<bf16> RunExpert(const ExpertMatrices& m, const bf16* x, float limit, float weight) {
  const bool weight_last = DI_FAULT("routing_weight_after_w2");
  std::vector<bf16> inner = Product(m.w1, x);
  const std::vector<bf16> up = Product(m.w3, x);
  Swiglu(kRef, {.num_tokens = 1,
                .inner = m.w1.rows,
                .limit = limit,
                .gate = inner.data(),
                .up = up.data(),
                .weight = weight_last ? nullptr : &weight,
                .out = inner.data()});
  Quantise(kRef, {.num_tokens = 1, .dim = m.w1.rows, .x = inner.data(), .out = inner.data()});
  std::vector<bf16> y = Product(m.w2, inner.data());
  if (weight_last) {
    for (bf16& value : y) value = ToBf16(weight * ToFloat(value));
  }
  return y;
}

}  // namespace

void ExpertsRef(const Backend&, const ExpertsParams& p) {
  for (int64_t t = 0; t < p.num_tokens; ++t) {
    for (int64_t i = t * p.topk; i < (t + 1) * p.topk; ++i) {
      if (p.experts[i] < 0) continue;
      const std::vector<bf16> y =
          RunExpert(p.matrices[p.experts[i]], p.x + t * p.dim, p.limit, p.weights[i]);
      for (int64_t d = 0; d < p.dim; ++d) p.y[i * p.dim + d] = y[d];
    }
  }
}

void CombineRef(const Backend&, const CombineParams& p) {
  for (int64_t t = 0; t < p.num_tokens; ++t) {
    for (int64_t d = 0; d < p.dim; ++d) {
      float sum = 0;
      for (int64_t i = 0; i < p.topk; ++i) sum += ToFloat(p.y[(t * p.topk + i) * p.dim + d]);
      p.out[t * p.dim + d] = ToBf16(sum + ToFloat(p.shared[t * p.dim + d]));
    }
  }
}

}  // namespace deepinfer
