// model/feed_forward.cc: the MoE sub-layer: routed experts and the shared one. Source:
// model.md 3.7.
#include "kernels/experts/experts.h"
#include "kernels/quantise/quantise.h"
#include "kernels/router/router.h"
#include "kernels/swiglu/swiglu.h"
#include "model/model_impl.h"

namespace deepinfer {

Status Model::Impl::FeedForwardSublayer(int32_t block, const RowSet& rows) {
  const BlockWeights& weights = BlockOf(weights_, block);
  const bool draft = block >= config_.num_hidden_layers;
  const int32_t num_experts = draft ? config_.dspark_n_routed_experts : config_.n_routed_experts;
  const int32_t topk = draft ? config_.dspark_num_experts_per_tok : config_.num_experts_per_tok;
  const int32_t count = rows.num_rows(), dim = config_.hidden_size;
  SublayerInput(weights.hc_ffn, weights.ffn_norm, count, /*mix=*/true);

  float* const logits = gate_logits_.Get(int64_t{count} * num_experts);
  ProjectF32(weights.gate, x_.data(), count, logits);
  int32_t* const experts = route_experts_.Get(int64_t{count} * topk);
  float* const route_weights = route_weights_.Get(int64_t{count} * topk);
  // Draft blocks always use gate.bias, and no hook sees them.
  const bool images = !draft && rows.has_images;
  float* const gap = !draft && observer_->wants_details() ? route_gap_.Get(count) : nullptr;
  Router(backend_, {.num_tokens = count,
                    .num_experts = num_experts,
                    .topk = topk,
                    .normalise = config_.norm_topk_prob,
                    .route_scale = static_cast<float>(config_.routed_scaling_factor),
                    .logits = logits,
                    .bias = weights.gate_bias,
                    .bias_vl = images ? weights.gate_bias_vl : nullptr,
                    .is_image = images ? rows.is_image.data() : nullptr,
                    .experts = experts,
                    .weights = route_weights,
                    .gap = gap});
  if (!draft) observer_->Routes(block, rows, experts, gap);

  bf16* const xq = xq_.Get(int64_t{count} * dim);
  Quantise(backend_, {.num_tokens = count, .dim = dim, .x = x_.data(), .out = xq});
  bf16* const routed = expert_y_.Get(int64_t{count} * topk * dim);
  const ExpertsParams params = {.num_tokens = count,
                                .dim = dim,
                                .inner = config_.moe_intermediate_size,
                                .num_experts = num_experts,
                                .topk = topk,
                                .limit = static_cast<float>(config_.swiglu_limit),
                                .x = xq,
                                .experts = experts,
                                .weights = route_weights,
                                .matrices = weights.experts.data(),
                                .y = routed};
  bf16* const shared = shared_out_.Get(int64_t{count} * dim);
  if (expert_rounds_) {
    expert_rounds_->Begin(block, params);
    SharedExpert(weights.shared_experts, xq, count, shared);  // while the first ones come in
    DI_RETURN_IF_ERROR(expert_rounds_->Run(backend_));
  } else {
    Experts(backend_, params);
    SharedExpert(weights.shared_experts, xq, count, shared);
  }

  bf16* const y = y_.Get(int64_t{count} * dim);
  Combine(backend_,
          {.num_tokens = count, .dim = dim, .topk = topk, .y = routed, .shared = shared, .out = y});
  FinishSublayer(count, y);
  return OkStatus();
}

void Model::Impl::SharedExpert(const ExpertWeights& shared, const bf16* xq, int32_t num_rows,
                               bf16* out) {
  const int32_t inner = config_.moe_intermediate_size;
  bf16* const gate = shared_gate_.Get(int64_t{num_rows} * inner);
  bf16* const up = shared_up_.Get(int64_t{num_rows} * inner);
  const auto product = [&](const Matrix& w, bf16* to) {
    return LinearParams{.num_tokens = num_rows,
                        .weight = w,
                        .x = xq,
                        .x_stride = w.cols,
                        .out = to,
                        .out_stride = w.rows};
  };
  products_ = {product(shared.w1, gate), product(shared.w3, up)};
  Linears(backend_, products_);
  Swiglu(backend_, {.num_tokens = num_rows,
                    .inner = inner,
                    .limit = static_cast<float>(config_.swiglu_limit),
                    .gate = gate,
                    .up = up,
                    .out = gate});
  Quantise(backend_, {.num_tokens = num_rows, .dim = inner, .x = gate, .out = gate});
  Project(shared.w2, gate, num_rows, out);
}

}  // namespace deepinfer
