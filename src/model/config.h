// model/config.h: the model's shape, read once from config.json. Every dimension in the code comes
// from here.
//
// Names are the checkpoint's own where C++ allows. Source: config.json of DeepSeek-V4.1-Flash.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace deepinfer {

struct YarnScaling {
  double factor = 1;
  double beta_fast = 32;
  double beta_slow = 1;
  int64_t original_max_position_embeddings = 0;
};

struct VisionConfig {
  int32_t num_hidden_layers = 0;
  int32_t hidden_size = 0;
  int32_t num_attention_heads = 0;
  int32_t intermediate_size = 0;
  int32_t patch_size = 0;
  double rope_theta = 10000;
  int32_t downsample_ratio = 0;
  int32_t max_image_tokens = 0;
  int64_t min_pixels = 0;
  std::optional<double> max_wh_ratio;
};

struct ModelConfig {
  // Top level.
  int32_t bos_token_id = 0;
  int32_t eos_token_id = 0;
  int32_t pad_token_id = 0;
  int32_t image_token_id = 0;

  // text_config.
  int32_t vocab_size = 0;
  int32_t hidden_size = 0;            // D
  int32_t moe_intermediate_size = 0;  // inner size of every expert
  int32_t num_hidden_layers = 0;      // text layers, without draft blocks
  int32_t num_attention_heads = 0;    // H
  int32_t head_dim = 0;               // width of a query head and of a KV row
  int32_t qk_rope_head_dim = 0;  // the last dims of head_dim (and of index_head_dim) are rotated
  int32_t q_lora_rank = 0;
  int32_t o_lora_rank = 0;  // per group
  int32_t o_groups = 0;
  double swiglu_limit = 0;  // 0 = no clamp
  double rms_norm_eps = 0;
  int64_t max_position_embeddings = 0;
  double rope_theta = 0;           // layers with ratio 0, draft blocks
  double compress_rope_theta = 0;  // layers with ratio > 0, with yarn
  YarnScaling yarn;
  int32_t n_routed_experts = 0;
  int32_t n_shared_experts = 0;  // 1
  int32_t num_experts_per_tok = 0;
  bool norm_topk_prob = true;
  double routed_scaling_factor = 1;
  int32_t sliding_window = 0;            // W, the current token included
  std::vector<int32_t> compress_ratios;  // [num_hidden_layers + num_nextn_predict_layers]
  std::vector<int32_t> kv_source_layer_ids;
  std::vector<int32_t> index_source_layer_ids;
  int32_t index_n_heads = 0;
  int32_t index_head_dim = 0;
  int32_t index_topk = 0;
  std::optional<int32_t> candidate_source_layer_id;
  int32_t candidate_topk_blocks = 0;
  int32_t candidate_block_size = 0;
  int32_t hc_mult = 0;
  int32_t hc_sinkhorn_iters = 0;
  double hc_eps = 0;
  std::vector<int32_t> engram_layer_ids;
  std::vector<int64_t> engram_num_embeddings;  // rows, one entry a table
  int32_t engram_max_ngram_size = 0;
  int64_t engram_vocab_size = 0;  // where the search for primes starts
  int32_t engram_n_heads = 0;     // hash heads per n-gram size
  int32_t engram_head_dim = 0;
  int32_t engram_pad_token_id = 0;
  int32_t engram_compressed_vocab_size = 0;
  int32_t num_nextn_predict_layers = 0;  // draft blocks
  int32_t dspark_block_size = 0;         // drafted tokens per round, g
  int32_t dspark_noise_token_id = 0;
  std::vector<int32_t> dspark_target_layer_ids;
  int32_t dspark_markov_rank = 0;
  int32_t dspark_n_routed_experts = 0;
  int32_t dspark_num_experts_per_tok = 0;
  // [g] what the confidence logit of each drafted token is divided by, or empty: 1.
  std::vector<double> dspark_confidence_temperatures;

  // False: a text-only checkpoint. It has no vision_config, no vision tensors and no image rows.
  bool has_vision = true;
  VisionConfig vision;  // read only if has_vision

  // The largest kv source <= layer: whose global KV the layer reads. Requires: ratio(layer) > 0.
  int32_t KvSource(int32_t layer) const;
  // The largest index source <= layer: whose selection the layer uses. Requires: ratio(layer) > 0.
  int32_t IndexSource(int32_t layer) const;
  bool IsKvSource(int32_t layer) const;
  bool IsIndexSource(int32_t layer) const;
  int32_t ratio(int32_t layer) const { return compress_ratios[static_cast<size_t>(layer)]; }
  // Index into engram_layer_ids, or -1.
  int32_t EngramIndex(int32_t layer) const;
  // First layer of the decoder half: the last kv source. Layers below run for every prompt token.
  int32_t FirstDecoderLayer() const { return kv_source_layer_ids.back(); }
  // Columns of an engram row set: (max n-gram size - 1) x heads.
  int32_t EngramColumns() const { return (engram_max_ngram_size - 1) * engram_n_heads; }
};

// Reads config.json's text. `where` names the file in messages.
// Errors: kInvalidArgument naming the key, what was expected and what was found; another model's
// config (deepseek_v4, ...) gets one line that says what is supported. Unknown text_config keys are
// errors when `strict`, else one warning line.
StatusOr<ModelConfig> ParseModelConfig(std::string_view json, std::string_view where,
                                       bool strict = true);

}  // namespace deepinfer
