// model/kv_shape.h: sizes of a sequence's KV state, from the model's shape.
#pragma once

#include "cache/sequence_kv.h"
#include "model/config.h"

namespace deepinfer {

// Rings: text layers 0..L-1, then draft blocks. v = 1 + dspark_block_size.
KvShape MakeKvShape(const ModelConfig& config);

// Position of a kv source layer in kv_source_layer_ids: the index of its page section.
int32_t KvSourceIndex(const ModelConfig& config, int32_t source_layer);

}  // namespace deepinfer
