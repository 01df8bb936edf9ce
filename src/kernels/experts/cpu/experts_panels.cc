// Experts over weights in panels. All chosen experts run together, phase by phase (gate and up;
// SwiGLU; down), so that threads meet three times a layer whatever the number of experts.

#include <algorithm>
#include <span>

#include "kernels/cpu/scratch_sizes.h"
#include "kernels/experts/experts.h"
#include "kernels/linear/cpu/linear_panels.h"
#include "kernels/quantise/quantise.h"
#include "kernels/swiglu/swiglu.h"

namespace deepinfer {

void ExpertsCpu(const Backend& backend, const ExpertsParams& params);
ScratchBytes ExpertsCpuScratchBytes(VariantId variant, WeightFormat format,
                                    const ExpertsParams& params);

namespace {

// The rows of one expert in the order below.
struct Group {
  int32_t expert;
  int64_t begin, end;
};

// Slots (t * k + i) of experts that are run, sorted by expert, and the groups they form.
struct Grouping {
  template <typename Memory>
  Grouping(Memory& memory, const ExpertsParams& p)
      : begins(memory.template Get<int64_t>(int64_t{p.num_experts} + 1)),
        groups(memory.template Get<Group>(p.num_experts)),
        slots(memory.template Get<int64_t>(int64_t{p.num_tokens} * p.topk)) {}

  int64_t* begins;  // [E + 1]: while they are made
  Group* groups;    // [num_groups <= E]
  int64_t* slots;   // [num_slots <= T * k]
  int64_t num_groups = 0, num_slots = 0;
};

void GroupByExpert(const ExpertsParams& p, Grouping& grouping) {
  int64_t* const begins = grouping.begins;
  std::fill_n(begins, int64_t{p.num_experts} + 1, 0);
  const int64_t num_slots = int64_t{p.num_tokens} * p.topk;
  for (int64_t slot = 0; slot < num_slots; ++slot) {
    if (p.experts[slot] >= 0) ++begins[p.experts[slot] + 1];
  }
  for (int32_t e = 0; e < p.num_experts; ++e) {
    const int64_t count = begins[e + 1];
    begins[e + 1] += begins[e];
    if (count > 0) grouping.groups[grouping.num_groups++] = {e, begins[e], begins[e + 1]};
  }
  grouping.num_slots = begins[p.num_experts];
  for (int64_t slot = 0; slot < num_slots; ++slot) {
    if (p.experts[slot] >= 0) grouping.slots[begins[p.experts[slot]]++] = slot;
  }
}

// out rows of every group = its x rows times the group's matrix.
void AddGroups(const ExpertsParams& p, const Grouping& grouping, Matrix ExpertMatrices::*which,
               const PreparedRows& x, bf16* out, PanelProducts& products) {
  for (const Group& group : std::span(grouping.groups, static_cast<size_t>(grouping.num_groups))) {
    const Matrix& w = p.matrices[group.expert].*which;
    products.Add(x, group.begin, group.end,
                 {.weight = w, .out = out + group.begin * w.rows, .out_stride = w.rows});
  }
}

// Rows in the order of the grouping.
struct SortedRows {
  template <typename Memory>
  SortedRows(Memory& memory, int64_t num_rows, const ExpertsParams& p)
      : x(memory.template Get<bf16>(num_rows * p.dim)),
        gate(memory.template Get<bf16>(num_rows * p.inner)),
        up(memory.template Get<bf16>(num_rows * p.inner)),
        y(memory.template Get<bf16>(num_rows * p.dim)),
        weights(memory.template Get<float>(num_rows)) {}

  bf16* x;          // [rows, D]
  bf16 *gate, *up;  // [rows, I]
  bf16* y;          // [rows, D]
  float* weights;   // [rows]
};

// Most products of one phase: `matrices` a group.
int64_t MostProducts(const PanelKernels& kernels, const ExpertsParams& p, int64_t num_rows,
                     int64_t matrices) {
  return matrices *
         std::max<int64_t>(p.num_experts, PreparedRows::MostStretches(kernels, num_rows));
}

void GateAndUp(const PanelKernels& kernels, const Backend& backend, const ExpertsParams& p,
               const Grouping& grouping, const SortedRows& rows) {
  ScratchFrame frame;
  const PreparedRows x(kernels, backend, rows.x, p.dim, grouping.num_slots, p.dim, frame);
  PanelProducts products(MostProducts(kernels, p, grouping.num_slots, 2), frame);
  AddGroups(p, grouping, &ExpertMatrices::w1, x, rows.gate, products);
  AddGroups(p, grouping, &ExpertMatrices::w3, x, rows.up, products);
  products.Run(backend);
}

void Down(const PanelKernels& kernels, const Backend& backend, const ExpertsParams& p,
          const Grouping& grouping, const SortedRows& rows) {
  ScratchFrame frame;
  const PreparedRows inner(kernels, backend, rows.gate, p.inner, grouping.num_slots, p.inner,
                           frame);
  PanelProducts products(MostProducts(kernels, p, grouping.num_slots, 1), frame);
  AddGroups(p, grouping, &ExpertMatrices::w2, inner, rows.y, products);
  products.Run(backend);
}

void RunExperts(const PanelKernels& kernels, const Backend& backend, const ExpertsParams& p) {
  ScratchFrame frame;
  Grouping grouping(frame, p);
  GroupByExpert(p, grouping);
  const auto num_rows = static_cast<int32_t>(grouping.num_slots);
  const SortedRows rows(frame, num_rows, p);
  backend.ParallelFor(num_rows, 16, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t slot = grouping.slots[row];
      std::copy_n(p.x + slot / p.topk * p.dim, p.dim, rows.x + row * p.dim);
      rows.weights[row] = p.weights[slot];
    }
  });

  GateAndUp(kernels, backend, p, grouping, rows);
  Swiglu(backend, {.num_tokens = num_rows,
                   .inner = p.inner,
                   .limit = p.limit,
                   .gate = rows.gate,
                   .up = rows.up,
                   .weight = rows.weights,
                   .out = rows.gate});
  Quantise(backend, {.num_tokens = num_rows, .dim = p.inner, .x = rows.gate, .out = rows.gate});
  Down(kernels, backend, p, grouping, rows);
  backend.ParallelFor(num_rows, 16, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      std::copy_n(rows.y + row * p.dim, p.dim, p.y + grouping.slots[row] * p.dim);
    }
  });
}

// Of RunExperts where every slot is run.
ScratchBytes RunExpertsScratchBytes(const PanelKernels& kernels, const ExpertsParams& p) {
  const int64_t num_rows = int64_t{p.num_tokens} * p.topk;
  ScratchMeter held, up, down;
  Grouping(held, p);
  SortedRows(held, num_rows, p);
  PreparedRows::Measure(kernels, num_rows, p.dim, up);
  PanelProducts::Measure(MostProducts(kernels, p, num_rows, 2), up);
  PreparedRows::Measure(kernels, num_rows, p.inner, down);
  PanelProducts::Measure(MostProducts(kernels, p, num_rows, 1), down);
  return RunScratchBytes(kernels).Under(held.bytes() + std::max(up.bytes(), down.bytes()));
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

ScratchBytes ExpertsScratchBytes(VariantId variant, WeightFormat format, const ExpertsParams& p) {
  // Some expert may have unusual scales, and then none runs in panels.
  ScratchBytes bytes = ExpertsCpuScratchBytes(variant, format, p);
  bytes.Include(RunExpertsScratchBytes(variant == kAmxVariant ? kAmxPanels
                                       : variant == kAvx512Variant
                                           ? kAvx512Panels
                                           : Avx2PanelsFor(format, int64_t{p.num_tokens} * p.topk),
                                       p));
  return bytes;
}

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
