#include "model/golden_writer.h"

#include <algorithm>
#include <vector>

namespace deepinfer {

GoldenWriter::GoldenWriter(const ModelConfig& config, int32_t num_prompt_tokens)
    : config_(config),
      num_prompt_tokens_(num_prompt_tokens),
      stream_width_(int64_t{config.hc_mult} * config.hidden_size) {
  const int64_t prompt = num_prompt_tokens, vocab = config.vocab_size;
  tensors_.Add<int32_t>("prompt_ids", {prompt});
  tensors_.Add<float>("official.prompt_logits", {prompt, vocab});
  tensors_.Add<int32_t>("official.decode_tokens", {kGoldenDecodeSteps + 1});
  tensors_.Add<float>("official.decode_logits", {kGoldenDecodeSteps, vocab});
  DeclareStreams();
  DeclareSelections();
  DeclareRecords();
  if (config.num_nextn_predict_layers > 0) DeclareDraft();
}

void GoldenWriter::DeclareStreams() {
  const int64_t layers = config_.num_hidden_layers, tokens = num_prompt_tokens_;
  const int64_t streams = config_.hc_mult, dim = config_.hidden_size;
  tensors_.Add<bf16>("layer_X", {layers + 1, tokens, streams, dim});
  tensors_.Add<float>("layer_pre", {layers + 1, tokens, streams});
  tensors_.Add<bf16>("mid_X", {layers, tokens, streams, dim});
  tensors_.Add<float>("mid_pre", {layers, tokens, streams});
  tensors_.Add<bf16>("decode_layer_X", {kGoldenDecodeSteps, layers + 1, streams, dim});
  tensors_.Add<float>("decode_layer_pre", {kGoldenDecodeSteps, layers + 1, streams});
  if (config_.engram_layer_ids.empty()) return;
  const auto tables = static_cast<int64_t>(config_.engram_layer_ids.size());
  tensors_.Add<int32_t>("engram_rows", {tokens, tables, config_.EngramColumns()});
  for (const int32_t layer : config_.engram_layer_ids) {
    tensors_.Add<bf16>(StrCat("engram_X.", layer), {tokens, streams, dim});
  }
}

void GoldenWriter::DeclareSelections() {
  const int64_t tokens = num_prompt_tokens_;
  for (const int32_t layer : config_.index_source_layer_ids) {
    const std::pair<const char*, int64_t> passes[] = {{"prompt.", tokens},
                                                      {"decode.", kGoldenDecodeSteps}};
    for (const auto& [pass, rows] : passes) {
      tensors_.Add<int32_t>(StrCat("official.sel_", pass, layer), {rows, config_.index_topk});
      tensors_.Add<float>(StrCat("official.selgap_", pass, layer), {rows});
    }
  }
  if (config_.candidate_source_layer_id.has_value()) {
    const int64_t entries = tokens / config_.ratio(*config_.candidate_source_layer_id);
    const int64_t size = config_.candidate_block_size;
    tensors_.Add<uint8_t>("candidate_blocks_prompt", {tokens, (entries + size - 1) / size});
  }
  const int64_t layers = config_.num_hidden_layers;
  tensors_.Add<int32_t>("route_prompt", {layers, tokens, config_.num_experts_per_tok});
  tensors_.Add<float>("route_gap_prompt", {layers, tokens});
}

void GoldenWriter::DeclareRecords() {
  const int64_t dim = config_.head_dim, index_dim = config_.index_head_dim;
  for (const int32_t layer : config_.kv_source_layer_ids) {
    tensors_.Add<float>(StrCat("global_kv.", layer), {kGoldenFirstEntries, dim});
    tensors_.Add<float>(StrCat("index_key.", layer), {kGoldenFirstEntries, index_dim});
    tensors_.Add<float>(StrCat("global_kv_last.", layer), {2, dim});
    tensors_.Add<float>(StrCat("index_key_last.", layer), {2, index_dim});
  }
  tensors_.Add<float>("swa_row7", {config_.num_hidden_layers, dim});
  tensors_.Add<float>("swa_row_last", {config_.num_hidden_layers, dim});
}

void GoldenWriter::DeclareDraft() {
  const int64_t steps = kGoldenDecodeSteps, block = config_.dspark_block_size;
  const auto targets = static_cast<int64_t>(config_.dspark_target_layer_ids.size());
  tensors_.Add<bf16>("main_hidden", {num_prompt_tokens_ + steps, targets * config_.hidden_size});
  tensors_.Add<int32_t>("draft_ids", {steps, block});
  tensors_.Add<float>("draft_conf", {steps, block});
  tensors_.Add<int32_t>("draft_top5_ids", {steps, block, kGoldenDraftTop});
  tensors_.Add<float>("draft_top5_vals", {steps, block, kGoldenDraftTop});
  tensors_.Add<float>("draft_logits_at_0_9_23",
                      {std::ssize(kGoldenDraftLogitSteps), block, config_.vocab_size});
  tensors_.Add<float>("draft_kv_row_last", {config_.num_nextn_predict_layers, config_.head_dim});
}

void GoldenWriter::LayerInput(int32_t layer, const RowSet& rows, bf16* streams, float* pre) {
  const int64_t count = rows.num_rows();
  const std::string prefix = step_ < 0 ? "" : "decode_";
  const int64_t first =
      step_ < 0 ? layer * count : int64_t{step_} * (config_.num_hidden_layers + 1) + layer;
  PutRows(prefix + "layer_X", first, streams, count, stream_width_);
  PutRows(prefix + "layer_pre", first, pre, count, config_.hc_mult);
}

void GoldenWriter::EngramRows(int32_t table, const RowSet& rows, const int32_t* ids) {
  if (step_ >= 0) return;
  const auto tables = static_cast<int64_t>(config_.engram_layer_ids.size());
  const int64_t columns = config_.EngramColumns();
  for (int64_t t = 0; t < rows.num_rows(); ++t) {
    PutRows("engram_rows", t * tables + table, ids + t * columns, 1, columns);
  }
}

void GoldenWriter::EngramOutput(int32_t layer, const RowSet& rows, const bf16* streams) {
  if (step_ < 0) PutRows(StrCat("engram_X.", layer), 0, streams, rows.num_rows(), stream_width_);
}

void GoldenWriter::AttentionOutput(int32_t layer, const RowSet& rows, const bf16* streams,
                                   const float* pre) {
  if (step_ >= 0) return;
  const int64_t count = rows.num_rows();
  PutRows("mid_X", layer * count, streams, count, stream_width_);
  PutRows("mid_pre", layer * count, pre, count, config_.hc_mult);
}

void GoldenWriter::Selection(int32_t layer, const RowSet& rows, int32_t* selection, const float*) {
  const std::string name = StrCat("official.sel_", step_ < 0 ? "prompt." : "decode.", layer);
  PutRows(name, std::max(step_, 0), selection, rows.num_rows(), config_.index_topk);
}

void GoldenWriter::CandidateBlocks(int32_t, const RowSet& rows, int32_t* blocks) {
  if (step_ >= 0) return;
  const int64_t count = rows.num_rows(), most = config_.candidate_topk_blocks;
  const int64_t width =
      std::ssize(tensors_.Get<uint8_t>("candidate_blocks_prompt")) / num_prompt_tokens_;
  std::vector<uint8_t> kept(static_cast<size_t>(count * width), 0);
  for (int64_t i = 0; i < count * most; ++i) {
    if (blocks[i] >= 0) kept[static_cast<size_t>(i / most * width + blocks[i])] = 1;
  }
  PutRows("candidate_blocks_prompt", 0, kept.data(), count, width);
}

void GoldenWriter::Routes(int32_t layer, const RowSet& rows, const int32_t* experts,
                          const float* gap) {
  if (step_ >= 0) return;
  const int64_t count = rows.num_rows();
  PutRows("route_prompt", layer * count, experts, count, config_.num_experts_per_tok);
  PutRows("route_gap_prompt", layer * count, gap, count, 1);
}

void GoldenWriter::MainHidden(const RowSet& rows, bf16* main_hidden) {
  const auto targets = static_cast<int64_t>(config_.dspark_target_layer_ids.size());
  PutRows("main_hidden", rows.positions.front(), main_hidden, rows.num_rows(),
          targets * config_.hidden_size);
}

}  // namespace deepinfer
