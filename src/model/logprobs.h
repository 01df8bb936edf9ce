// model/logprobs.h: log-probabilities of the model's own distribution: log-softmax of raw logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "deepinfer/sampling.h"

namespace deepinfer {

// Errors: kDataLoss naming the first token whose logit is NaN or infinite.
Status CheckFinite(std::span<const float> logits);

// The value of `token` and the num_top likeliest. F64, summed in id order.
// Requires: finite logits, token < logits.size().
PositionLogprobs RawLogprobs(std::span<const float> logits, int32_t token, int32_t num_top);

}  // namespace deepinfer
