// The oracle's mistakes on purpose (kernels/fault.h) must be seen by the comparison with the cpu
// form.

#include "kernels/fault.h"

#include <gtest/gtest.h>

#include "kernels/experts/experts.h"
#include "kernels/hyper_connection/hyper_connection.h"
#include "kernels/linear/linear.h"
#include "kernels/quantise/quantise.h"
#include "kernels/router/router.h"
#include "kernels/swiglu/swiglu.h"
#include "kernels/testing/batch.h"
#include "kernels/testing/data.h"

namespace deepinfer::testing {
namespace {

constexpr double kLimit = 2e-3;  // kernels.md 7, BF16 outputs

// rel_l2 between the cpu form and the oracle; run(backend) returns the output.
template <typename Run>
double Distance(const Run& run) {
  return Compare(run(kCpu), run(kRef)).rel_l2;
}

// Inside the limit without the fault, outside with it, inside again after it.
template <typename Run>
void ExpectFaultSeen(const char* name, const Run& run, double limit = kLimit) {
  SetFault("");
  EXPECT_LT(Distance(run), limit) << name << ": red without the fault";
  SetFault(name);
  EXPECT_GT(Distance(run), limit) << name << ": not seen";
  SetFault("");
  EXPECT_LT(Distance(run), limit) << name << ": stays";
}

std::vector<bf16> RunLinear(const Backend& backend, WeightFormat format) {
  Random random(41);
  const OwnedMatrix w = MakeMatrix(format, DataKind::kNormal, 64, 640, random);
  const std::vector<bf16> x = MakeFp8Grid(DataKind::kNormal, 3, 640, random);
  std::vector<bf16> out(3 * 64);
  Linear(backend, {.num_tokens = 3,
                   .weight = w.view,
                   .x = x.data(),
                   .x_stride = 640,
                   .out = out.data(),
                   .out_stride = 64});
  return out;
}

TEST(Fault, WrongBlockScale) {
  for (const WeightFormat format : {WeightFormat::kFp8, WeightFormat::kFp4})
    ExpectFaultSeen("wrong_block_scale", [&](const Backend& b) { return RunLinear(b, format); });
}

TEST(Fault, SwappedNibbles) {
  ExpectFaultSeen("swapped_nibbles",
                  [](const Backend& b) { return RunLinear(b, WeightFormat::kFp4); });
}

TEST(Fault, NoActivationQuant) {
  ExpectFaultSeen("no_activation_quant", [](const Backend& backend) {
    Random random(42);
    std::vector<bf16> x = MakeBf16(DataKind::kNormal, 3, 64, random);
    Quantise(backend, {.num_tokens = 3, .dim = 64, .x = x.data(), .out = x.data()});
    return x;
  });
}

TEST(Fault, NoSwigluClamp) {
  ExpectFaultSeen("no_swiglu_clamp", [](const Backend& backend) {
    Random random(43);
    std::vector<bf16> gate = MakeBf16(DataKind::kHotOutlier, 3, 64, random);
    const std::vector<bf16> up = MakeBf16(DataKind::kHotOutlier, 3, 64, random);
    Swiglu(backend, {.num_tokens = 3,
                     .inner = 64,
                     .limit = 10,
                     .gate = gate.data(),
                     .up = up.data(),
                     .out = gate.data()});
    return gate;
  });
}

TEST(Fault, NoRoutedScaling) {
  ExpectFaultSeen("no_routed_scaling", [](const Backend& backend) {
    Random random(44);
    const std::vector<float> logits = MakeFloats(DataKind::kNormal, 5, 16, random);
    const std::vector<float> bias(16, 0.0f);
    std::vector<int32_t> experts(5 * 4);
    std::vector<float> weights(5 * 4);
    Router(backend, {.num_tokens = 5,
                     .num_experts = 16,
                     .topk = 4,
                     .route_scale = 1.5f,
                     .logits = logits.data(),
                     .bias = bias.data(),
                     .experts = experts.data(),
                     .weights = weights.data()});
    return weights;
  });
}

TEST(Fault, RoutingWeightAfterW2) {
  Random random(45);
  std::vector<OwnedMatrix> w;
  for (int i = 0; i < 3; ++i)
    w.push_back(MakeMatrix(WeightFormat::kFp4, DataKind::kNormal, 64, 64, random));
  const ExpertMatrices expert{.w1 = w[0].view, .w3 = w[1].view, .w2 = w[2].view};
  const std::vector<bf16> x = MakeFp8Grid(DataKind::kSubnormal, 4, 64, random);
  const std::vector<int32_t> experts(4, 0);
  const std::vector<float> weights = {0.3f, 0.77f, 1.1f, 0.9f};
  ExpectFaultSeen("routing_weight_after_w2", [&](const Backend& backend) {
    std::vector<bf16> y(4 * 64);
    Experts(backend, {.num_tokens = 4,
                      .dim = 64,
                      .inner = 64,
                      .num_experts = 1,
                      .topk = 1,
                      .limit = 10,
                      .x = x.data(),
                      .experts = experts.data(),
                      .weights = weights.data(),
                      .matrices = &expert,
                      .y = y.data()});
    return y;
  });
}

TEST(Fault, CombTransposed) {
  ExpectFaultSeen("comb_transposed", [](const Backend& backend) {
    Random random(46);
    std::vector<bf16> streams = MakeBf16(DataKind::kNormal, 4, 64, random);
    const std::vector<bf16> y = MakeBf16(DataKind::kNormal, 1, 64, random);
    const std::vector<float> post(4, 1.0f);
    std::vector<float> comb;
    for (int k = 0; k < 16; ++k) comb.push_back(static_cast<float>(random.Uniform()));
    HyperUpdate(backend, {.num_tokens = 1,
                          .num_streams = 4,
                          .dim = 64,
                          .y = y.data(),
                          .post = post.data(),
                          .comb = comb.data(),
                          .streams = streams.data()});
    return streams;
  });
}

// m_k = sin(k) with a wide scale: a vector on which Sinkhorn is not yet converged.
TEST(Fault, SinkhornNineteenIterations) {
  const auto run = [](const Backend& backend) {
    std::vector<float> fn(24 * 4, 0.0f), pre(4), post(4), comb(16);
    for (int k = 0; k < 24; ++k) fn[k * 4] = static_cast<float>(std::sin(k));
    const std::vector<float> base(24, 0.0f), scale = {1, 1, 4};
    const std::vector<bf16> ones(4, ToBf16(1.0f));
    HyperMix(backend, {.num_tokens = 1,
                       .num_streams = 4,
                       .dim = 1,
                       .sinkhorn_iterations = 20,
                       .norm_eps = 1e-20f,
                       .hc_eps = 1e-6f,
                       .streams = ones.data(),
                       .fn = fn.data(),
                       .base = base.data(),
                       .scale = scale.data(),
                       .pre_next = pre.data(),
                       .post = post.data(),
                       .comb = comb.data()});
    return comb;
  };
  ExpectFaultSeen("sinkhorn_19_iters", run, 2e-6);
}

}  // namespace
}  // namespace deepinfer::testing
