// Rows are grouped by expert, so that an expert's weights are decoded once a step.

#include <algorithm>
#include <vector>

#include "kernels/experts/experts.h"
#include "kernels/linear/linear.h"
#include "kernels/quantise/quantise.h"
#include "kernels/swiglu/swiglu.h"

namespace deepinfer {
namespace {

// The slots (t * k + i) that chose one expert, ascending.
struct ExpertRows {
  int32_t expert;
  std::vector<int64_t> slots;
};

std::vector<ExpertRows> GroupByExpert(const ExpertsParams& p) {
  std::vector<std::vector<int64_t>> slots(static_cast<size_t>(p.num_experts));
  for (int64_t slot = 0; slot < int64_t{p.num_tokens} * p.topk; ++slot) {
    if (p.experts[slot] >= 0) slots[static_cast<size_t>(p.experts[slot])].push_back(slot);
  }
  std::vector<ExpertRows> groups;
  for (int32_t e = 0; e < p.num_experts; ++e) {
    std::vector<int64_t>& rows = slots[static_cast<size_t>(e)];
    if (!rows.empty()) groups.push_back({e, std::move(rows)});
  }
  return groups;
}

// x [num_rows, weight.cols] -> out [num_rows, weight.rows], both contiguous.
void Product(const Backend& backend, const Matrix& weight, const std::vector<bf16>& x,
             int32_t num_rows, std::vector<bf16>& out) {
  out.resize(static_cast<size_t>(num_rows) * static_cast<size_t>(weight.rows));
  Linear(backend, {.num_tokens = num_rows,
                   .weight = weight,
                   .x = x.data(),
                   .x_stride = weight.cols,
                   .out = out.data(),
                   .out_stride = weight.rows});
}

void RunExpert(const Backend& backend, const ExpertsParams& p, const ExpertRows& rows) {
  const ExpertMatrices& m = p.matrices[rows.expert];
  const auto num_rows = static_cast<int32_t>(rows.slots.size());
  std::vector<bf16> x, inner, up, y;
  std::vector<float> weights;
  x.reserve(rows.slots.size() * static_cast<size_t>(p.dim));
  for (const int64_t slot : rows.slots) {
    const bf16* row = p.x + slot / p.topk * p.dim;
    x.insert(x.end(), row, row + p.dim);
    weights.push_back(p.weights[slot]);
  }

  Product(backend, m.w1, x, num_rows, inner);
  Product(backend, m.w3, x, num_rows, up);
  Swiglu(backend, {.num_tokens = num_rows,
                   .inner = p.inner,
                   .limit = p.limit,
                   .gate = inner.data(),
                   .up = up.data(),
                   .weight = weights.data(),
                   .out = inner.data()});
  Quantise(backend,
           {.num_tokens = num_rows, .dim = p.inner, .x = inner.data(), .out = inner.data()});
  Product(backend, m.w2, inner, num_rows, y);

  const bf16* row = y.data();
  for (const int64_t slot : rows.slots) {
    std::copy_n(row, p.dim, p.y + slot * p.dim);
    row += p.dim;
  }
}

}  // namespace

void ExpertsCpu(const Backend& backend, const ExpertsParams& p) {
  const std::vector<ExpertRows> groups = GroupByExpert(p);
  const int num_threads = backend.threads != nullptr ? backend.threads->num_threads() : 1;
  // Many experts: whole experts to threads. Few (decode): the rows of each product to threads.
  if (std::ssize(groups) < 2 * num_threads) {
    for (const ExpertRows& rows : groups) RunExpert(backend, p, rows);
    return;
  }
  const Backend alone{.variant = backend.variant};
  backend.ParallelFor(std::ssize(groups), 1, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) RunExpert(alone, p, groups[static_cast<size_t>(g)]);
  });
}

void CombineCpu(const Backend& backend, const CombineParams& p) {
  backend.ParallelFor(p.num_tokens, 4, [&](int64_t begin, int64_t end) {
    std::vector<float> sum(static_cast<size_t>(p.dim));
    for (int64_t t = begin; t < end; ++t) {
      std::fill(sum.begin(), sum.end(), 0.0f);
      for (int32_t i = 0; i < p.topk; ++i) {
        const bf16* y = p.y + (t * p.topk + i) * p.dim;
        for (int32_t d = 0; d < p.dim; ++d) sum[d] += ToFloat(y[d]);
      }
      const bf16* shared = p.shared + t * p.dim;
      for (int32_t d = 0; d < p.dim; ++d)
        p.out[t * p.dim + d] = ToBf16(sum[d] + ToFloat(shared[d]));
    }
  });
}

}  // namespace deepinfer
