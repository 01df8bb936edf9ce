// Rows are grouped by expert, so that an expert's weights are decoded once a step. Experts run one
// after the other; the threads share the rows of each product.

#include <algorithm>

#include "kernels/cpu/scratch_sizes.h"
#include "kernels/linear/linear.h"
#include "kernels/quantise/quantise.h"
#include "kernels/swiglu/swiglu.h"

namespace deepinfer {
namespace {

// Rows of one expert.
struct ExpertRows {
  template <typename Memory>
  ExpertRows(Memory& memory, int64_t num_rows, const ExpertsParams& p)
      : slots(memory.template Get<int64_t>(num_rows)),
        x(memory.template Get<bf16>(num_rows * p.dim)),
        inner(memory.template Get<bf16>(num_rows * p.inner)),
        up(memory.template Get<bf16>(num_rows * p.inner)),
        y(memory.template Get<bf16>(num_rows * p.dim)),
        weights(memory.template Get<float>(num_rows)) {}

  int64_t* slots;    // [rows] (t * k + i) that chose it, ascending
  bf16* x;           // [rows, D]
  bf16 *inner, *up;  // [rows, I]
  bf16* y;           // [rows, D]
  float* weights;    // [rows]
};

// x [num_rows, weight.cols] -> out [num_rows, weight.rows], both contiguous.
void Product(const Backend& backend, const Matrix& weight, const bf16* x, int32_t num_rows,
             bf16* out) {
  Linear(backend, {.num_tokens = num_rows,
                   .weight = weight,
                   .x = x,
                   .x_stride = weight.cols,
                   .out = out,
                   .out_stride = weight.rows});
}

void RunExpert(const Backend& backend, const ExpertsParams& p, int32_t expert, int32_t num_rows) {
  ScratchFrame frame;
  const ExpertRows rows(frame, num_rows, p);
  int32_t row = 0;
  for (int64_t slot = 0; slot < int64_t{p.num_tokens} * p.topk; ++slot) {
    if (p.experts[slot] != expert) continue;
    std::copy_n(p.x + slot / p.topk * p.dim, p.dim, rows.x + int64_t{row} * p.dim);
    rows.weights[row] = p.weights[slot];
    rows.slots[row++] = slot;
  }
  const ExpertMatrices& m = p.matrices[expert];
  Product(backend, m.w1, rows.x, num_rows, rows.inner);
  Product(backend, m.w3, rows.x, num_rows, rows.up);
  Swiglu(backend, {.num_tokens = num_rows,
                   .inner = p.inner,
                   .limit = p.limit,
                   .gate = rows.inner,
                   .up = rows.up,
                   .weight = rows.weights,
                   .out = rows.inner});
  Quantise(backend, {.num_tokens = num_rows, .dim = p.inner, .x = rows.inner, .out = rows.inner});
  Product(backend, m.w2, rows.inner, num_rows, rows.y);
  for (row = 0; row < num_rows; ++row) {
    std::copy_n(rows.y + int64_t{row} * p.dim, p.dim, p.y + rows.slots[row] * p.dim);
  }
}

}  // namespace

void ExpertsCpu(const Backend& backend, const ExpertsParams& p) {
  ScratchFrame frame;
  auto* const counts = frame.Get<int32_t>(p.num_experts);
  std::fill_n(counts, p.num_experts, 0);
  for (int64_t slot = 0; slot < int64_t{p.num_tokens} * p.topk; ++slot) {
    if (p.experts[slot] >= 0) ++counts[p.experts[slot]];
  }
  for (int32_t e = 0; e < p.num_experts; ++e) {
    if (counts[e] > 0) RunExpert(backend, p, e, counts[e]);
  }
}

ScratchBytes ExpertsCpuScratchBytes(VariantId variant, WeightFormat format,
                                    const ExpertsParams& p) {
  ScratchMeter meter;
  meter.Get<int32_t>(p.num_experts);
  ExpertRows(meter, p.num_tokens, p);  // all of them may choose one expert, each once
  ScratchBytes products;
  for (const auto& [rows, cols] : {std::pair{p.inner, p.dim}, {p.dim, p.inner}}) {
    const LinearParams product = {.num_tokens = p.num_tokens,
                                  .weight = {.format = format, .rows = rows, .cols = cols}};
    products.Include(LinearsScratchBytes(variant, {&product, 1}));
  }
  return products.Under(meter.bytes());
}

void CombineCpu(const Backend& backend, const CombineParams& p) {
  backend.ParallelFor(p.num_tokens, 4, [&](int64_t begin, int64_t end) {
    ScratchFrame frame;
    auto* const sum = frame.Get<float>(p.dim);
    for (int64_t t = begin; t < end; ++t) {
      std::fill_n(sum, p.dim, 0.0f);
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

ScratchBytes CombineScratchBytes(const CombineParams& p) {
  ScratchMeter meter;
  meter.Get<float>(p.dim);
  return OnAllThreads(meter.bytes());
}

}  // namespace deepinfer
