// Experts over weights in panels. All chosen experts run together, phase by phase (gate and up;
// SwiGLU; down), so that threads meet three times a layer whatever the number of experts.

#include <algorithm>
#include <vector>

#include "kernels/experts/experts.h"
#include "kernels/linear/cpu/linear_panels.h"
#include "kernels/quantise/quantise.h"
#include "kernels/swiglu/swiglu.h"

namespace deepinfer {

void ExpertsCpu(const Backend& backend, const ExpertsParams& params);

namespace {

// The rows of one expert in the order below.
struct Group {
  int32_t expert;
  int64_t begin, end;
};

// Slots (t * k + i) of experts that are run, sorted by expert, and the groups they form.
struct Grouping {
  std::vector<int64_t> slots;
  std::vector<Group> groups;
};

Grouping GroupByExpert(const ExpertsParams& p) {
  std::vector<int64_t> begins(static_cast<size_t>(p.num_experts) + 1);
  const int64_t num_slots = int64_t{p.num_tokens} * p.topk;
  for (int64_t slot = 0; slot < num_slots; ++slot) {
    if (p.experts[slot] >= 0) ++begins[static_cast<size_t>(p.experts[slot]) + 1];
  }
  Grouping grouping;
  for (int32_t e = 0; e < p.num_experts; ++e) {
    const auto at = static_cast<size_t>(e);
    const int64_t count = begins[at + 1];
    begins[at + 1] += begins[at];
    if (count > 0) grouping.groups.push_back({e, begins[at], begins[at + 1]});
  }
  grouping.slots.resize(static_cast<size_t>(begins.back()));
  for (int64_t slot = 0; slot < num_slots; ++slot) {
    if (p.experts[slot] < 0) continue;
    int64_t& next = begins[static_cast<size_t>(p.experts[slot])];
    grouping.slots[static_cast<size_t>(next++)] = slot;
  }
  return grouping;
}

// out rows of every group = its x rows times the group's matrix.
void AddGroups(const ExpertsParams& p, const Grouping& grouping, Matrix ExpertMatrices::*which,
               const PreparedRows& x, bf16* out, std::vector<PanelProduct>& products) {
  for (const Group& group : grouping.groups) {
    const Matrix& w = p.matrices[group.expert].*which;
    AddProducts(x, group.begin, group.end,
                {.weight = w, .out = out + group.begin * w.rows, .out_stride = w.rows}, products);
  }
}

void RunExperts(const PanelKernels& kernels, const Backend& backend, const ExpertsParams& p) {
  static thread_local AlignedScratch x_rows, gate_rows, up_rows, y_rows;
  static thread_local PreparedRows::Scratch converted;
  static thread_local std::vector<PanelProduct> products;
  const Grouping grouping = GroupByExpert(p);
  const auto num_rows = static_cast<int32_t>(grouping.slots.size());
  bf16* const x = x_rows.Get<bf16>(int64_t{num_rows} * p.dim);
  std::vector<float> weights(static_cast<size_t>(num_rows));
  backend.ParallelFor(num_rows, 16, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t slot = grouping.slots[static_cast<size_t>(row)];
      std::copy_n(p.x + slot / p.topk * p.dim, p.dim, x + row * p.dim);
      weights[static_cast<size_t>(row)] = p.weights[slot];
    }
  });

  bf16* const gate = gate_rows.Get<bf16>(int64_t{num_rows} * p.inner);
  bf16* const up = up_rows.Get<bf16>(int64_t{num_rows} * p.inner);
  const PreparedRows x_prepared(kernels, backend, x, p.dim, num_rows, p.dim, converted);
  products.clear();
  AddGroups(p, grouping, &ExpertMatrices::w1, x_prepared, gate, products);
  AddGroups(p, grouping, &ExpertMatrices::w3, x_prepared, up, products);
  RunProducts(backend, products);
  Swiglu(backend, {.num_tokens = num_rows,
                   .inner = p.inner,
                   .limit = p.limit,
                   .gate = gate,
                   .up = up,
                   .weight = weights.data(),
                   .out = gate});
  Quantise(backend, {.num_tokens = num_rows, .dim = p.inner, .x = gate, .out = gate});

  bf16* const y = y_rows.Get<bf16>(int64_t{num_rows} * p.dim);
  const PreparedRows inner(kernels, backend, gate, p.inner, num_rows, p.inner, converted);
  products.clear();
  AddGroups(p, grouping, &ExpertMatrices::w2, inner, y, products);
  RunProducts(backend, products);
  backend.ParallelFor(num_rows, 16, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      std::copy_n(y + row * p.dim, p.dim, p.y + grouping.slots[static_cast<size_t>(row)] * p.dim);
    }
  });
}

bool AnyIsRun(const ExpertsParams& p) {
  return std::any_of(p.experts, p.experts + int64_t{p.num_tokens} * p.topk,
                     [](int32_t e) { return e >= 0; });
}

// Of the experts that are run, all of one format. Requires: one is.
WeightFormat FormatOf(const ExpertsParams& p) {
  const int32_t* const end = p.experts + int64_t{p.num_tokens} * p.topk;
  return p.matrices[*std::find_if(p.experts, end, [](int32_t e) { return e >= 0; })].w1.format;
}

bool AllHavePanels(const ExpertsParams& p) {
  return std::all_of(p.experts, p.experts + int64_t{p.num_tokens} * p.topk, [&](int32_t e) {
    if (e < 0) return true;
    const ExpertMatrices& m = p.matrices[e];
    return HasPanels(m.w1) && HasPanels(m.w3) && HasPanels(m.w2);
  });
}

}  // namespace

void ExpertsAvx2(const Backend& backend, const ExpertsParams& p) {
  if (!AllHavePanels(p)) return ExpertsCpu(backend, p);
  if (!AnyIsRun(p)) return;
  RunExperts(Avx2PanelsFor(FormatOf(p), int64_t{p.num_tokens} * p.topk), backend, p);
}

void ExpertsAvx512(const Backend& backend, const ExpertsParams& p) {
  if (!AllHavePanels(p)) return ExpertsCpu(backend, p);
  if (AnyIsRun(p)) RunExperts(kAvx512Panels, backend, p);
}

void ExpertsAmx(const Backend& backend, const ExpertsParams& p) {
  if (!AllHavePanels(p)) return ExpertsCpu(backend, p);
  if (AnyIsRun(p)) RunExperts(kAmxPanels, backend, p);
}

}  // namespace deepinfer
