#include "model/weights.h"

#include "model/tensor_table.h"

namespace deepinfer {
namespace {

class Binder {
 public:
  Binder(const ModelConfig& config, const TensorTable& tensors) : c_(config), t_(tensors) {}

  ModelWeights Bind() {
    ModelWeights w;
    w.embed = t_.Bf16Matrix("embed.weight");
    w.head = t_.Bf16Matrix("head.weight");
    w.norm = t_.Bf16("norm.weight");
    if (c_.has_vision) {
      w.image_start = t_.Bf16("image_start");
      w.image_end = t_.Bf16("image_end");
      w.image_newline = t_.Bf16("image_newline");
    }
    for (int32_t layer = 0; layer < c_.num_hidden_layers; ++layer) {
      w.layers.push_back(TextLayer(layer));
    }
    for (int32_t block = 0; block < c_.num_nextn_predict_layers; ++block) {
      w.mtp.push_back(Block(StrCat("mtp.", block, "."), c_.dspark_n_routed_experts));
    }
    if (c_.num_nextn_predict_layers > 0) BindDraftEnds(&w);
    return w;
  }

 private:
  BlockWeights TextLayer(int32_t layer) {
    const std::string p = StrCat("layers.", layer, ".");
    BlockWeights b = Block(p, c_.n_routed_experts);
    if (c_.IsKvSource(layer)) BindKvSource(p, c_.ratio(layer), &b);
    if (c_.IsIndexSource(layer)) {
      b.indexer_wq_b = t_.Fp8(p + "attn.indexer.wq_b");
      b.indexer_weights_proj = t_.Bf16Matrix(p + "attn.indexer.weights_proj.weight");
    }
    if (c_.EngramIndex(layer) >= 0) b.engram = Engram(p + "engram.");
    return b;
  }

  BlockWeights Block(const std::string& p, int32_t num_experts) {
    BlockWeights b;
    b.attn_norm = t_.Bf16(p + "attn_norm.weight");
    b.ffn_norm = t_.Bf16(p + "ffn_norm.weight");
    b.hc_attn = Hyper(p + "hc_attn_");
    b.hc_ffn = Hyper(p + "hc_ffn_");
    b.wq_a = t_.Fp8(p + "attn.wq_a");
    b.q_norm = t_.Bf16(p + "attn.q_norm.weight");
    b.wq_b = t_.Fp8(p + "attn.wq_b");
    b.wkv = t_.Fp8(p + "attn.wkv");
    b.kv_norm = t_.Bf16(p + "attn.kv_norm.weight");
    b.wo_a = t_.Fp8(p + "attn.wo_a");
    b.wo_b = t_.Fp8(p + "attn.wo_b");
    b.attn_sink = t_.F32(p + "attn.attn_sink");
    b.gate = t_.Bf16Matrix(p + "ffn.gate.weight");
    b.gate_bias = t_.F32(p + "ffn.gate.bias");
    b.gate_bias_vl = t_.F32(p + "ffn.gate.bias_vl");
    b.experts.reserve(static_cast<size_t>(num_experts));
    for (int32_t expert = 0; expert < num_experts; ++expert) {
      const std::string e = StrCat(p, "ffn.experts.", expert);
      b.experts.push_back({t_.Fp4(e + ".w1"), t_.Fp4(e + ".w3"), t_.Fp4(e + ".w2")});
    }
    const std::string s = p + "ffn.shared_experts";
    b.shared_experts = {t_.Fp8(s + ".w1"), t_.Fp8(s + ".w3"), t_.Fp8(s + ".w2")};
    return b;
  }

  HyperWeights Hyper(const std::string& p) {
    return {t_.F32(p + "fn"), t_.F32(p + "base"), t_.F32(p + "scale")};
  }

  void BindKvSource(const std::string& p, int32_t ratio, BlockWeights* b) {
    b->compressor_wkv = t_.Bf16Matrix(p + "attn.compressor.wkv.weight");
    if (ratio > 1) b->compressor_wgate = t_.Bf16Matrix(p + "attn.compressor.wgate.weight");
    b->compressor_norm = t_.Bf16(p + "attn.compressor.norm.weight");
    b->indexer_wk = t_.Bf16Matrix(p + "attn.indexer.wk.weight");
    b->indexer_k_norm = t_.Bf16(p + "attn.indexer.k_norm.weight");
  }

  EngramWeights Engram(const std::string& p) {
    const TensorView& rows = t_.At(p + "embed.weight");
    EngramWeights e;
    e.table = {.rows = rows.spec->shape[0],
               .dim = static_cast<int32_t>(rows.spec->shape[1]),
               .data = rows.data,
               .scale = t_.At(p + "embed.scale").data};
    e.wkv = t_.Fp8(p + "wkv");
    e.q_weight = t_.Bf16(p + "q_weight");
    e.k_weight = t_.Bf16(p + "k_weight");
    return e;
  }

  void BindDraftEnds(ModelWeights* w) {
    const std::string last = StrCat("mtp.", c_.num_nextn_predict_layers - 1, ".");
    w->main_proj = t_.Fp8("mtp.0.main_proj");
    w->main_norm = t_.Bf16("mtp.0.main_norm.weight");
    w->mtp_norm = t_.Bf16(last + "norm.weight");
    w->markov_embed = t_.Bf16Matrix(last + "markov_head.embed.weight");
    w->markov_head = t_.Bf16Matrix(last + "markov_head.head.weight");
    w->confidence_proj = t_.Bf16Matrix(last + "confidence_head.proj.weight");
  }

  const ModelConfig& c_;
  const TensorTable& t_;
};

}  // namespace

ModelWeights BindWeights(const ModelConfig& config, const TensorTable& tensors) {
  return Binder(config, tensors).Bind();
}

ModelWeights WeightShapes(const ModelConfig& config) {
  const std::vector<TensorSpec> specs = ExpectedTensors(config);
  TensorTable tensors;
  for (const TensorSpec& spec : specs) tensors.Add({.spec = &spec});
  return BindWeights(config, tensors);
}

}  // namespace deepinfer
