// apps/perplexity.h: how well a model predicts a text: exp(mean of -log p(token | what is before)).
//
// The text is cut into windows of BOS and `window` - 1 tokens that start every `stride` tokens.
// Each token is scored once, in the first window that holds it, so that all but the first window's
// have at least window - 1 - stride tokens before them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/engine_core.h"

namespace deepinfer {

struct PerplexityOptions {
  int32_t bos_id = 0;
  int32_t window = 512;                          // tokens, BOS included, >= 2
  int32_t stride = 256;                          // tokens, 1..window - 1
  std::function<void(int64_t tokens)> progress;  // tokens scored since the last call
};

struct PerplexityResult {
  int64_t num_tokens = 0;              // scored
  int64_t num_computed = 0;            // positions run through the model
  double negative_log_likelihood = 0;  // sum, nats
  double perplexity() const;
};

// Requires: core idle; window <= its max_model_len. Errors: kInvalidArgument for an empty text; the
// first failure of a window.
StatusOr<PerplexityResult> MeasurePerplexity(EngineCore& core, std::span<const int32_t> tokens,
                                             const PerplexityOptions& options);

}  // namespace deepinfer
