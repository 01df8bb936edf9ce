#include <cmath>
#include <limits>
#include <vector>

#include "kernels/fault.h"
#include "kernels/router/router.h"

namespace deepinfer {
namespace {

float Score(float logit) {
  const double softplus = logit > 20 ? double{logit} : std::log1p(std::exp(double{logit}));
  return std::sqrt(static_cast<float>(softplus));
}

// The index of the largest value not yet taken, lowest first; -1 if all are taken. NaN is smallest.
int32_t Largest(const std::vector<float>& values, const std::vector<bool>& taken) {
  int32_t best = -1;
  for (int32_t e = 0; e < static_cast<int32_t>(values.size()); ++e) {
    if (taken[e]) continue;
    if (best < 0 || values[e] > values[best] ||
        (std::isnan(values[best]) && !std::isnan(values[e])))
      best = e;
  }
  return best;
}

void RouteToken(const RouterParams& p, int64_t t) {
  const float* bias = p.is_image != nullptr && p.is_image[t] != 0 ? p.bias_vl : p.bias;
  std::vector<float> score(p.num_experts), biased(p.num_experts);
  for (int32_t e = 0; e < p.num_experts; ++e) {
    score[e] = Score(p.logits[t * p.num_experts + e]);
    biased[e] = score[e] + bias[e];
  }

  std::vector<bool> taken(p.num_experts, false);
  float sum = 0, least = 0;
  for (int32_t i = 0; i < p.topk; ++i) {
    const int32_t e = Largest(biased, taken);
    taken[e] = true;
    sum += score[e];
    least = biased[e];
  }
  if (p.gap != nullptr) {
    const int32_t next = Largest(biased, taken);
    p.gap[t] = next < 0 ? std::numeric_limits<float>::infinity() : least - biased[next];
  }

  const float route_scale = DI_FAULT("no_routed_scaling") ? 1.0f : p.route_scale;
  int64_t slot = t * p.topk;
  for (int32_t e = 0; e < p.num_experts; ++e) {
    if (!taken[e]) continue;
    const bool divide = p.normalise && p.topk > 1;
    const float weight = divide ? score[e] / (sum + 1e-20f) : score[e];
    p.experts[slot] = e;
    p.weights[slot++] = weight * route_scale;
  }
}

}  // namespace

void RouterRef(const Backend&, const RouterParams& p) {
  for (int64_t t = 0; t < p.num_tokens; ++t) RouteToken(p, t);
}

}  // namespace deepinfer
