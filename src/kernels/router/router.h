// kernels/router/router.h: gate logits -> the experts of each token and their weights.
#pragma once

#include <cstdint>

#include "kernels/backend.h"

namespace deepinfer {

// s = sqrt(softplus(logit)) (softplus(v) = v for large v); chosen = top k of s + bias, lowest id
// among equals; weight = s / (sum of chosen s + 1e-20) * route_scale (the division only if
// `normalise` and k > 1), the sum taken in order of choice. F32. Source: model.md 3.7. Reference:
// router_ref.cc.
struct RouterParams {
  int32_t num_tokens = 0;   // T
  int32_t num_experts = 0;  // E
  int32_t topk = 0;         // k <= E
  bool normalise = true;
  float route_scale = 1;
  const float* logits = nullptr;      // [T, E]
  const float* bias = nullptr;        // [E]
  const float* bias_vl = nullptr;     // [E] for rows of image spans, or null
  const uint8_t* is_image = nullptr;  // [T] 1 = row of an image span, or null
  int32_t* experts = nullptr;         // [T, k] ascending expert ids
  float* weights = nullptr;           // [T, k] in the same order
  float* gap = nullptr;               // [T] k-th minus (k+1)-th of s + bias (tests), or null
};

Op<RouterParams>& RouterOp();
inline void Router(const Backend& backend, const RouterParams& params) {
  RouterOp().Run(backend, params);
}

}  // namespace deepinfer
