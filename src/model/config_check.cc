#include "model/config_check.h"

#include "kernels/kv_layout.h"
#include "model/engram_hash.h"

namespace deepinfer {
namespace {

// FP8 weights have a scale per 32x32, activations per 32: every quantised dimension is cut in 32s.
constexpr int64_t kQuantBlock = 32;

Status CheckMultiple(std::string_view name, int64_t value) {
  const int64_t below = value / kQuantBlock * kQuantBlock;
  if (value == below) return OkStatus();
  return InvalidArgument(name, " ", value, ": not a multiple of ", kQuantBlock,
                         "; the nearest are ", std::max(below, kQuantBlock), " and ",
                         below + kQuantBlock);
}

Status CheckSortedLayers(std::string_view name, const std::vector<int32_t>& layers,
                         int32_t num_layers) {
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i] >= num_layers) {
      return InvalidArgument(name, ": layer ", layers[i], " does not exist, num_hidden_layers is ",
                             num_layers);
    }
    if (i > 0 && layers[i] <= layers[i - 1]) {
      return InvalidArgument(name, " [", Join(layers, ", "), "]: must be ascending");
    }
  }
  return OkStatus();
}

Status CheckWidths(const ModelConfig& c) {
  DI_RETURN_IF_ERROR(CheckMultiple("hidden_size", c.hidden_size));
  DI_RETURN_IF_ERROR(CheckMultiple("moe_intermediate_size", c.moe_intermediate_size));
  DI_RETURN_IF_ERROR(CheckMultiple("head_dim", c.head_dim));
  DI_RETURN_IF_ERROR(CheckMultiple("q_lora_rank", c.q_lora_rank));
  DI_RETURN_IF_ERROR(CheckMultiple("o_lora_rank", c.o_lora_rank));
  DI_RETURN_IF_ERROR(CheckMultiple("index_head_dim", c.index_head_dim));
  DI_RETURN_IF_ERROR(CheckMultiple("engram_head_dim", c.engram_head_dim));
  if (c.num_attention_heads % c.o_groups != 0) {
    return InvalidArgument("o_groups ", c.o_groups, ": must divide num_attention_heads ",
                           c.num_attention_heads);
  }
  if (c.qk_rope_head_dim % 2 != 0) {
    return InvalidArgument("qk_rope_head_dim ", c.qk_rope_head_dim, ": must be even");
  }
  if (c.qk_rope_head_dim > std::min(c.head_dim, c.index_head_dim)) {
    return InvalidArgument("qk_rope_head_dim ", c.qk_rope_head_dim, ": larger than head_dim ",
                           c.head_dim, " or index_head_dim ", c.index_head_dim);
  }
  const int64_t widest = std::max<int64_t>(int64_t{c.num_attention_heads} * c.head_dim,
                                           int64_t{c.index_n_heads} * c.index_head_dim);
  if (widest > INT32_MAX || int64_t{c.o_groups} * c.o_lora_rank > INT32_MAX ||
      (int64_t{c.hc_mult} + 1) * c.hidden_size > INT32_MAX ||
      int64_t{c.EngramColumns()} * c.engram_head_dim > INT32_MAX) {
    return InvalidArgument(
        "heads x head width, groups x o_lora_rank, (hc_mult + 1) x hidden_size or engram "
        "columns x width: above 2^31 - 1");
  }
  return OkStatus();
}

Status CheckRope(const ModelConfig& c) {
  if (c.yarn.beta_fast <= c.yarn.beta_slow) {
    return InvalidArgument("rope: beta_fast ", c.yarn.beta_fast, " must be larger than beta_slow ",
                           c.yarn.beta_slow);
  }
  if (c.rope_theta <= 1 || c.compress_rope_theta <= 1) {
    return InvalidArgument("rope_theta ", c.rope_theta, " and compress_rope_theta ",
                           c.compress_rope_theta, ": must be larger than 1");
  }
  return OkStatus();
}

Status CheckExperts(const ModelConfig& c) {
  if (c.num_experts_per_tok > c.n_routed_experts) {
    return InvalidArgument("num_experts_per_tok ", c.num_experts_per_tok,
                           ": more than n_routed_experts ", c.n_routed_experts);
  }
  if (c.dspark_num_experts_per_tok > c.dspark_n_routed_experts) {
    return InvalidArgument("dspark_num_experts_per_tok ", c.dspark_num_experts_per_tok,
                           ": more than dspark_n_routed_experts ", c.dspark_n_routed_experts);
  }
  return OkStatus();
}

// A layer with a ratio reads the global KV of the source at or below it through the selection of an
// index source at or above that source; the decoder half (from the last source on) has ratio 1
// throughout.
Status CheckLayerSources(const ModelConfig& c, int32_t layer) {
  const int32_t ratio = c.ratio(layer);
  if (layer >= c.FirstDecoderLayer() && ratio != 1) {
    return InvalidArgument("compress_ratios[", layer, "] ", ratio,
                           ": layers from the last KV source (", c.FirstDecoderLayer(),
                           ") on must have ratio 1");
  }
  if (ratio == 0) {
    if (!c.IsKvSource(layer) && !c.IsIndexSource(layer)) return OkStatus();
    return InvalidArgument("compress_ratios[", layer, "] 0: the layer is a KV or index source");
  }
  if (layer < c.kv_source_layer_ids.front()) {
    return InvalidArgument("compress_ratios[", layer, "] ", ratio,
                           ": no KV source at or below the layer");
  }
  const int32_t source = c.KvSource(layer);
  if (c.ratio(source) != ratio) {
    return InvalidArgument("compress_ratios[", layer, "] ", ratio, ": its KV source ", source,
                           " has ratio ", c.ratio(source));
  }
  if (c.IsKvSource(layer) && !c.IsIndexSource(layer)) {
    return InvalidArgument("index_source_layer_ids [", Join(c.index_source_layer_ids, ", "),
                           "]: KV source ", layer,
                           " is missing, a selection of older entries would be used");
  }
  return OkStatus();
}

Status CheckLayers(const ModelConfig& c) {
  const int32_t num_layers = c.num_hidden_layers;
  const size_t num_blocks = static_cast<size_t>(num_layers + c.num_nextn_predict_layers);
  if (c.compress_ratios.size() != num_blocks) {
    return InvalidArgument("compress_ratios: ", c.compress_ratios.size(), " entries, ", num_blocks,
                           " expected (num_hidden_layers + num_nextn_predict_layers)");
  }
  if (c.kv_source_layer_ids.empty()) return InvalidArgument("kv_source_layer_ids: empty");
  DI_RETURN_IF_ERROR(CheckSortedLayers("kv_source_layer_ids", c.kv_source_layer_ids, num_layers));
  DI_RETURN_IF_ERROR(
      CheckSortedLayers("index_source_layer_ids", c.index_source_layer_ids, num_layers));
  for (int32_t layer = 0; layer < num_layers; ++layer) {
    DI_RETURN_IF_ERROR(CheckLayerSources(c, layer));
  }
  for (size_t block = static_cast<size_t>(num_layers); block < num_blocks; ++block) {
    if (c.compress_ratios[block] != 0) {
      return InvalidArgument("compress_ratios[", block, "] ", c.compress_ratios[block],
                             ": draft blocks must have 0");
    }
  }
  return OkStatus();
}

Status CheckCandidates(const ModelConfig& c) {
  if (!c.candidate_source_layer_id) return OkStatus();
  const int32_t layer = *c.candidate_source_layer_id;
  if (!c.IsIndexSource(layer) || layer < c.FirstDecoderLayer()) {
    return InvalidArgument("candidate_source_layer_id ", layer,
                           ": must be an index source at or above the last KV source ",
                           c.FirstDecoderLayer());
  }
  // All blocks but the newest are full, so this many visible candidates exist whenever the filter
  // works.
  const int64_t least =
      int64_t{c.candidate_topk_blocks} * c.candidate_block_size - (c.candidate_block_size - 1);
  if (least < c.index_topk) {
    return InvalidArgument("candidate_topk_blocks ", c.candidate_topk_blocks,
                           " x candidate_block_size ", c.candidate_block_size, ": only ", least,
                           " candidates are certain, index_topk wants ", c.index_topk);
  }
  return OkStatus();
}

// The tables hold one row for every remainder of every prime, and the primes follow from the
// configuration.
Status CheckEngramRows(const ModelConfig& c) {
  if (c.engram_layer_ids.empty()) return OkStatus();
  const int64_t columns = c.EngramColumns();
  const int64_t tables = std::ssize(c.engram_layer_ids);
  if (columns < 1 || c.engram_vocab_size > INT32_MAX / (columns * tables)) {
    return InvalidArgument("engram_vocab_size ", c.engram_vocab_size, " x ", columns, " columns x ",
                           tables, " tables: row ids above 2^31 - 1");
  }
  const EngramHash hash(c, /*pad_class=*/0);
  for (int32_t table = 0; table < tables; ++table) {
    const int64_t stated = c.engram_num_embeddings[static_cast<size_t>(table)];
    if (stated != hash.num_rows(table)) {
      return InvalidArgument("engram_num_embeddings[", table, "] ", stated, ": the sum of ",
                             columns, " primes from engram_vocab_size ", c.engram_vocab_size,
                             " on is ", hash.num_rows(table));
    }
  }
  return OkStatus();
}

Status CheckEngram(const ModelConfig& c) {
  if (c.engram_num_embeddings.size() != c.engram_layer_ids.size()) {
    return InvalidArgument("engram_num_embeddings: ", c.engram_num_embeddings.size(),
                           " entries for ", c.engram_layer_ids.size(), " engram_layer_ids");
  }
  DI_RETURN_IF_ERROR(
      CheckSortedLayers("engram_layer_ids", c.engram_layer_ids, c.num_hidden_layers));
  if (!c.engram_layer_ids.empty() && c.engram_layer_ids.back() >= c.FirstDecoderLayer()) {
    return InvalidArgument("engram_layer_ids: layer ", c.engram_layer_ids.back(),
                           " lies in the decoder half, which starts at the last KV source ",
                           c.FirstDecoderLayer());
  }
  if (c.engram_compressed_vocab_size > c.vocab_size) {
    return InvalidArgument("engram_compressed_vocab_size ", c.engram_compressed_vocab_size,
                           ": more than vocab_size ", c.vocab_size);
  }
  return CheckEngramRows(c);
}

Status CheckTokenIds(const ModelConfig& c) {
  const std::pair<std::string_view, int32_t> ids[] = {
      {"bos_token_id", c.bos_token_id},
      {"eos_token_id", c.eos_token_id},
      {"pad_token_id", c.pad_token_id},
      {"image_token_id", c.image_token_id},
      {"engram_pad_token_id", c.engram_pad_token_id},
      {"dspark_noise_token_id", c.dspark_noise_token_id}};
  for (const auto& [name, id] : ids) {
    if (id >= c.vocab_size) {
      return InvalidArgument(name, " ", id, ": not below vocab_size ", c.vocab_size);
    }
  }
  return OkStatus();
}

Status CheckDraft(const ModelConfig& c) {
  if (c.num_nextn_predict_layers == 0) return OkStatus();
  if (c.dspark_target_layer_ids.empty()) return InvalidArgument("dspark_target_layer_ids: empty");
  const size_t temperatures = c.dspark_confidence_temperatures.size();
  if (temperatures != 0 && temperatures != static_cast<size_t>(c.dspark_block_size)) {
    return InvalidArgument("dspark_confidence_temperatures: ", temperatures,
                           " entries, expected dspark_block_size ", c.dspark_block_size);
  }
  return CheckSortedLayers("dspark_target_layer_ids", c.dspark_target_layer_ids,
                           c.num_hidden_layers);
}

// The list of all tensors is kept in memory, and places inside a KV page are 32-bit.
Status CheckTotals(const ModelConfig& c) {
  constexpr int64_t kMaxExperts = 1 << 18;  // DeepSeek-V4.1-Flash has 17 thousand
  const int64_t blocks = int64_t{c.num_hidden_layers} + c.num_nextn_predict_layers;
  const int64_t experts = blocks * std::max(c.n_routed_experts, c.dspark_n_routed_experts);
  if (experts > kMaxExperts) {
    return InvalidArgument("n_routed_experts: ", experts, " experts in ", blocks,
                           " layers, at most ", kMaxExperts, " are supported");
  }
  const int64_t page_rows = std::ssize(c.kv_source_layer_ids) * kTokensPerPage;
  if (page_rows * (int64_t{c.head_dim} + c.index_head_dim) > INT32_MAX) {
    return InvalidArgument("head_dim ", c.head_dim, " and index_head_dim ", c.index_head_dim,
                           " over ", c.kv_source_layer_ids.size(),
                           " kv_source_layer_ids: a KV page may take 2^31 - 1 bytes at most");
  }
  return OkStatus();
}

Status CheckVision(const VisionConfig& v) {
  if (v.hidden_size % v.num_attention_heads != 0 ||
      v.hidden_size / v.num_attention_heads % 4 != 0) {
    return InvalidArgument(
        "vision_config: hidden_size ", v.hidden_size, " over ", v.num_attention_heads,
        " heads: the head width must be whole and a multiple of 4 (2-D rotation)");
  }
  return OkStatus();
}

}  // namespace

Status CheckModelConfig(const ModelConfig& config) {
  DI_RETURN_IF_ERROR(CheckWidths(config));
  DI_RETURN_IF_ERROR(CheckRope(config));
  DI_RETURN_IF_ERROR(CheckExperts(config));
  DI_RETURN_IF_ERROR(CheckLayers(config));
  DI_RETURN_IF_ERROR(CheckTotals(config));
  DI_RETURN_IF_ERROR(CheckCandidates(config));
  DI_RETURN_IF_ERROR(CheckEngram(config));
  DI_RETURN_IF_ERROR(CheckTokenIds(config));
  DI_RETURN_IF_ERROR(CheckDraft(config));
  return config.has_vision ? CheckVision(config.vision) : OkStatus();
}

}  // namespace deepinfer
