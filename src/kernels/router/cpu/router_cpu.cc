#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/scratch_sizes.h"

namespace deepinfer {
namespace {

struct Choice {
  float biased;
  int32_t expert;
};

// Order of choice: larger value first, lower id among equals. NaN counts as the smallest value.
bool Before(const Choice& a, const Choice& b) {
  const bool a_nan = std::isnan(a.biased), b_nan = std::isnan(b.biased);
  if (a_nan != b_nan) return b_nan;
  if (!a_nan && a.biased != b.biased) return a.biased > b.biased;
  return a.expert < b.expert;
}

float Score(float logit) {
  const double softplus = logit > 20 ? double{logit} : std::log1p(std::exp(double{logit}));
  return std::sqrt(static_cast<float>(softplus));
}

struct RouterScratch {
  template <typename Memory>
  RouterScratch(Memory& memory, const RouterParams& p)
      : score(memory.template Get<float>(p.num_experts)),
        order(memory.template Get<Choice>(p.num_experts)) {}

  float* score;   // [E]
  Choice* order;  // [E]
};

void RouteToken(const RouterParams& p, int64_t t, const RouterScratch& scratch) {
  float* const score = scratch.score;
  Choice* const order = scratch.order;
  const float* bias = p.is_image != nullptr && p.is_image[t] != 0 ? p.bias_vl : p.bias;
  const float* logits = p.logits + t * p.num_experts;
  for (int32_t e = 0; e < p.num_experts; ++e) {
    score[e] = Score(logits[e]);
    order[e] = {score[e] + bias[e], e};
  }

  const int32_t num_sorted = std::min(p.topk + 1, p.num_experts);
  std::partial_sort(order, order + num_sorted, order + p.num_experts, Before);
  if (p.gap != nullptr) {
    p.gap[t] = p.topk == p.num_experts ? std::numeric_limits<float>::infinity()
                                       : order[p.topk - 1].biased - order[p.topk].biased;
  }

  float sum = 0;
  for (int32_t i = 0; i < p.topk; ++i) sum += score[order[i].expert];
  const float divisor = p.normalise && p.topk > 1 ? sum + 1e-20f : 1.0f;
  std::sort(order, order + p.topk,
            [](const Choice& a, const Choice& b) { return a.expert < b.expert; });
  for (int32_t i = 0; i < p.topk; ++i) {
    p.experts[t * p.topk + i] = order[i].expert;
    p.weights[t * p.topk + i] = score[order[i].expert] / divisor * p.route_scale;
  }
}

}  // namespace

void RouterCpu(const Backend& backend, const RouterParams& p) {
  backend.ParallelFor(p.num_tokens, 4, [&](int64_t begin, int64_t end) {
    ScratchFrame frame;
    const RouterScratch scratch(frame, p);
    for (int64_t t = begin; t < end; ++t) RouteToken(p, t, scratch);
  });
}

ScratchBytes RouterScratchBytes(const RouterParams& p) {
  ScratchMeter meter;
  RouterScratch(meter, p);
  return OnAllThreads(meter.bytes());
}

}  // namespace deepinfer
