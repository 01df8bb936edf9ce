#include "apps/bare_passes.h"

#include <algorithm>

namespace deepinfer {

void HalfTimer::LayerInput(int32_t layer, const RowSet&, bf16*, float*) {
  const bool half = layer == config_.FirstDecoderLayer() || layer == config_.num_hidden_layers;
  if (layer != 0 && !half) return;
  const MonotonicTime now = clock_.Now();
  if (half) (layer == config_.num_hidden_layers ? decoder_s_ : encoder_s_) += Seconds(now - last_);
  last_ = now;
}

Status BarePasses::Prefill(std::span<const int32_t> tokens, int32_t chunk,
                           ForwardObserver* observer) {
  auto begin = static_cast<int32_t>(tokens_.size());
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  const auto all = static_cast<int32_t>(tokens_.size());
  while (begin < all) {
    const int32_t end = std::min(all, begin + chunk);
    const ForwardBatch batch = {
        {{.kv = &kv_.kv(), .tokens = tokens_.data(), .begin = begin, .end = end}}};
    DI_RETURN_IF_ERROR(model_.Forward(batch, observer).status());
    begin = end;
  }
  return OkStatus();
}

StatusOr<double> BarePasses::Step(int32_t token) {
  tokens_.push_back(token);
  const auto end = static_cast<int32_t>(tokens_.size());
  const ForwardBatch batch = {{{.kv = &kv_.kv(),
                                .tokens = tokens_.data(),
                                .begin = end - 1,
                                .end = end,
                                .logits_begin = end - 1}}};
  const MonotonicTime start = clock_.Now();
  DI_RETURN_IF_ERROR(model_.Forward(batch).status());
  return Seconds(clock_.Now() - start);
}

}  // namespace deepinfer
