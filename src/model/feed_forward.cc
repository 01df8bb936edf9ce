// model/feed_forward.cc: the MoE sub-layer: routed experts and the shared one. Source:
// model.md 3.7.
#include "kernels/experts/experts.h"
#include "kernels/quantise/quantise.h"
#include "kernels/router/router.h"
#include "kernels/swiglu/swiglu.h"
#include "model/model_impl.h"

namespace deepinfer {

Status Model::Impl::FeedForwardSublayer(const BlockWeights& block, const RowSet& rows,
                                        int32_t num_experts, int32_t topk, int32_t observed_layer) {
  const int32_t count = rows.num_rows(), dim = config_.hidden_size;
  const int32_t inner = config_.moe_intermediate_size;
  const auto limit = static_cast<float>(config_.swiglu_limit);
  SublayerInput(block.hc_ffn, block.ffn_norm, count, /*mix=*/true);

  float* const logits = gate_logits_.Get(int64_t{count} * num_experts);
  ProjectF32(block.gate, x_.data(), count, logits);
  int32_t* const experts = route_experts_.Get(int64_t{count} * topk);
  float* const weights = route_weights_.Get(int64_t{count} * topk);
  // Draft blocks always use gate.bias, and no hook sees them.
  const bool observed = observed_layer >= 0;
  const bool images = observed && rows.has_images;
  float* const gap = observed && observer_->wants_details() ? route_gap_.Get(count) : nullptr;
  Router(backend_, {.num_tokens = count,
                    .num_experts = num_experts,
                    .topk = topk,
                    .normalise = config_.norm_topk_prob,
                    .route_scale = static_cast<float>(config_.routed_scaling_factor),
                    .logits = logits,
                    .bias = block.gate_bias,
                    .bias_vl = images ? block.gate_bias_vl : nullptr,
                    .is_image = images ? rows.is_image.data() : nullptr,
                    .experts = experts,
                    .weights = weights,
                    .gap = gap});
  if (observed) observer_->Routes(observed_layer, rows, experts, gap);

  bf16* const xq = xq_.Get(int64_t{count} * dim);
  Quantise(backend_, {.num_tokens = count, .dim = dim, .x = x_.data(), .out = xq});
  bf16* const routed = expert_y_.Get(int64_t{count} * topk * dim);
  Experts(backend_, {.num_tokens = count,
                     .dim = dim,
                     .inner = inner,
                     .num_experts = num_experts,
                     .topk = topk,
                     .limit = limit,
                     .x = xq,
                     .experts = experts,
                     .weights = weights,
                     .matrices = block.experts.data(),
                     .y = routed});

  const ExpertWeights& shared = block.shared_experts;
  bf16* const gate = shared_gate_.Get(int64_t{count} * inner);
  bf16* const up = shared_up_.Get(int64_t{count} * inner);
  Project(shared.w1, xq, count, gate);
  Project(shared.w3, xq, count, up);
  Swiglu(
      backend_,
      {.num_tokens = count, .inner = inner, .limit = limit, .gate = gate, .up = up, .out = gate});
  Quantise(backend_, {.num_tokens = count, .dim = inner, .x = gate, .out = gate});
  bf16* const shared_out = shared_out_.Get(int64_t{count} * dim);
  Project(shared.w2, gate, count, shared_out);

  bf16* const y = y_.Get(int64_t{count} * dim);
  Combine(
      backend_,
      {.num_tokens = count, .dim = dim, .topk = topk, .y = routed, .shared = shared_out, .out = y});
  FinishSublayer(count, y);
  return OkStatus();
}

}  // namespace deepinfer
