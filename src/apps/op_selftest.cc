#include "apps/op_selftest.h"

#include <functional>

#include "kernels/compressor/compressor.h"
#include "kernels/cpu/features.h"
#include "kernels/embedding/embedding.h"
#include "kernels/engram/engram.h"
#include "kernels/experts/experts.h"
#include "kernels/hyper_connection/hyper_connection.h"
#include "kernels/kv_records/kv_records.h"
#include "kernels/linear/linear.h"
#include "kernels/quantise/quantise.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rope/rope.h"
#include "kernels/router/router.h"
#include "kernels/swiglu/swiglu.h"
#include "kernels/testing/attention_case.h"
#include "kernels/testing/compare.h"
#include "kernels/testing/data.h"
#include "kernels/testing/index_case.h"

namespace deepinfer {
namespace {

using testing::DataKind;
using testing::MakeBf16;
using testing::MakeFloats;
using testing::MakeMatrix;
using testing::Random;

constexpr int32_t kRows = 37, kDim = 256, kStreams = 4;
constexpr double kExact = 0, kRounded = 3e-3;  // same bits; BF16 results of F32 sums
constexpr double kF32 = 1e-4;

// Everything an op wrote, as numbers.
using Values = std::vector<double>;
template <typename T>
void Append(const std::vector<T>& part, Values& values) {
  for (const T x : part) {
    if constexpr (std::is_integral_v<T>) {
      values.push_back(static_cast<double>(x));
    } else {
      values.push_back(testing::AsDouble(x));
    }
  }
}
template <typename... Parts>
Values Collect(const Parts&... parts) {
  Values values;
  (Append(parts, values), ...);
  return values;
}

template <typename T>
std::vector<T> Room(int64_t count) {
  return std::vector<T>(static_cast<size_t>(count));
}
std::vector<bf16> Normal(int64_t rows, int64_t cols, Random& random) {
  return MakeBf16(DataKind::kNormal, rows, cols, random);
}
std::vector<float> NormalF32(int64_t rows, int64_t cols, Random& random) {
  return MakeFloats(DataKind::kNormal, rows, cols, random);
}

// One op on data made from `random`; what it wrote.
struct OpCase {
  std::string_view name;
  double limit;
  std::function<Values(const Backend&, Random&)> run;
};

Values RunQuantise(const Backend& backend, Random& random) {
  const auto x = Normal(kRows, kDim, random);
  auto out = Room<bf16>(kRows * kDim);
  Quantise(backend, {.num_tokens = kRows, .dim = kDim, .x = x.data(), .out = out.data()});
  return Collect(out);
}

Values RunRmsNorm(const Backend& backend, Random& random) {
  const auto x = Normal(kRows, kDim, random), gain = Normal(1, kDim, random);
  auto out = Room<bf16>(kRows * kDim);
  RmsNorm(backend, {.num_tokens = kRows,
                    .dim = kDim,
                    .eps = 1e-6f,
                    .x = x.data(),
                    .x_stride = kDim,
                    .gain = gain.data(),
                    .out = out.data()});
  return Collect(out);
}

Values RunRope(const Backend& backend, Random& random) {
  auto x = Normal(kRows * 4, 64, random);
  const auto freqs = RopeFrequencies(32, 10000, nullptr);
  std::vector<int32_t> positions;
  for (int32_t t = 0; t < kRows; ++t) positions.push_back(random.Below(1 << 20));
  auto cos = Room<float>(kRows * 16), sin = cos;
  RopeCosSin(freqs, positions.data(), kRows, cos.data(), sin.data());
  Rope(backend, {.num_tokens = kRows,
                 .num_heads = 4,
                 .head_dim = 64,
                 .rope_dim = 32,
                 .cos = cos.data(),
                 .sin = sin.data(),
                 .x = x.data()});
  return Collect(x);
}

Values RunLinear(WeightFormat format, const Backend& backend, Random& random) {
  const auto x = testing::MakeFp8Grid(DataKind::kNormal, kRows, kDim, random);
  const auto w = MakeMatrix(format, DataKind::kNormal, 96, kDim, random);
  auto out = Room<bf16>(kRows * 96);
  Linear(backend, {.num_tokens = kRows,
                   .weight = w.view,
                   .x = x.data(),
                   .x_stride = kDim,
                   .out = out.data(),
                   .out_stride = 96});
  return Collect(out);
}

Values RunEmbedding(const Backend& backend, Random& random) {
  const auto table = MakeMatrix(WeightFormat::kBf16, DataKind::kNormal, 50, kDim, random);
  std::vector<int32_t> ids;
  for (int32_t t = 0; t < kRows; ++t) ids.push_back(random.Below(50));
  auto streams = Room<bf16>(kRows * kStreams * kDim);
  auto pre = Room<float>(kRows * kStreams);
  Embedding(backend, {.num_tokens = kRows,
                      .dim = kDim,
                      .num_streams = kStreams,
                      .ids = ids.data(),
                      .table = table.view,
                      .streams = streams.data(),
                      .pre = pre.data()});
  return Collect(streams, pre);
}

Values RunEngram(const Backend& backend, Random& random) {
  // An FP8 matrix has coarser scales than a table, but its bytes will do for one.
  const auto bytes = MakeMatrix(WeightFormat::kFp8, DataKind::kNormal, 512, 64, random);
  const std::vector<uint8_t> scales(512 * 2, 120);
  std::vector<int32_t> rows;
  for (int32_t i = 0; i < kRows * 6; ++i) rows.push_back(random.Below(512));
  auto gathered = Room<bf16>(kRows * 6 * 64);
  EngramGather(
      backend,
      {.num_tokens = kRows,
       .columns = 6,
       .table = {.rows = 512, .dim = 64, .data = bytes.data.data(), .scale = scales.data()},
       .rows = rows.data(),
       .out = gathered.data()});
  const auto kv = Normal(kRows, (kStreams + 1) * kDim, random);
  const auto qw = Normal(kStreams, kDim, random), kw = Normal(kStreams, kDim, random);
  auto streams = Normal(kRows * kStreams, kDim, random);
  EngramMix(backend, {.num_tokens = kRows,
                      .num_streams = kStreams,
                      .dim = kDim,
                      .eps = 1e-6f,
                      .kv = kv.data(),
                      .q_weight = qw.data(),
                      .k_weight = kw.data(),
                      .streams = streams.data()});
  return Collect(gathered, streams);
}

Values RunHyper(const Backend& backend, Random& random) {
  constexpr int32_t kMixes = (2 + kStreams) * kStreams;
  auto streams = Normal(kRows * kStreams, kDim, random);
  const auto fn = NormalF32(kMixes, kStreams * kDim, random), base = NormalF32(1, kMixes, random);
  const std::vector<float> scale = {0.5f, 1.5f, 2.0f};
  auto pre = Room<float>(kRows * kStreams), post = pre;
  auto comb = Room<float>(kRows * kStreams * kStreams);
  HyperMix(backend, {.num_tokens = kRows,
                     .num_streams = kStreams,
                     .dim = kDim,
                     .sinkhorn_iterations = 20,
                     .norm_eps = 1e-6f,
                     .hc_eps = 1e-6f,
                     .streams = streams.data(),
                     .fn = fn.data(),
                     .base = base.data(),
                     .scale = scale.data(),
                     .pre_next = pre.data(),
                     .post = post.data(),
                     .comb = comb.data()});
  return Collect(pre, post, comb);
}

Values RunHyperStreams(const Backend& backend, Random& random) {
  auto streams = Normal(kRows * kStreams, kDim, random);
  const auto pre = NormalF32(kRows, kStreams, random), post = NormalF32(kRows, kStreams, random);
  const auto comb = NormalF32(kRows, kStreams * kStreams, random);
  const auto y = Normal(kRows, kDim, random);
  auto out = Room<bf16>(kRows * kDim);
  HyperCollapse(backend, {.num_tokens = kRows,
                          .num_streams = kStreams,
                          .dim = kDim,
                          .streams = streams.data(),
                          .pre = pre.data(),
                          .out = out.data()});
  HyperUpdate(backend, {.num_tokens = kRows,
                        .num_streams = kStreams,
                        .dim = kDim,
                        .y = y.data(),
                        .post = post.data(),
                        .comb = comb.data(),
                        .streams = streams.data()});
  return Collect(out, streams);
}

Values RunRouter(const Backend& backend, Random& random) {
  const auto logits = NormalF32(kRows, 32, random), bias = NormalF32(1, 32, random);
  auto experts = Room<int32_t>(kRows * 6);
  auto weights = Room<float>(kRows * 6);
  Router(backend, {.num_tokens = kRows,
                   .num_experts = 32,
                   .topk = 6,
                   .route_scale = 1.5f,
                   .logits = logits.data(),
                   .bias = bias.data(),
                   .experts = experts.data(),
                   .weights = weights.data()});
  return Collect(experts, weights);
}

Values RunSwiglu(const Backend& backend, Random& random) {
  const auto gate = Normal(kRows, kDim, random), up = Normal(kRows, kDim, random);
  const auto weight = NormalF32(kRows, 1, random);
  auto out = Room<bf16>(kRows * kDim);
  Swiglu(backend, {.num_tokens = kRows,
                   .inner = kDim,
                   .limit = 10,
                   .gate = gate.data(),
                   .up = up.data(),
                   .weight = weight.data(),
                   .out = out.data()});
  return Collect(out);
}

Values RunExperts(const Backend& backend, Random& random) {
  constexpr int32_t kExperts = 5, kInner = 64, kTopk = 2;
  std::vector<testing::OwnedMatrix> owned;
  std::vector<ExpertMatrices> matrices;
  for (int32_t e = 0; e < kExperts; ++e) {
    for (const auto& [rows, cols] : {std::pair(kInner, kDim), {kInner, kDim}, {kDim, kInner}}) {
      owned.push_back(MakeMatrix(WeightFormat::kFp4, DataKind::kNormal, rows, cols, random));
    }
    matrices.push_back(
        {owned[owned.size() - 3].view, owned[owned.size() - 2].view, owned[owned.size() - 1].view});
  }
  const auto x = testing::MakeFp8Grid(DataKind::kNormal, kRows, kDim, random);
  std::vector<int32_t> experts;
  for (int32_t t = 0; t < kRows; ++t) {
    const int32_t first = random.Below(kExperts - 1);
    experts.insert(experts.end(), {first, first + 1});
  }
  const std::vector<float> weights(kRows * kTopk, 0.75f);
  auto y = Room<bf16>(kRows * kTopk * kDim);
  Experts(backend, {.num_tokens = kRows,
                    .dim = kDim,
                    .inner = kInner,
                    .num_experts = kExperts,
                    .topk = kTopk,
                    .limit = 10,
                    .x = x.data(),
                    .experts = experts.data(),
                    .weights = weights.data(),
                    .matrices = matrices.data(),
                    .y = y.data()});
  const auto parts = Normal(kRows * kTopk, kDim, random), shared = Normal(kRows, kDim, random);
  auto out = Room<bf16>(kRows * kDim);
  Combine(backend, {.num_tokens = kRows,
                    .dim = kDim,
                    .topk = kTopk,
                    .y = parts.data(),
                    .shared = shared.data(),
                    .out = out.data()});
  return Collect(y, out);
}

Values RunCompress(const Backend& backend, Random& random) {
  const auto rows = NormalF32(kRows * 2, 2 * kDim, random);
  std::vector<const float*> groups;
  for (int32_t i = 0; i < kRows * 2; ++i) groups.push_back(rows.data() + int64_t{i} * 2 * kDim);
  auto out = Room<bf16>(kRows * kDim);
  Compress(
      backend,
      {.num_entries = kRows, .ratio = 2, .dim = kDim, .rows = groups.data(), .out = out.data()});
  return Collect(out);
}

Values RunKvRecords(const Backend& backend, Random& random) {
  const auto x = Normal(kRows, kDim, random);
  auto swa = Room<uint8_t>(kRows * SwaRecordBytes(kDim));
  auto global = Room<uint8_t>(kRows * GlobalRecordBytes(kDim));
  auto keys = Room<uint8_t>(kRows * IndexKeyBytes(kDim));
  auto scales = Room<uint8_t>(kRows * IndexScaleBytes(kDim));
  std::vector<uint8_t*> global_at, key_at, scale_at;
  for (int32_t r = 0; r < kRows; ++r) {
    global_at.push_back(global.data() + r * GlobalRecordBytes(kDim));
    key_at.push_back(keys.data() + r * IndexKeyBytes(kDim));
    scale_at.push_back(scales.data() + r * IndexScaleBytes(kDim));
  }
  WriteSwa(backend, {.num_rows = kRows, .dim = kDim, .x = x.data(), .records = swa.data()});
  WriteGlobal(backend,
              {.num_rows = kRows, .dim = kDim, .x = x.data(), .records = global_at.data()});
  WriteIndexKey(backend, {.num_rows = kRows,
                          .dim = kDim,
                          .x = x.data(),
                          .keys = key_at.data(),
                          .scales = scale_at.data()});
  return Collect(swa, global, keys, scales);
}

Values RunIndexer(const Backend& backend, Random& random) {
  const testing::IndexCase index({.topk = 16}, 150, {1, 15, 40, 99, 150}, random.Bits());
  const testing::IndexResult first = index.Run(backend, /*make_blocks=*/true, {});
  const testing::IndexResult later = index.Run(backend, /*make_blocks=*/false, first.blocks);
  return Collect(first.selection, first.blocks, later.selection);
}

Values RunAttention(const Backend& backend, Random& random) {
  const testing::AttentionShape shape;
  testing::AttentionSequence sequence(shape, 90, random.Bits());
  testing::AttentionStep step(shape);
  step.Add(sequence, 0, 20);
  step.Add(sequence, 50, 40);
  return Collect(step.Run(backend));
}

const std::vector<OpCase>& Cases() {
  const auto linear = [](WeightFormat format) {
    return [format](const Backend& b, Random& r) { return RunLinear(format, b, r); };
  };
  static const std::vector<OpCase> cases = {
      {"quantise", kExact, RunQuantise},
      {"rms_norm", kRounded, RunRmsNorm},
      {"rope", kExact, RunRope},
      {"linear fp8", kRounded, linear(WeightFormat::kFp8)},
      {"linear fp4", kRounded, linear(WeightFormat::kFp4)},
      {"linear bf16", kRounded, linear(WeightFormat::kBf16)},
      {"linear f32", kRounded, linear(WeightFormat::kF32)},
      {"embedding", kExact, RunEmbedding},
      {"engram", kRounded, RunEngram},
      {"hyper_connection mix", kF32, RunHyper},
      {"hyper_connection streams", kRounded, RunHyperStreams},
      {"router", kF32, RunRouter},
      {"swiglu", kRounded, RunSwiglu},
      {"experts", kRounded, RunExperts},
      {"compressor", kRounded, RunCompress},
      {"kv_records", kExact, RunKvRecords},
      {"indexer", kExact, RunIndexer},
      {"sparse_attention", kRounded, RunAttention},
  };
  return cases;
}

}  // namespace

std::vector<SelftestFigure> CompareOps(ThreadPool* threads) {
  constexpr uint64_t kSeed = 20261129;
  std::vector<SelftestFigure> figures;
  for (const OpCase& op : Cases()) {
    Random random(kSeed);
    const Values expected = op.run({.variant = kRefVariant, .threads = threads}, random);
    for (const std::string& name : VariantNames()) {
      const VariantId variant = *FindVariant(name);
      if (variant == kRefVariant || !MissingFeatures(variant).empty()) continue;
      Random again(kSeed);
      const Values got = op.run({.variant = variant, .threads = threads}, again);
      figures.push_back({.name = std::string(op.name),
                         .variant = name,
                         .measured = testing::Compare(got, expected).rel_l2,
                         .limit = op.limit});
    }
  }
  return figures;
}

}  // namespace deepinfer
