// model/weights.h: every tensor of the text model and its draft blocks, as views into the
// checkpoint.
//
// Names follow the checkpoint. The views stay valid as long as the Checkpoint that made them.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "kernels/experts/experts.h"
#include "kernels/formats/matrix.h"
#include "model/config.h"

namespace deepinfer {

struct HyperWeights {            // one sub-layer's hyper-connection
  const float* fn = nullptr;     // [(2+hc)*hc, hc*D]
  const float* base = nullptr;   // [(2+hc)*hc]
  const float* scale = nullptr;  // [3]
};

using ExpertWeights = ExpertMatrices;

struct EngramWeights {
  EngramTable table;
  Matrix wkv;                      // [(hc+1)*D, columns*dim]
  const bf16* q_weight = nullptr;  // [hc, D]
  const bf16* k_weight = nullptr;  // [hc, D]
};

struct BlockWeights {               // a text layer or a draft block
  const bf16* attn_norm = nullptr;  // [D]
  const bf16* ffn_norm = nullptr;   // [D]
  HyperWeights hc_attn, hc_ffn;

  Matrix wq_a;                       // [q_lora, D]
  const bf16* q_norm = nullptr;      // [q_lora]
  Matrix wq_b;                       // [H*d, q_lora]
  Matrix wkv;                        // [d, D]
  const bf16* kv_norm = nullptr;     // [d]
  Matrix wo_a;                       // [groups*o_lora, H*d/groups]
  Matrix wo_b;                       // [D, groups*o_lora]
  const float* attn_sink = nullptr;  // [H]

  // kv sources only.
  Matrix compressor_wkv;                  // [d, D] BF16
  Matrix compressor_wgate;                // [d, D] BF16, ratio > 1 only
  const bf16* compressor_norm = nullptr;  // [d]
  Matrix indexer_wk;                      // [index_head_dim, d] BF16
  const bf16* indexer_k_norm = nullptr;   // [index_head_dim]
  // index sources only.
  Matrix indexer_wq_b;          // [index_n_heads*index_head_dim, q_lora] FP8
  Matrix indexer_weights_proj;  // [index_n_heads, D] BF16

  Matrix gate;                          // [experts, D] BF16
  const float* gate_bias = nullptr;     // [experts]
  const float* gate_bias_vl = nullptr;  // [experts]
  std::vector<ExpertWeights> experts;
  ExpertWeights shared_experts;  // FP8

  EngramWeights engram;  // engram layers only
};

struct ModelWeights {
  Matrix embed;                // [V, D] BF16
  Matrix head;                 // [V, D] BF16
  const bf16* norm = nullptr;  // [D]
  const bf16* image_start = nullptr;
  const bf16* image_end = nullptr;
  const bf16* image_newline = nullptr;
  std::vector<BlockWeights> layers;

  std::vector<BlockWeights> mtp;    // draft blocks
  Matrix main_proj;                 // [D, D*targets] FP8
  const bf16* main_norm = nullptr;  // [D]
  const bf16* mtp_norm = nullptr;   // [D]
  Matrix markov_embed;              // [V, rank] BF16
  Matrix markov_head;               // [V, rank] BF16
  Matrix confidence_proj;           // [1, D + rank] BF16
};

// A text layer, or number of text layers + a draft block.
inline const BlockWeights& BlockOf(const ModelWeights& weights, int32_t block) {
  const auto at = static_cast<size_t>(block);
  return at < weights.layers.size() ? weights.layers[at] : weights.mtp[at - weights.layers.size()];
}

class TensorTable;

// Points every weight into the table's tensors. Requires: the table holds all of
// ExpectedTensors(config).
ModelWeights BindWeights(const ModelConfig& config, const TensorTable& tensors);
// The same without data: formats and sizes only.
ModelWeights WeightShapes(const ModelConfig& config);

}  // namespace deepinfer
