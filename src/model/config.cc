#include "model/config.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "kernels/hyper_connection/max_streams.h"
#include "model/config_check.h"
#include "model/json_object.h"

namespace deepinfer {
namespace {

using nlohmann::json;

constexpr std::string_view kSupported = "supported: model_type deepseek_v41 (DeepSeek-V4.1-Flash)";
// Of any matrix side but the vocabulary. All bytes of a model then fit into 64 bits.
constexpr int64_t kMaxWidth = 1 << 18;
constexpr int64_t kMaxLayers = 1024;
constexpr int64_t kMaxTokens = 1 << 24;  // vocabulary rows
constexpr double kMaxNumber = 1e12;
constexpr int64_t kMaxCount = int64_t{1} << 40;

// "config.json" alone or the path as given, then the reason and what would work.
Status Refuse(std::string_view where, std::string_view reason) {
  return InvalidArgument(where, ": ", reason, "; ", kSupported);
}

Status CheckModelType(const json& root, std::string_view where) {
  if (!root.is_object()) return Refuse(where, "not a JSON object, so not a model configuration");
  if (root.contains("peft_type")) return Refuse(where, "a LoRA adapter, not a whole model");
  const auto type = root.find("model_type");
  if (type == root.end() && root.contains("dim") && root.contains("n_layers")) {
    return Refuse(where,
                  "the flat inference/config.json; give the directory of the nested config.json");
  }
  if (type == root.end() || !type->is_string()) return Refuse(where, "no model_type");
  const std::string name = type->get<std::string>();
  if (name == "deepseek_v4") {
    return Refuse(where, "model_type deepseek_v4: DeepSeek-V4 is another architecture");
  }
  if (name != "deepseek_v41") return Refuse(where, StrCat("model_type ", name));
  return OkStatus();
}

void ReadQuantization(JsonObject& root, std::string_view where, bool strict, Status* status) {
  if (!root.ok()) return;
  if (!root.Has("quantization_config")) {
    *status = Refuse(where,
                     "no quantization_config: an unquantised or base checkpoint; weights must be "
                     "FP8 in 32x32 blocks with FP4 experts");
    return;
  }
  std::optional<JsonObject> quant = root.Child("quantization_config");
  if (!quant) return;
  quant->Expect("quant_method", "fp8");
  quant->Expect("activation_scheme", "dynamic");
  quant->Expect("weight_block_size", json::array({32, 32}));
  quant->Expect("scale_fmt", "ue8m0");
  if (quant->ok() && quant->Has("expert_dtype") && quant->Show("expert_dtype") != "\"fp4\"") {
    *status = Refuse(where, StrCat("quantization_config.expert_dtype ", quant->Show("expert_dtype"),
                                   " (base models keep FP8 experts); experts must be fp4"));
    return;
  }
  quant->Expect("expert_dtype", "fp4");
  quant->Finish(strict);
}

void ReadYarn(JsonObject& rope, YarnScaling* yarn) {
  // "type" is the older name of "rope_type"; both may stand together.
  if (rope.Contains("type")) rope.Expect("type", "yarn");
  if (rope.Contains("rope_type") || !rope.Contains("type")) rope.Expect("rope_type", "yarn");
  rope.Read("factor", &yarn->factor, 1, 1e6);
  rope.Read("beta_fast", &yarn->beta_fast, 1e-6, 1e6);
  rope.Read("beta_slow", &yarn->beta_slow, 1e-6, 1e6);
  rope.Read("original_max_position_embeddings", &yarn->original_max_position_embeddings, 1,
            kMaxCount);
}

void ExpectRotaryShare(JsonObject& rope, const ModelConfig& config) {
  // A newer spelling of qk_rope_head_dim that may ride along.
  rope.ExpectIfPresent("partial_rotary_factor",
                       static_cast<double>(config.qk_rope_head_dim) / std::max(config.head_dim, 1));
}

// Three spellings of the same six numbers:
//   rope_theta, rope_scaling {yarn...}, compress_rope_theta
//   rope_parameters {rope_theta, yarn...}, compress_rope_theta
//   rope_parameters {main {rope_theta}, compress {rope_theta, yarn...}}
void ReadRope(JsonObject& text, ModelConfig* config, bool strict) {
  if (!text.ok()) return;
  const auto theta = [](JsonObject& from, std::string_view key, double* out) {
    from.Read(key, out, 1, kMaxNumber);
  };
  if (!text.Has("rope_parameters")) {
    theta(text, "rope_theta", &config->rope_theta);
    theta(text, "compress_rope_theta", &config->compress_rope_theta);
    if (std::optional<JsonObject> scaling = text.Child("rope_scaling")) {
      ReadYarn(*scaling, &config->yarn);
      scaling->Finish(strict);
    }
    return;
  }
  std::optional<JsonObject> rope = text.Child("rope_parameters");
  if (!rope) return;
  if (!rope->Has("main")) {
    theta(*rope, "rope_theta", &config->rope_theta);
    ReadYarn(*rope, &config->yarn);
    ExpectRotaryShare(*rope, *config);
    theta(text, "compress_rope_theta", &config->compress_rope_theta);
  } else {
    std::optional<JsonObject> main = rope->Child("main");
    std::optional<JsonObject> compress = rope->Child("compress");
    if (!main || !compress) return;
    main->ExpectIfPresent("rope_type", "default");
    theta(*main, "rope_theta", &config->rope_theta);
    ExpectRotaryShare(*main, *config);
    main->Finish(strict);
    theta(*compress, "rope_theta", &config->compress_rope_theta);
    ReadYarn(*compress, &config->yarn);
    ExpectRotaryShare(*compress, *config);
    compress->Finish(strict);
  }
  rope->Finish(strict);
  // Left beside the new spelling, the old keys must agree with it.
  if (text.Has("rope_theta")) text.Expect("rope_theta", config->rope_theta);
  if (text.Has("compress_rope_theta"))
    text.Expect("compress_rope_theta", config->compress_rope_theta);
  text.ExpectIfPresent("rope_scaling", nullptr);
}

void ReadAttention(JsonObject& text, ModelConfig* c) {
  text.Read("num_attention_heads", &c->num_attention_heads, 1, 4096);
  text.Expect("num_key_value_heads", 1);
  text.Read("head_dim", &c->head_dim, 1, 65536);
  text.Read("qk_rope_head_dim", &c->qk_rope_head_dim, 1, 65536);
  text.Read("q_lora_rank", &c->q_lora_rank, 1, kMaxWidth);
  text.Read("o_lora_rank", &c->o_lora_rank, 1, kMaxWidth);
  text.Read("o_groups", &c->o_groups, 1, 4096);
  text.Expect("attention_bias", false);
  text.Expect("attention_dropout", 0.0);
  text.Read("sliding_window", &c->sliding_window, 1, 1 << 20);
  if (text.ok() && text.Contains("compress_rates")) {
    text.Fail("compress_rates", "compress_ratios, one entry a layer (V4.1)",
              "DeepSeek-V4's compress_rates, whose layers are compressed in another way");
  }
  text.Read("compress_ratios", &c->compress_ratios, 0, 2);
  text.Read("kv_source_layer_ids", &c->kv_source_layer_ids, 0, kMaxLayers);
  text.Read("index_source_layer_ids", &c->index_source_layer_ids, 0, kMaxLayers);
  text.ExpectIfPresent("index_k_source_layer_ids", c->kv_source_layer_ids);
  text.ExpectIfPresent("use_fp4_sparse_kv", true);
  text.Read("index_n_heads", &c->index_n_heads, 1, 4096);
  text.Read("index_head_dim", &c->index_head_dim, 1, 65536);
  text.Read("index_topk", &c->index_topk, 1, 1 << 20);
  text.Ignore({"candidate_source_layer_id"});
  if (text.Has("candidate_source_layer_id")) {
    int32_t layer = 0;
    text.Read("candidate_source_layer_id", &layer, 0, kMaxLayers);
    c->candidate_source_layer_id = layer;
  }
  text.Read("candidate_topk_blocks", &c->candidate_topk_blocks, 1, 1 << 24);
  text.Read("candidate_block_size", &c->candidate_block_size, 1, 1 << 16);
}

void ReadExperts(JsonObject& text, ModelConfig* c) {
  text.Read("moe_intermediate_size", &c->moe_intermediate_size, 1, kMaxWidth);
  text.Expect("hidden_act", "silu");
  text.Read("swiglu_limit", &c->swiglu_limit, 0, kMaxNumber);
  text.Read("n_routed_experts", &c->n_routed_experts, 1, 65536);
  text.Expect("n_shared_experts", 1);
  c->n_shared_experts = 1;
  text.Read("num_experts_per_tok", &c->num_experts_per_tok, 1, 65536);
  text.Expect("scoring_func", "sqrtsoftplus");
  text.Expect("topk_method", "noaux_tc");
  text.Read("norm_topk_prob", &c->norm_topk_prob);
  text.Read("routed_scaling_factor", &c->routed_scaling_factor, 0, kMaxNumber);
}

void ReadEngram(JsonObject& text, ModelConfig* c) {
  text.Read("engram_layer_ids", &c->engram_layer_ids, 0, kMaxLayers);
  text.Read("engram_num_embeddings", &c->engram_num_embeddings, 1, int64_t{1} << 36);
  text.Read("engram_max_ngram_size", &c->engram_max_ngram_size, 2, 8);
  text.Read("engram_vocab_size", &c->engram_vocab_size, 2, int64_t{1} << 32);
  text.Read("engram_n_heads", &c->engram_n_heads, 1, 1024);
  text.Read("engram_head_dim", &c->engram_head_dim, 1, 65536);
  text.Read("engram_pad_token_id", &c->engram_pad_token_id, 0, kMaxTokens);
  text.Read("engram_compressed_vocab_size", &c->engram_compressed_vocab_size, 1, kMaxTokens);
}

void ReadDraft(JsonObject& text, ModelConfig* c) {
  text.Read("num_nextn_predict_layers", &c->num_nextn_predict_layers, 0, 64);
  text.Read("dspark_block_size", &c->dspark_block_size, 1, 64);
  text.Read("dspark_noise_token_id", &c->dspark_noise_token_id, 0, kMaxTokens);
  text.Read("dspark_target_layer_ids", &c->dspark_target_layer_ids, 0, kMaxLayers);
  text.Read("dspark_markov_rank", &c->dspark_markov_rank, 1, kMaxWidth);
  text.Read("dspark_n_routed_experts", &c->dspark_n_routed_experts, 1, 65536);
  text.Read("dspark_num_experts_per_tok", &c->dspark_num_experts_per_tok, 1, 65536);
  text.ExpectIfPresent("dspark_target_attn_input", true);
  if (text.Contains("dspark_confidence_temperatures")) {
    text.Read("dspark_confidence_temperatures", &c->dspark_confidence_temperatures, 1e-3, 1e3);
  }
}

void ReadText(JsonObject& text, ModelConfig* c, bool strict) {
  text.Expect("model_type", "deepseek_v41_text");
  text.Read("vocab_size", &c->vocab_size, 1, kMaxTokens);
  text.Read("hidden_size", &c->hidden_size, 1, kMaxWidth);
  text.Read("num_hidden_layers", &c->num_hidden_layers, 1, kMaxLayers);
  text.Read("rms_norm_eps", &c->rms_norm_eps, std::numeric_limits<float>::min(), 1);
  text.Read("max_position_embeddings", &c->max_position_embeddings, 1, INT32_MAX);
  text.Expect("tie_word_embeddings", false);
  text.Ignore({"initializer_range", "use_cache", "dtype", "torch_dtype"});
  ReadAttention(text, c);
  ReadRope(text, c, strict);
  ReadExperts(text, c);
  text.Read("hc_mult", &c->hc_mult, 1, kMaxHyperStreams);
  text.Read("hc_sinkhorn_iters", &c->hc_sinkhorn_iters, 1, 1000);
  text.Read("hc_eps", &c->hc_eps, 0, 1);
  text.ExpectIfPresent("hc_shifted", true);
  ReadEngram(text, c);
  ReadDraft(text, c);
  text.Finish(strict);
}

void ReadVision(JsonObject& vision, VisionConfig* v, bool strict) {
  vision.Expect("model_type", "deepseek_v41_vision");
  vision.Read("num_hidden_layers", &v->num_hidden_layers, 1, kMaxLayers);
  vision.Read("hidden_size", &v->hidden_size, 1, kMaxWidth);
  vision.Read("num_attention_heads", &v->num_attention_heads, 1, 4096);
  vision.Read("intermediate_size", &v->intermediate_size, 1, kMaxWidth);
  vision.Read("patch_size", &v->patch_size, 1, 1024);
  vision.Read("rope_theta", &v->rope_theta, 1, kMaxNumber);
  vision.Read("downsample_ratio", &v->downsample_ratio, 1, 64);
  vision.Read("max_image_tokens", &v->max_image_tokens, 4, 1 << 24);
  vision.Read("min_pixels", &v->min_pixels, 0, kMaxCount);
  vision.Ignore({"max_wh_ratio", "dtype", "torch_dtype"});
  if (vision.Has("max_wh_ratio")) {
    double ratio = 0;
    vision.Read("max_wh_ratio", &ratio, 1, kMaxNumber);
    v->max_wh_ratio = ratio;
  }
  vision.Finish(strict);
}

void ReadTopLevel(JsonObject& root, ModelConfig* c, std::string_view where, bool strict,
                  Status* status) {
  root.Expect("architectures", json::array({"DeepseekV41ForCausalLM"}));
  root.Expect("model_type", "deepseek_v41");
  if (root.Contains("torch_dtype")) root.Expect("torch_dtype", "bfloat16");
  if (root.Contains("dtype") || !root.Contains("torch_dtype")) root.Expect("dtype", "bfloat16");
  root.Ignore({"transformers_version", "_name_or_path", "auto_map"});
  root.ExpectIfPresent("tie_word_embeddings", false);
  root.ExpectIfPresent("tokenizer_compatibility", "release");
  root.Read("bos_token_id", &c->bos_token_id, 0, kMaxTokens);
  root.Read("eos_token_id", &c->eos_token_id, 0, kMaxTokens);
  root.Read("pad_token_id", &c->pad_token_id, 0, kMaxTokens);
  root.Read("image_token_id", &c->image_token_id, 0, kMaxTokens);
  ReadQuantization(root, where, strict, status);
  if (std::optional<JsonObject> text = root.Child("text_config")) ReadText(*text, c, strict);
  c->has_vision = root.Contains("vision_config");
  if (c->has_vision) {
    if (std::optional<JsonObject> vision = root.Child("vision_config")) {
      ReadVision(*vision, &c->vision, strict);
    }
  }
  root.Finish(strict);
}

int32_t LargestNotAbove(const std::vector<int32_t>& sorted, int32_t layer) {
  const auto above = std::upper_bound(sorted.begin(), sorted.end(), layer);
  CHECK(above != sorted.begin());
  return *(above - 1);
}

bool IsIn(const std::vector<int32_t>& sorted, int32_t layer) {
  return std::binary_search(sorted.begin(), sorted.end(), layer);
}

}  // namespace

int32_t ModelConfig::KvSource(int32_t layer) const {
  return LargestNotAbove(kv_source_layer_ids, layer);
}
int32_t ModelConfig::IndexSource(int32_t layer) const {
  return LargestNotAbove(index_source_layer_ids, layer);
}
bool ModelConfig::IsKvSource(int32_t layer) const { return IsIn(kv_source_layer_ids, layer); }
bool ModelConfig::IsIndexSource(int32_t layer) const { return IsIn(index_source_layer_ids, layer); }

int32_t ModelConfig::EngramIndex(int32_t layer) const {
  const auto at = std::find(engram_layer_ids.begin(), engram_layer_ids.end(), layer);
  return at == engram_layer_ids.end() ? -1 : static_cast<int32_t>(at - engram_layer_ids.begin());
}

StatusOr<ModelConfig> ParseModelConfig(std::string_view text, std::string_view where, bool strict) {
  json root;
  DI_RETURN_IF_ERROR(ParseJsonText(text, where, &root));
  DI_RETURN_IF_ERROR(CheckModelType(root, where));
  ModelConfig config;
  Status status;
  JsonObject object(root, where, &status);
  ReadTopLevel(object, &config, where, strict, &status);
  DI_RETURN_IF_ERROR(status);
  DI_RETURN_IF_ERROR(Annotate(CheckModelConfig(config), where));
  return config;
}

}  // namespace deepinfer
