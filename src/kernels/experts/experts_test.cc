#include "kernels/experts/experts.h"

#include <gtest/gtest.h>

#include "kernels/testing/batch.h"
#include "kernels/testing/data.h"
#include "kernels/testing/packed.h"

namespace deepinfer::testing {
namespace {

struct Layer {
  int32_t dim, inner, topk;
  std::vector<OwnedMatrix> storage;
  std::vector<ExpertMatrices> experts;
};

Layer MakeLayer(DataKind kind, int32_t num_experts, int32_t dim, int32_t inner, int32_t topk) {
  Random random(21);
  Layer layer{.dim = dim, .inner = inner, .topk = topk};
  for (int32_t e = 0; e < num_experts; ++e) {
    for (const bool down : {false, false, true}) {
      layer.storage.push_back(
          MakeMatrix(WeightFormat::kFp4, kind, down ? dim : inner, down ? inner : dim, random));
    }
    const auto view = [&](size_t from_end) { return (layer.storage.end() - from_end)->view; };
    layer.experts.push_back({.w1 = view(3), .w3 = view(2), .w2 = view(1)});
  }
  return layer;
}

struct Rows {
  std::vector<bf16> x;
  std::vector<int32_t> experts;
  std::vector<float> weights;
};

// Distinct experts a row, ascending; expert 0 is never chosen.
Rows MakeRows(DataKind kind, const Layer& layer, int32_t num_rows) {
  Random random(22);
  Rows rows{MakeFp8Grid(kind, num_rows, layer.dim, random), {}, {}};
  const auto num_experts = static_cast<int32_t>(layer.experts.size());
  for (int32_t t = 0; t < num_rows; ++t) {
    int32_t left = layer.topk;
    for (int32_t e = 1; e < num_experts && left > 0; ++e) {
      if (random.Below(num_experts - e) >= left) continue;
      rows.experts.push_back(e);
      rows.weights.push_back(static_cast<float>(0.2 + random.Uniform()));
      --left;
    }
  }
  return rows;
}

void RunRows(const Backend& backend, const Layer& layer, const Rows& rows, int32_t begin,
             int32_t count, bf16* y) {
  Experts(backend, {.num_tokens = count,
                    .dim = layer.dim,
                    .inner = layer.inner,
                    .num_experts = static_cast<int32_t>(layer.experts.size()),
                    .topk = layer.topk,
                    .limit = 10,
                    .x = rows.x.data() + int64_t{begin} * layer.dim,
                    .experts = rows.experts.data() + begin * layer.topk,
                    .weights = rows.weights.data() + begin * layer.topk,
                    .matrices = layer.experts.data(),
                    .y = y});
}

std::vector<bf16> Output(const Backend& backend, const Layer& layer, const Rows& rows) {
  const auto num_rows = static_cast<int32_t>(rows.experts.size()) / layer.topk;
  Guarded<bf16> y(int64_t{num_rows} * layer.topk * layer.dim);
  RunRows(backend, layer, rows, 0, num_rows, y.data());
  EXPECT_TRUE(y.GuardsIntact());
  return y.ToVector();
}

// Both forms pass the FP8 grid between the products, so a last-bit difference may move a code;
// nearly all outputs must agree bit for bit all the same.
TEST(Experts, MatchTheOracle) {
  for (const DataKind kind : kAllDataKinds) {
    const Layer layer = MakeLayer(kind, 8, 128, 64, 2);
    const Rows rows = MakeRows(kind, layer, 33);
    const std::vector<bf16> cpu = Output(kCpu, layer, rows), ref = Output(kRef, layer, rows);
    EXPECT_GE(EqualShare(cpu, ref), 0.995) << static_cast<int>(kind);
    EXPECT_LT(Compare(cpu, ref).rel_l2, 2e-3) << static_cast<int>(kind);
  }
}

TEST(Experts, MatchTheOracleAtTheRealShape) {
  const Layer layer = MakeLayer(DataKind::kNormal, 2, 5120, 2304, 1);
  const Rows rows = MakeRows(DataKind::kNormal, layer, 2);
  EXPECT_LT(Compare(Output(kCpu, layer, rows), Output(kRef, layer, rows)).rel_l2, 2e-3);
}

// Enough experts to spread whole experts over threads, and too few for it.
TEST(Experts, RowsDoNotDependOnTheBatchOrTheGrouping) {
  for (const int32_t num_experts : {4, 12}) {
    const Layer layer = MakeLayer(DataKind::kNormal, num_experts, 64, 32, 3);
    const Rows rows = MakeRows(DataKind::kNormal, layer, kMostRows);
    ExpectBatchInvariant<bf16>(kMostRows, 3 * 64,
                               [&](const Backend& backend, int32_t begin, int32_t count, bf16* y) {
                                 RunRows(backend, layer, rows, begin, count, y);
                               });
  }
}

// The same with weights in panels, in every CPU variant of this machine.
class ExpertsInPanels : public CpuVariants {
 protected:
  void Pack(Layer& layer) {
    panels_ = std::vector<PackedMatrix>(layer.storage.size());
    for (size_t i = 0; i < layer.storage.size(); ++i) {
      panels_[i].plain.view = layer.storage[i].view;
      panels_[i].Pack();
    }
    for (size_t e = 0; e < layer.experts.size(); ++e) {
      layer.experts[e] = {panels_[3 * e].view, panels_[3 * e + 1].view, panels_[3 * e + 2].view};
    }
  }

 private:
  std::vector<PackedMatrix> panels_;
};
DI_INSTANTIATE_CPU_VARIANTS(ExpertsInPanels);

TEST_P(ExpertsInPanels, MatchTheOracle) {
  for (const DataKind kind : kAllDataKinds) {
    Layer layer = MakeLayer(kind, 8, 128, 64, 2);
    Pack(layer);
    for (const int32_t num_rows : {1, 7, 8, 9, 64, 257}) {
      const Rows rows = MakeRows(kind, layer, num_rows);
      const std::vector<bf16> got = Output(backend(), layer, rows), ref = Output(kRef, layer, rows);
      if (num_rows >= 7) {
        EXPECT_GE(EqualShare(got, ref), 0.99) << static_cast<int>(kind);
      }
      EXPECT_LT(Compare(got, ref).rel_l2, 2e-3) << static_cast<int>(kind);
    }
  }
}

TEST_P(ExpertsInPanels, RowsDoNotDependOnTheBatchOrTheGrouping) {
  Layer layer = MakeLayer(DataKind::kNormal, 12, 64, 32, 3);
  Pack(layer);
  const Rows rows = MakeRows(DataKind::kNormal, layer, kMostRows);
  ExpectBatchInvariant<bf16>(
      kMostRows, 3 * 64,
      [&](const Backend& b, int32_t begin, int32_t count, bf16* y) {
        RunRows(b, layer, rows, begin, count, y);
      },
      GetParam());
}

// Both K of the model's experts; the other side of the matrices is cut, on which no sum depends.
TEST_P(ExpertsInPanels, PassTheProtocolAtTheModelsWidths) {
  struct Size {
    int32_t dim, inner;
  };
  for (const Size size : {Size{5120, 96}, Size{96, 2304}}) {
    for (const DataKind kind : kAllDataKinds) {
      SCOPED_TRACE(size.dim * 10 + static_cast<int>(kind));
      Layer layer = MakeLayer(kind, 6, size.dim, size.inner, 2);
      Pack(layer);
      const Rows rows = MakeRows(kind, layer, kMostRows);
      const std::vector<bf16> got = ExpectBatchInvariant<bf16>(
          kMostRows, 2 * size.dim,
          [&](const Backend& b, int32_t begin, int32_t count, bf16* y) {
            RunRows(b, layer, rows, begin, count, y);
          },
          GetParam());
      Guarded<bf16> ref(9 * 2 * size.dim);
      RunRows(kRef, layer, rows, 0, 9, ref.data());
      EXPECT_LT(Compare(got.data(), ref.data(), ref.size()).rel_l2, 2e-3);
    }
  }
}

TEST_P(ExpertsInPanels, OneWithoutPanelsTakesAllToThePlainForm) {
  Layer layer = MakeLayer(DataKind::kNormal, 4, 64, 32, 2);
  Pack(layer);
  const Rows rows = MakeRows(DataKind::kNormal, layer, 5);
  layer.experts[1].w2.panels = nullptr;
  EXPECT_LT(Compare(Output(backend(), layer, rows), Output(kRef, layer, rows)).rel_l2, 2e-3);
}

TEST(Experts, OnlyChosenExpertsAreRead) {
  Layer layer = MakeLayer(DataKind::kNormal, 4, 64, 32, 2);
  const Rows rows = MakeRows(DataKind::kNormal, layer, 5);
  const std::vector<bf16> before = Output(kCpu, layer, rows);
  layer.experts[0] = {};  // as if it were not in memory
  EXPECT_TRUE(Output(kCpu, layer, rows) == before);
  EXPECT_LT(Compare(Output(kRef, layer, rows), before).rel_l2, 2e-3);
}

// Two rounds over halves of the experts, each with the other half taken away, write what one round
// over all of them does. A round without any expert writes nothing.
void ExpectSubsetsMakeTheWhole(const Backend& backend, const Layer& layer) {
  const Rows rows = MakeRows(DataKind::kNormal, layer, 9);
  const std::vector<bf16> whole = Output(backend, layer, rows);
  const auto half = std::ssize(layer.experts) / 2;
  Guarded<bf16> y(std::ssize(whole));
  for (const int part : {0, 1, 2}) {
    Layer present = layer;
    Rows chosen = rows;
    for (int32_t e = 0; e < std::ssize(layer.experts); ++e) {
      if (e / half == part) continue;
      present.experts[static_cast<size_t>(e)] = {};
      std::replace(chosen.experts.begin(), chosen.experts.end(), e, -1);
    }
    RunRows(backend, present, chosen, 0, 9, y.data());
  }
  EXPECT_TRUE(y.GuardsIntact());
  EXPECT_TRUE(y.ToVector() == whole);
}

TEST(Experts, SubsetsMakeTheWhole) {
  const Layer layer = MakeLayer(DataKind::kNormal, 8, 64, 32, 3);
  ExpectSubsetsMakeTheWhole(kRef, layer);
  ExpectSubsetsMakeTheWhole(kCpu, layer);
}

TEST_P(ExpertsInPanels, SubsetsMakeTheWhole) {
  Layer layer = MakeLayer(DataKind::kNormal, 8, 64, 32, 3);
  Pack(layer);
  ExpectSubsetsMakeTheWhole(backend(), layer);
}

TEST(Experts, SwappedGateAndUpAreSeen) {
  Layer layer = MakeLayer(DataKind::kNormal, 4, 64, 32, 2);
  const Rows rows = MakeRows(DataKind::kNormal, layer, 5);
  const std::vector<bf16> right = Output(kRef, layer, rows);
  for (ExpertMatrices& m : layer.experts) std::swap(m.w1, m.w3);
  EXPECT_GT(Compare(Output(kCpu, layer, rows), right).rel_l2, 2e-3);
}

TEST(Combine, AddsInOrderAndMayWriteOverShared) {
  const int32_t dim = 72, topk = 6;
  Random random(23);
  const std::vector<bf16> y = MakeBf16(DataKind::kHotOutlier, kMostRows * topk, dim, random);
  const std::vector<bf16> shared = MakeBf16(DataKind::kNormal, kMostRows, dim, random);
  const auto run = [&](const Backend& backend, int32_t begin, int32_t count, bf16* out) {
    std::copy_n(shared.data() + begin * dim, count * dim, out);
    Combine(backend, {.num_tokens = count,
                      .dim = dim,
                      .topk = topk,
                      .y = y.data() + int64_t{begin} * topk * dim,
                      .shared = out,
                      .out = out});
  };
  const std::vector<bf16> cpu = ExpectBatchInvariant<bf16>(kMostRows, dim, run);
  std::vector<bf16> ref(cpu.size());
  run(kRef, 0, kMostRows, ref.data());
  EXPECT_TRUE(cpu == ref);

  float sum = 0;  // element (1, 5) by hand
  for (int i = 0; i < topk; ++i) sum += ToFloat(y[(topk + i) * dim + 5]);
  EXPECT_EQ(ref[dim + 5], ToBf16(sum + ToFloat(shared[dim + 5])));
}

}  // namespace
}  // namespace deepinfer::testing
