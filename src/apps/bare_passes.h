// apps/bare_passes.h: one sequence through Model::Forward, timed, with nothing of an engine around.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "cache/standalone_kv.h"
#include "model/model.h"

namespace deepinfer {

// Times the halves of passes: the encoder's layers, and the decoder's with what is made of them.
class HalfTimer : public ForwardObserver {
 public:
  HalfTimer(const ModelConfig& config, const Clock& clock) : config_(config), clock_(clock) {}
  void LayerInput(int32_t layer, const RowSet&, bf16*, float*) override;

  double encoder_s() const { return encoder_s_; }
  double decoder_s() const { return decoder_s_; }
  double DecoderShare() const { return decoder_s_ / (encoder_s_ + decoder_s_); }

 private:
  const ModelConfig& config_;
  const Clock& clock_;
  MonotonicTime last_;
  double encoder_s_ = 0, decoder_s_ = 0;
};

// Every row runs every layer. All arguments outlive this.
class BarePasses {
 public:
  // Memory for `most_tokens` positions.
  BarePasses(Model& model, const Clock& clock, int32_t most_tokens)
      : model_(model), clock_(clock), kv_(model.kv_shape(), most_tokens) {}

  // Computes tokens that follow those so far, at most `chunk` rows a pass, without logits.
  // Errors: as Model::Forward.
  Status Prefill(std::span<const int32_t> tokens, int32_t chunk,
                 ForwardObserver* observer = nullptr);
  // One row that asks for logits. Returns the seconds it took. Errors: as Model::Forward.
  StatusOr<double> Step(int32_t token);

 private:
  Model& model_;
  const Clock& clock_;
  StandaloneKv kv_;
  std::vector<int32_t> tokens_;  // whose KV is present
};

}  // namespace deepinfer
