#include "kernels/router/router.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "kernels/testing/batch.h"
#include "kernels/testing/data.h"

namespace deepinfer::testing {
namespace {

struct Route {
  int32_t expert;
  float weight;
  bool operator==(const Route&) const = default;
};

struct Input {
  int32_t num_experts = 0, topk = 0;
  bool normalise = true;
  std::vector<float> logits, bias, bias_vl;
  std::vector<uint8_t> is_image;
};

Input MakeInput(int32_t num_rows, int32_t num_experts, int32_t topk) {
  Random random(static_cast<uint64_t>(num_experts));
  Input in{.num_experts = num_experts, .topk = topk};
  for (int32_t i = 0; i < num_rows * num_experts; ++i)
    in.logits.push_back(static_cast<float>(3 * random.Normal()));
  for (int32_t e = 0; e < num_experts; ++e) {
    in.bias.push_back(static_cast<float>(0.1 * random.Normal()));
    in.bias_vl.push_back(static_cast<float>(0.1 * random.Normal()));
  }
  for (int32_t t = 0; t < num_rows; ++t) in.is_image.push_back(t % 3 == 1);
  return in;
}

void RunRows(const Backend& backend, const Input& in, int32_t begin, int32_t count, Route* out,
             float* gap = nullptr) {
  Guarded<int32_t> experts(count * in.topk);
  Guarded<float> weights(count * in.topk);
  Router(backend, {.num_tokens = count,
                   .num_experts = in.num_experts,
                   .topk = in.topk,
                   .normalise = in.normalise,
                   .route_scale = 1.5f,
                   .logits = in.logits.data() + begin * in.num_experts,
                   .bias = in.bias.data(),
                   .bias_vl = in.is_image.empty() ? nullptr : in.bias_vl.data(),
                   .is_image = in.is_image.empty() ? nullptr : in.is_image.data() + begin,
                   .experts = experts.data(),
                   .weights = weights.data(),
                   .gap = gap});
  EXPECT_TRUE(experts.GuardsIntact() && weights.GuardsIntact());
  for (int64_t i = 0; i < experts.size(); ++i) out[i] = {experts[i], weights[i]};
}

std::vector<Route> Output(const Backend& backend, const Input& in, float* gap = nullptr) {
  const auto num_rows = static_cast<int32_t>(in.logits.size()) / in.num_experts;
  std::vector<Route> out(static_cast<size_t>(num_rows * in.topk));
  RunRows(backend, in, 0, num_rows, out.data(), gap);
  return out;
}

TEST(Router, MatchesTheOracleBitForBit) {
  for (const auto& [num_experts, topk] : {std::pair{8, 2}, {384, 6}, {128, 3}, {4, 4}, {5, 1}}) {
    const Input in = MakeInput(65, num_experts, topk);
    std::vector<float> cpu_gap(65), ref_gap(65);
    EXPECT_TRUE(Output(kCpu, in, cpu_gap.data()) == Output(kRef, in, ref_gap.data()));
    EXPECT_TRUE(cpu_gap == ref_gap);
  }
}

TEST(Router, OracleFollowsTheFormula) {
  const Input in = MakeInput(30, 24, 3);
  const std::vector<Route> routes = Output(kRef, in);
  for (int32_t t = 0; t < 30; ++t) {
    std::vector<double> score, biased;
    for (int32_t e = 0; e < 24; ++e) {
      score.push_back(std::sqrt(std::log1p(std::exp(double{in.logits[t * 24 + e]}))));
      biased.push_back(score.back() + (t % 3 == 1 ? in.bias_vl[e] : in.bias[e]));
    }
    std::vector<int32_t> order(24);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int a, int b) { return biased[a] > biased[b]; });
    std::sort(order.begin(), order.begin() + 3);
    const double sum = score[order[0]] + score[order[1]] + score[order[2]];
    for (int32_t i = 0; i < 3; ++i) {
      EXPECT_EQ(routes[t * 3 + i].expert, order[i]);
      EXPECT_NEAR(routes[t * 3 + i].weight, score[order[i]] / sum * 1.5, 1e-6);
    }
  }
}

TEST(Router, EqualScoresGoToTheLowestId) {
  Input in{.num_experts = 6, .topk = 3};
  in.logits = {1, 2, 2, 2, 2, 0};
  in.bias.assign(6, 0);
  for (const Backend& backend : {kRef, kCpu}) {
    float gap = -1;
    const std::vector<Route> routes = Output(backend, in, &gap);
    for (int32_t i = 0; i < 3; ++i) EXPECT_EQ(routes[i].expert, i + 1);
    EXPECT_EQ(gap, 0);
  }
}

TEST(Router, ExtremeLogitsStayFinite) {
  Input in{.num_experts = 4, .topk = 2};
  in.logits = {1e30f, 1000, -1e30f, 0, -1e30f, -200, -1e4f, -1e30f};
  in.bias.assign(4, 0);
  for (const Backend& backend : {kRef, kCpu}) {
    const std::vector<Route> routes = Output(backend, in);
    EXPECT_EQ(routes[0].expert, 0);
    EXPECT_NEAR(routes[0].weight, 1.5, 1e-5);
    for (const Route& route : routes) EXPECT_TRUE(std::isfinite(route.weight));
    EXPECT_EQ(routes[2].expert, 0);  // every score is 0: lowest ids, no weight
    EXPECT_EQ(routes[2].weight, 0);
  }
}

// Every expert chosen and nothing normalised: the weights are the scores.
TEST(Router, ScoresOfAllKindsOfLogitsEqualTheOracles) {
  Input in{.normalise = false};
  for (float logit = -110; logit < 110; logit += 0.0137f) in.logits.push_back(logit);
  for (const float logit : {0.0f, 1e-30f, 1e-45f, 1e5f, 1e38f, 20.0f, 88.0f, 745.0f, INFINITY}) {
    in.logits.push_back(logit);
    in.logits.push_back(-logit);
  }
  in.logits.push_back(NAN);
  in.num_experts = in.topk = static_cast<int32_t>(in.logits.size());
  in.bias.assign(in.logits.size(), 0);
  const std::vector<Route> cpu = Output(kCpu, in), ref = Output(kRef, in);
  for (size_t e = 0; e < cpu.size(); ++e) {
    EXPECT_EQ(cpu[e].expert, static_cast<int32_t>(e));
    EXPECT_TRUE(cpu[e].weight == ref[e].weight || std::isnan(ref[e].weight)) << in.logits[e];
    EXPECT_EQ(std::isnan(cpu[e].weight), std::isnan(in.logits[e])) << in.logits[e];
  }
}

// All scores are 0, so the order is that of the biases: of both signs, equal, infinite, NaN.
TEST(Router, BiasesOfAllKindsChooseAsTheOracleDoes) {
  Input in;
  in.bias = {-0.0f, INFINITY, -3, NAN, 0, 1e-45f, -1e-45f, 2, -INFINITY, 2, 0, -3, 5e-39f, -2.5f};
  in.num_experts = static_cast<int32_t>(in.bias.size());
  in.logits.assign(in.bias.size(), -1e30f);
  for (in.topk = 1; in.topk <= in.num_experts; ++in.topk) {
    float cpu_gap = -1, ref_gap = -1;
    EXPECT_TRUE(Output(kCpu, in, &cpu_gap) == Output(kRef, in, &ref_gap)) << in.topk;
    EXPECT_TRUE(cpu_gap == ref_gap || (std::isnan(cpu_gap) && std::isnan(ref_gap))) << in.topk;
  }
}

TEST(Router, NanLogitsChooseLastAndIdsStayValid) {
  Input in{.num_experts = 4, .topk = 3};
  in.logits = {NAN, 1, NAN, 2};
  in.bias.assign(4, 0);
  for (const Backend& backend : {kRef, kCpu}) {
    const std::vector<Route> routes = Output(backend, in);
    EXPECT_EQ(routes[0].expert, 0);
    EXPECT_EQ(routes[1].expert, 1);
    EXPECT_EQ(routes[2].expert, 3);
  }
}

TEST(Router, OneExpertOrNoNormalisationKeepsTheScore) {
  Input one = MakeInput(4, 8, 1), plain = MakeInput(4, 8, 2);
  plain.normalise = false;
  for (const Input& in : {one, plain}) {
    for (const Backend& backend : {kRef, kCpu}) {
      const std::vector<Route> routes = Output(backend, in);
      for (size_t i = 0; i < routes.size(); ++i) {
        const double logit = in.logits[i / in.topk * 8 + routes[i].expert];
        EXPECT_NEAR(routes[i].weight, 1.5 * std::sqrt(std::log1p(std::exp(logit))), 1e-5);
      }
    }
  }
}

TEST(Router, RowsDoNotDependOnTheBatch) {
  const Input in = MakeInput(kMostRows, 32, 4);
  ExpectBatchInvariant<Route>(
      kMostRows, 4, [&](const Backend& backend, int32_t begin, int32_t count, Route* out) {
        RunRows(backend, in, begin, count, out);
      });
}

}  // namespace
}  // namespace deepinfer::testing
