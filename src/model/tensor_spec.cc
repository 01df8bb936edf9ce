#include "model/tensor_spec.h"

#include "base/check.h"

namespace deepinfer {
namespace {

struct DtypeInfo {
  std::string_view name;
  int bytes;
};

// Indexed by Dtype.
constexpr DtypeInfo kDtypes[] = {
    {"F8_E4M3", 1}, {"F8_E8M0", 1}, {"I8", 1},  {"BF16", 2}, {"F32", 4}, {"BOOL", 1},
    {"U8", 1},      {"F8_E5M2", 1}, {"I16", 2}, {"U16", 2},  {"F16", 2}, {"I32", 4},
    {"U32", 4},     {"F64", 8},     {"I64", 8}, {"U64", 8},
};

constexpr int64_t kScaleBlock = 32;

// Collects tensors in file order. Names are given without the block's own prefix.
class SpecBuilder {
 public:
  explicit SpecBuilder(const ModelConfig& config) : c_(config) {}

  std::vector<TensorSpec> Build() {
    Globals();
    for (int32_t layer = 0; layer < c_.num_hidden_layers; ++layer) TextLayer(layer);
    for (int32_t block = 0; block < c_.num_nextn_predict_layers; ++block) DraftBlock(block);
    if (c_.has_vision) Vision();
    return std::move(tensors_);
  }

 private:
  void Add(std::string name, Dtype dtype, std::vector<int64_t> shape) {
    tensors_.push_back({prefix_ + std::move(name), dtype, std::move(shape), part_});
  }
  void Bf16(std::string name, std::vector<int64_t> shape) {
    Add(std::move(name), Dtype::kBf16, std::move(shape));
  }
  void F32(std::string name, std::vector<int64_t> shape) {
    Add(std::move(name), Dtype::kF32, std::move(shape));
  }
  // One scale per 32 rows and 32 columns.
  void Fp8(const std::string& name, int64_t rows, int64_t cols) {
    Add(name + ".weight", Dtype::kF8E4m3, {rows, cols});
    Add(name + ".scale", Dtype::kF8E8m0, {rows / kScaleBlock, cols / kScaleBlock});
  }
  // Two codes a byte, one scale per row and 32 columns.
  void Fp4(const std::string& name, int64_t rows, int64_t cols) {
    Add(name + ".weight", Dtype::kI8, {rows, cols / 2});
    Add(name + ".scale", Dtype::kF8E8m0, {rows, cols / kScaleBlock});
  }

  void Globals() {
    part_ = Part::kEmbedHead;
    Bf16("embed.weight", {c_.vocab_size, c_.hidden_size});
    Bf16("head.weight", {c_.vocab_size, c_.hidden_size});
    Bf16("norm.weight", {c_.hidden_size});
    if (!c_.has_vision) return;
    for (const char* name : {"image_start", "image_end", "image_newline"})
      Bf16(name, {c_.hidden_size});
  }

  void TextLayer(int32_t layer) {
    prefix_ = StrCat("layers.", layer, ".");
    Block(c_.n_routed_experts, Part::kDense, Part::kRoutedExperts);
    if (c_.IsKvSource(layer)) KvSource(c_.ratio(layer));
    if (c_.IsIndexSource(layer)) IndexSource();
    const int32_t table = c_.EngramIndex(layer);
    if (table >= 0) Engram(c_.engram_num_embeddings[static_cast<size_t>(table)]);
  }

  // What text layers and draft blocks share.
  void Block(int32_t num_experts, Part dense, Part experts) {
    part_ = dense;
    Attention();
    Bf16("attn_norm.weight", {c_.hidden_size});
    Bf16("ffn_norm.weight", {c_.hidden_size});
    HyperConnection("hc_attn_");
    HyperConnection("hc_ffn_");
    Bf16("ffn.gate.weight", {num_experts, c_.hidden_size});
    F32("ffn.gate.bias", {num_experts});
    F32("ffn.gate.bias_vl", {num_experts});
    part_ = experts;
    const int64_t width = c_.hidden_size, inner = c_.moe_intermediate_size;
    for (int32_t expert = 0; expert < num_experts; ++expert) {
      const std::string name = StrCat("ffn.experts.", expert);
      Fp4(name + ".w1", inner, width);
      Fp4(name + ".w3", inner, width);
      Fp4(name + ".w2", width, inner);
    }
    part_ = dense;
    Fp8("ffn.shared_experts.w1", inner, width);
    Fp8("ffn.shared_experts.w3", inner, width);
    Fp8("ffn.shared_experts.w2", width, inner);
  }

  void Attention() {
    const int64_t heads_width = int64_t{c_.num_attention_heads} * c_.head_dim;
    const int64_t o_width = int64_t{c_.o_groups} * c_.o_lora_rank;
    Fp8("attn.wq_a", c_.q_lora_rank, c_.hidden_size);
    Bf16("attn.q_norm.weight", {c_.q_lora_rank});
    Fp8("attn.wq_b", heads_width, c_.q_lora_rank);
    Fp8("attn.wkv", c_.head_dim, c_.hidden_size);
    Bf16("attn.kv_norm.weight", {c_.head_dim});
    Fp8("attn.wo_a", o_width, heads_width / c_.o_groups);
    Fp8("attn.wo_b", c_.hidden_size, o_width);
    F32("attn.attn_sink", {c_.num_attention_heads});
  }

  void HyperConnection(const std::string& name) {
    const int64_t mixes = int64_t{2 + c_.hc_mult} * c_.hc_mult;
    F32(name + "fn", {mixes, int64_t{c_.hc_mult} * c_.hidden_size});
    F32(name + "base", {mixes});
    F32(name + "scale", {3});
  }

  void KvSource(int32_t ratio) {
    Bf16("attn.compressor.wkv.weight", {c_.head_dim, c_.hidden_size});
    Bf16("attn.compressor.norm.weight", {c_.head_dim});
    Bf16("attn.indexer.wk.weight", {c_.index_head_dim, c_.head_dim});
    Bf16("attn.indexer.k_norm.weight", {c_.index_head_dim});
    if (ratio > 1) Bf16("attn.compressor.wgate.weight", {c_.head_dim, c_.hidden_size});
  }

  void IndexSource() {
    Fp8("attn.indexer.wq_b", int64_t{c_.index_n_heads} * c_.index_head_dim, c_.q_lora_rank);
    Bf16("attn.indexer.weights_proj.weight", {c_.index_n_heads, c_.hidden_size});
  }

  void Engram(int64_t rows) {
    part_ = Part::kEngramTables;
    Add("engram.embed.weight", Dtype::kF8E4m3, {rows, c_.engram_head_dim});
    // Rows are looked up one by one, so they never share a scale.
    Add("engram.embed.scale", Dtype::kF8E8m0, {rows, c_.engram_head_dim / kScaleBlock});
    part_ = Part::kEngramProjections;
    Fp8("engram.wkv", int64_t{c_.hc_mult + 1} * c_.hidden_size,
        int64_t{c_.EngramColumns()} * c_.engram_head_dim);
    Bf16("engram.q_weight", {c_.hc_mult, c_.hidden_size});
    Bf16("engram.k_weight", {c_.hc_mult, c_.hidden_size});
  }

  void DraftBlock(int32_t block) {
    prefix_ = StrCat("mtp.", block, ".");
    Block(c_.dspark_n_routed_experts, Part::kDraftDense, Part::kDraftExperts);
    if (block == 0) {
      Fp8("main_proj", c_.hidden_size, c_.hidden_size * std::ssize(c_.dspark_target_layer_ids));
      Bf16("main_norm.weight", {c_.hidden_size});
    }
    if (block == c_.num_nextn_predict_layers - 1) {
      Bf16("norm.weight", {c_.hidden_size});
      Bf16("markov_head.embed.weight", {c_.vocab_size, c_.dspark_markov_rank});
      Bf16("markov_head.head.weight", {c_.vocab_size, c_.dspark_markov_rank});
      Bf16("confidence_head.proj.weight", {1, int64_t{c_.hidden_size} + c_.dspark_markov_rank});
    }
  }

  void Vision() {
    const VisionConfig& v = c_.vision;
    const int64_t width = v.hidden_size, inner = v.intermediate_size;
    part_ = Part::kVision;
    prefix_ = "vision.";
    Bf16("patch_embed.proj.weight", {width, int64_t{3} * v.patch_size * v.patch_size});
    Bf16("patch_embed.proj.bias", {width});
    for (int32_t block = 0; block < v.num_hidden_layers; ++block) {
      prefix_ = StrCat("vision.blocks.", block, ".");
      Bf16("norm1.weight", {width});
      Bf16("norm2.weight", {width});
      Bf16("attn.wqkv.weight", {3 * width, width});
      Bf16("attn.wqkv.bias", {3 * width});
      Bf16("attn.wo.weight", {width, width});
      Bf16("attn.wo.bias", {width});
      Bf16("mlp.w1.weight", {2 * inner, width});
      Bf16("mlp.w2.weight", {width, inner});
    }
    prefix_ = "";
    Bf16("vision.norm.weight", {width});
    Bf16("aligner.w1.weight", {c_.hidden_size, width * v.downsample_ratio * v.downsample_ratio});
    Bf16("aligner.w1.bias", {c_.hidden_size});
    Bf16("aligner.w2.weight", {c_.hidden_size, c_.hidden_size});
    Bf16("aligner.w2.bias", {c_.hidden_size});
  }

  const ModelConfig& c_;
  std::vector<TensorSpec> tensors_;
  std::string prefix_;
  Part part_ = Part::kEmbedHead;
};

}  // namespace

std::string_view DtypeName(Dtype dtype) { return kDtypes[static_cast<size_t>(dtype)].name; }
int DtypeBytes(Dtype dtype) { return kDtypes[static_cast<size_t>(dtype)].bytes; }

std::optional<Dtype> DtypeFromName(std::string_view name) {
  for (size_t i = 0; i < std::size(kDtypes); ++i) {
    if (kDtypes[i].name == name) return static_cast<Dtype>(i);
  }
  return {};
}

std::string_view PartName(Part part) {
  static constexpr std::string_view kNames[kNumParts] = {
      "embedding and head", "dense layers", "routed experts", "engram tables",
      "engram projections", "draft dense",  "draft experts",  "vision"};
  return kNames[static_cast<size_t>(part)];
}

int64_t TensorSpec::num_elements() const {
  int64_t count = 1;
  for (const int64_t side : shape) count *= side;
  return count;
}

std::vector<TensorSpec> ExpectedTensors(const ModelConfig& config) {
  return SpecBuilder(config).Build();
}

std::string DescribeTensor(Dtype dtype, std::span<const int64_t> shape) {
  return StrCat(DtypeName(dtype), " [", Join(shape, ", "), "]");
}

Census CountTensors(std::span<const TensorSpec> tensors) {
  Census census;
  const auto count = [](CensusRow& row, int64_t bytes) {
    row.num_tensors += 1;
    row.num_bytes += bytes;
  };
  for (const TensorSpec& tensor : tensors) {
    CHECK_LT(static_cast<int>(tensor.dtype), kNumModelDtypes);
    const int64_t bytes = tensor.num_bytes();
    count(census.total, bytes);
    count(census.by_dtype[static_cast<size_t>(tensor.dtype)], bytes);
    count(census.by_part[static_cast<size_t>(tensor.part)], bytes);
  }
  return census;
}

}  // namespace deepinfer
