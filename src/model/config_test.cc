#include "model/config.h"

#include <gtest/gtest.h>

#include "base/disk.h"
#include "model/config_check.h"
#include "model/testing/tiny_checkpoint.h"

namespace deepinfer {
namespace {

std::string ReadSource(const std::string& path) {
  return RealDisk().ReadText(StrCat(DI_SOURCE_DIR, "/", path)).value();
}
std::string RealConfig() { return ReadSource("src/model/testdata/deepseek_v41_flash_config.json"); }
std::string TinyConfig() { return ReadSource("tools/tiny/tiny.json"); }

// The message of the refusal after one replacement in the tiny configuration; empty when accepted.
std::string RefusalOf(std::string_view from, std::string_view to, bool strict = true) {
  return MessageOf(
      ParseModelConfig(Replaced(TinyConfig(), from, to), "config.json", strict).status());
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(ModelConfig, ReadsTheRealConfiguration) {
  const StatusOr<ModelConfig> config = ParseModelConfig(RealConfig(), "config.json");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->num_hidden_layers, 40);
  EXPECT_EQ(config->rms_norm_eps, 1e-20);
  EXPECT_EQ(config->yarn.factor, 16);
  EXPECT_EQ(config->yarn.original_max_position_embeddings, 65536);
  EXPECT_EQ(config->engram_num_embeddings, (std::vector<int64_t>{384006168, 384016682}));
  EXPECT_EQ(config->vision.min_pixels, 544 * 544);
  EXPECT_FALSE(config->vision.max_wh_ratio.has_value());
  EXPECT_EQ(config->FirstDecoderLayer(), 20);
  EXPECT_EQ(config->EngramColumns(), 24);
  EXPECT_EQ(config->KvSource(19), 14);
  EXPECT_EQ(config->KvSource(39), 20);
  EXPECT_EQ(config->IndexSource(27), 24);
  EXPECT_EQ(config->EngramIndex(14), 1);
  EXPECT_EQ(config->EngramIndex(2), -1);
}

TEST(ModelConfig, ReadsTheTestConfigurations) {
  for (const char* name : {"tiny", "stress_a", "stress_b"}) {
    EXPECT_TRUE(ParseModelConfig(ReadSource(StrCat("tools/tiny/", name, ".json")), name).ok())
        << name;
  }
}

constexpr std::string_view kOldTheta = "\"rope_theta\": 10000,\n  \"rope_scaling\": {";

TEST(ModelConfig, FlatRopeParametersMeanTheSame) {
  const std::string flat =
      Replaced(TinyConfig(), kOldTheta,
               "\"rope_parameters\": {\"rope_theta\": 10000, \"rope_type\": \"yarn\",");
  const StatusOr<ModelConfig> config = ParseModelConfig(flat, "config.json");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rope_theta, 10000);
  EXPECT_EQ(config->compress_rope_theta, 160000);
  EXPECT_EQ(config->yarn.original_max_position_embeddings, 256);
}

TEST(ModelConfig, NestedRopeParametersMeanTheSame) {
  std::string nested = Replaced(
      TinyConfig(), kOldTheta,
      "\"rope_parameters\": {\"main\": {\"rope_type\": \"default\", \"rope_theta\": 10000, "
      "\"partial_rotary_factor\": 0.25}, \"compress\": {\"rope_theta\": 160000,");
  nested = Replaced(nested, "\"original_max_position_embeddings\": 256\n  },",
                    "\"original_max_position_embeddings\": 256}},");
  nested = Replaced(nested, "\"compress_rope_theta\": 160000,", "");
  const StatusOr<ModelConfig> config = ParseModelConfig(nested, "config.json");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rope_theta, 10000);
  EXPECT_EQ(config->compress_rope_theta, 160000);
  EXPECT_EQ(config->yarn.factor, 16);
}

TEST(ModelConfig, BothRopeSpellingsMustAgree) {
  const std::string both = Replaced(TinyConfig(), kOldTheta,
                                    "\"rope_theta\": 20000, \"rope_parameters\": {\"rope_theta\": "
                                    "10000, \"rope_type\": \"yarn\",");
  EXPECT_HAS(MessageOf(ParseModelConfig(both, "config.json").status()),
             "text_config.rope_theta: expected 10000");
}

TEST(ModelConfig, OptionalKeysHaveTheirKnownValues) {
  const std::string_view anchor = "\"hidden_act\"";
  const auto with = [&](std::string_view key) {
    return RefusalOf(anchor, StrCat(key, ", ", anchor));
  };
  EXPECT_EQ(with("\"index_k_source_layer_ids\": [2, 4]"), "");
  EXPECT_EQ(with("\"use_fp4_sparse_kv\": true, \"hc_shifted\": true"), "");
  EXPECT_EQ(with("\"dspark_target_attn_input\": true"), "");
  EXPECT_EQ(with("\"dspark_confidence_temperatures\": [1, 1, 1.25, 1, 2]"), "");
  EXPECT_HAS(with("\"dspark_confidence_temperatures\": [1, 1]"),
             "2 entries, expected dspark_block");
  EXPECT_HAS(with("\"dspark_confidence_temperatures\": [0, 1, 1, 1, 1]"),
             "dspark_confidence_temperatures[0]: expected a number in [0.001");
  EXPECT_HAS(with("\"index_k_source_layer_ids\": [2]"), "index_k_source_layer_ids: expected [2,4]");
  EXPECT_HAS(with("\"use_fp4_sparse_kv\": false"), "use_fp4_sparse_kv: expected true");
  EXPECT_HAS(with("\"hc_shifted\": false"), "hc_shifted: expected true");
  EXPECT_HAS(with("\"dspark_target_attn_input\": false"),
             "dspark_target_attn_input: expected true");
  EXPECT_EQ(
      RefusalOf("\"model_type\": \"deepseek_v41\",",
                "\"model_type\": \"deepseek_v41\", \"tokenizer_compatibility\": \"release\","),
      "");
  EXPECT_HAS(
      RefusalOf("\"model_type\": \"deepseek_v41\",",
                "\"model_type\": \"deepseek_v41\", \"tokenizer_compatibility\": \"native\","),
      "tokenizer_compatibility: expected \"release\"");
  EXPECT_EQ(RefusalOf("\"candidate_source_layer_id\": 4", "\"candidate_source_layer_id\": null"),
            "");
}

TEST(ModelConfig, UnknownKeysAreErrorsOnlyWhenStrict) {
  const std::string_view from = "\"hidden_act\"", to = "\"n_group\": 8, \"hidden_act\"";
  EXPECT_HAS(RefusalOf(from, to), "config.json: text_config.n_group: unknown key");
  EXPECT_EQ(RefusalOf(from, to, false), "");
}

TEST(ModelConfig, FaultsNameTheKeyTheExpectedAndTheFound) {
  EXPECT_HAS(
      RefusalOf("\"hidden_size\": 128", "\"hidden_size\": \"big\""),
      "config.json: text_config.hidden_size: expected an integer in [1, 262144], found \"big\"");
  EXPECT_HAS(RefusalOf("\"index_topk\": 8,", ""), "text_config.index_topk: missing");
  EXPECT_HAS(RefusalOf("\"kv_source_layer_ids\": [\n   2,", "\"kv_source_layer_ids\": [\n   -2,"),
             "kv_source_layer_ids[0]: expected an integer in [0, 1024], found -2");
  EXPECT_HAS(RefusalOf("\"swiglu_limit\": 10.0", "\"swiglu_limit\": -1"),
             "swiglu_limit: expected a number in [0,");
  EXPECT_HAS(RefusalOf("\"scoring_func\": \"sqrtsoftplus\"", "\"scoring_func\": \"sigmoid\""),
             "expected \"sqrtsoftplus\" (the only value supported), found \"sigmoid\"");
  EXPECT_HAS(RefusalOf("\"vocab_size\": 512", "\"vocab_size\": 1e99"), "vocab_size: expected");
  EXPECT_HAS(RefusalOf("\"text_config\": {", "\"text_config\": {,"), "not JSON: broken at byte");
}

TEST(ModelConfig, WhatTheFileHoldsCannotBreakTheReader) {
  const auto vocab = [](const std::string& value) {
    return RefusalOf("\"vocab_size\": 512", StrCat("\"vocab_size\": ", value));
  };
  EXPECT_HAS(vocab("1e999"), "config.json: a number is too large for 64-bit floating point");
  const std::string deep(400'000, '[');
  EXPECT_HAS(vocab(deep + std::string(400'000, ']')), "config.json: nested deeper than 256 levels");
  EXPECT_HAS(vocab("\"" + deep + "\""), "vocab_size: expected");
  // Cut between characters.
  EXPECT_HAS(vocab("\"a\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\""),
             "found \"a\\u00e9\\u00e9");
}

TEST(ModelConfig, TotalsAreBounded) {
  EXPECT_HAS(RefusalOf("\"n_routed_experts\": 8", "\"n_routed_experts\": 65536"),
             "n_routed_experts: 720896 experts in 11 layers, at most 262144 are supported");
  ModelConfig config = ParseModelConfig(TinyConfig(), "config.json").value();
  config.head_dim = 65536;
  EXPECT_TRUE(CheckModelConfig(config).ok()) << CheckModelConfig(config);
  config.num_hidden_layers = 1000;
  config.compress_ratios.assign(1003, 1);
  config.kv_source_layer_ids.clear();
  for (int32_t layer = 0; layer < 1000; ++layer) config.kv_source_layer_ids.push_back(layer);
  config.index_source_layer_ids = config.kv_source_layer_ids;
  std::fill(config.compress_ratios.end() - 3, config.compress_ratios.end(), 0);
  EXPECT_HAS(MessageOf(CheckModelConfig(config)), "a KV page may take 2^31 - 1 bytes at most");
}

TEST(ModelConfig, WholeNumbersMayBeSpelledAsFractions) {
  EXPECT_EQ(RefusalOf("\"index_topk\": 8,", "\"index_topk\": 8.0,"), "");
  EXPECT_HAS(RefusalOf("\"index_topk\": 8,", "\"index_topk\": 8.5,"), "found 8.5");
}

// Odd sizes are refused with the nearest ones that work.
TEST(ModelConfig, case_R24_OddSizesNameWhatWorks) {
  EXPECT_HAS(RefusalOf("\"hidden_size\": 128", "\"hidden_size\": 100"),
             "config.json: hidden_size 100: not a multiple of 32; the nearest are 96 and 128");
  EXPECT_EQ(RefusalOf("\"hidden_size\": 128", "\"hidden_size\": 96"), "");
  EXPECT_HAS(RefusalOf("\"moe_intermediate_size\": 64", "\"moe_intermediate_size\": 31"),
             "the nearest are 32 and 32");
  EXPECT_HAS(RefusalOf("\"o_groups\": 2", "\"o_groups\": 3"), "must divide num_attention_heads 4");
  EXPECT_HAS(RefusalOf("\"qk_rope_head_dim\": 16", "\"qk_rope_head_dim\": 15"), "must be even");
  EXPECT_HAS(RefusalOf("\"qk_rope_head_dim\": 16", "\"qk_rope_head_dim\": 34"),
             "larger than head_dim 64 or index_head_dim 32");
  EXPECT_HAS(RefusalOf("\"candidate_topk_blocks\": 8", "\"candidate_topk_blocks\": 2"),
             "only 5 candidates are certain, index_topk wants 8");
  EXPECT_EQ(RefusalOf("\"candidate_topk_blocks\": 8", "\"candidate_topk_blocks\": 3"), "");
  EXPECT_EQ(RefusalOf("\"sliding_window\": 16", "\"sliding_window\": 1"), "");
}

TEST(ModelConfig, LayerRolesMustFitTogether) {
  EXPECT_HAS(
      RefusalOf("\"index_source_layer_ids\": [\n   2,", "\"index_source_layer_ids\": [\n   3,"),
      "KV source 2 is missing");
  EXPECT_HAS(RefusalOf("\"kv_source_layer_ids\": [\n   2,\n   4",
                       "\"kv_source_layer_ids\": [\n   4,\n   2"),
             "must be ascending");
  EXPECT_HAS(RefusalOf("\"kv_source_layer_ids\": [\n   2,\n   4",
                       "\"kv_source_layer_ids\": [\n   2,\n   9"),
             "layer 9 does not exist");
  EXPECT_HAS(RefusalOf("   2,\n   1,\n   1,", "   2,\n   2,\n   1,"),
             "compress_ratios[4] 2: layers from the last KV source (4) on must have ratio 1");
  EXPECT_HAS(
      RefusalOf("\"compress_ratios\": [\n   0,\n   0,", "\"compress_ratios\": [\n   0,\n   2,"),
      "no KV source at or below the layer");
  EXPECT_HAS(RefusalOf("\"compress_ratios\": [\n   0,\n   0,\n   2,\n   2,",
                       "\"compress_ratios\": [\n   0,\n   0,\n   2,\n   1,"),
             "its KV source 2 has ratio 2");
  EXPECT_HAS(RefusalOf("\"compress_ratios\": [", "\"compress_ratios\": [0,"),
             "12 entries, 11 expected");
  EXPECT_HAS(
      RefusalOf("\"engram_layer_ids\": [\n   1,\n   3", "\"engram_layer_ids\": [\n   1,\n   4"),
      "layer 4 lies in the decoder half");
  EXPECT_HAS(RefusalOf("\"candidate_source_layer_id\": 4", "\"candidate_source_layer_id\": 5"),
             "must be an index source at or above the last KV source 4");
  EXPECT_HAS(RefusalOf("\"num_experts_per_tok\": 2", "\"num_experts_per_tok\": 9"),
             "more than n_routed_experts 8");
  EXPECT_HAS(RefusalOf("\"image_token_id\": 511", "\"image_token_id\": 512"),
             "not below vocab_size 512");
  EXPECT_HAS(RefusalOf("\"num_attention_heads\": 4,\n  \"intermediate_size\"",
                       "\"num_attention_heads\": 3,\n  \"intermediate_size\""),
             "vision_config: hidden_size 64 over 3 heads");
}

TEST(ModelConfig, WithoutVisionConfigTheCheckpointIsTextOnly) {
  const std::string path = StrCat(DI_SOURCE_DIR, "/models/nano/config.json");
  const auto config = ParseModelConfig(RealDisk().ReadText(path).value(), path);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_FALSE(config->has_vision);
}

// A table of another size would be read with row ids that belong to other n-grams.
TEST(ModelConfig, EngramRowsFollowFromThePrimes) {
  EXPECT_HAS(
      RefusalOf("6126", "6127"),
      "engram_num_embeddings[0] 6127: the sum of 6 primes from engram_vocab_size 1000 on is 6126");
  EXPECT_HAS(RefusalOf("\"engram_vocab_size\": 1000", "\"engram_vocab_size\": 4000000000"),
             "row ids above 2^31 - 1");
}

TEST(ModelConfig, case_69_OtherModelsGetOneLineWithWhatIsSupported) {
  const std::string supported = "supported: model_type deepseek_v41";
  const auto type = [](std::string_view name) {
    return RefusalOf("\"model_type\": \"deepseek_v41\"", StrCat("\"model_type\": \"", name, "\""));
  };
  for (const std::string& message :
       {type("deepseek_v4"), type("llama"), type("deepseek_v41x"),
        RefusalOf("\"model_type\": \"deepseek_v41\",", ""),
        RefusalOf("\"expert_dtype\": \"fp4\"", "\"expert_dtype\": \"fp8\""),
        RefusalOf("\"quantization_config\"", "\"quantization_config_\""),
        MessageOf(ParseModelConfig("{\"peft_type\": \"LORA\"}", "config.json").status()),
        MessageOf(ParseModelConfig("{\"dim\": 5120, \"n_layers\": 40}", "config.json").status()),
        MessageOf(ParseModelConfig("[]", "config.json").status())}) {
    EXPECT_HAS(message, supported);
    EXPECT_TRUE(message.starts_with("config.json: ")) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
  EXPECT_HAS(type("deepseek_v4"), "DeepSeek-V4 is another architecture");
  EXPECT_HAS(RefusalOf("\"compress_ratios\": [", "\"compress_rates\": {}, \"compress_ratios\": ["),
             "DeepSeek-V4's compress_rates");
  EXPECT_HAS(RefusalOf("\"compress_ratios\": [", "\"compress_rates\": ["),
             "expected compress_ratios");
}

}  // namespace
}  // namespace deepinfer
