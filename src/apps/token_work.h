// apps/token_work.h: what a model must read and multiply for one decoded token, without padding.
#pragma once

#include <cstdint>

#include "model/config.h"
#include "model/weights.h"

namespace deepinfer {

struct TokenWork {
  int64_t macs = 0;   // multiplications with weights
  int64_t bytes = 0;  // of those weights as they lie in memory
};

// Every product of a pass over one row that asks for logits: all layers with the experts that a
// token is routed to, the rows of the drafts' caches, the head. Attention over KV and the index
// scores, which grow with the context, are left out.
TokenWork CountTokenWork(const ModelConfig& config, const ModelWeights& weights);

}  // namespace deepinfer
