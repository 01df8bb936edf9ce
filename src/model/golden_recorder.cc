#include "model/golden_recorder.h"

#include <algorithm>

#include "model/config.h"

namespace deepinfer {
namespace {

constexpr float kRouteGap = 1e-4f;  // closer experts may change places

bool SameRow(const int32_t* got, std::span<const int32_t> stored, int64_t row, int64_t width) {
  return std::equal(got + row * width, got + (row + 1) * width, stored.begin() + row * width);
}

}  // namespace

void FractionEqual::Add(std::span<const bf16> want, const bf16* got) {
  for (size_t i = 0; i < want.size(); ++i) equal += want[i] == got[i] ? 1 : 0;
  total += static_cast<int64_t>(want.size());
}

void GoldenRecorder::Begin(std::string prefix, int32_t step) {
  prefix_ = std::move(prefix);
  step_ = step;
}

void GoldenRecorder::LayerInput(int32_t layer, const RowSet& rows, bf16* streams, float* pre) {
  if (feed_ != GoldenFeed::kStreams) return;
  const int64_t width = int64_t{config_.hc_mult} * config_.hidden_size;
  const auto x = StoredRows<bf16>("layer_X", layer, rows.num_rows(), width);
  if (layer > 0) (step_ < 0 ? prompt_experts : decode_layers)[layer - 1].Add(x, streams);
  std::copy(x.begin(), x.end(), streams);
  const auto p = StoredRows<float>("layer_pre", layer, rows.num_rows(), config_.hc_mult);
  std::copy(p.begin(), p.end(), pre);
}

void GoldenRecorder::EngramRows(int32_t table, const RowSet& rows, const int32_t* ids) {
  if (step_ >= 0) return;
  const auto stored = data_.Get<int32_t>(prefix_ + "engram_rows");  // [T, tables, columns]
  const auto tables = static_cast<int64_t>(config_.engram_layer_ids.size());
  const int64_t columns = config_.EngramColumns();
  for (int64_t t = 0; t < rows.num_rows(); ++t) {
    if (rows.is_image[static_cast<size_t>(t)] != 0) continue;  // rows of dead tokens are irrelevant
    for (int64_t c = 0; c < columns; ++c) {
      const auto at = static_cast<size_t>((t * tables + table) * columns + c);
      engram_row_mismatches += stored[at] != ids[t * columns + c] ? 1 : 0;
    }
  }
}

void GoldenRecorder::EngramOutput(int32_t layer, const RowSet& rows, const bf16* streams) {
  const std::string name = StrCat("engram_X.", layer);
  if (feed_ != GoldenFeed::kStreams || step_ >= 0 || !data_.Has(name)) return;
  const auto stored = data_.Get<bf16>(name);  // all positions, or the last ones
  const int64_t width = int64_t{config_.hc_mult} * config_.hidden_size;
  const int64_t skip = rows.num_rows() - static_cast<int64_t>(stored.size()) / width;
  engram_out.Add(stored, streams + skip * width);
}

void GoldenRecorder::AttentionOutput(int32_t layer, const RowSet& rows, const bf16* streams,
                                     const float* pre) {
  if (feed_ != GoldenFeed::kStreams || step_ >= 0 || !data_.Has("mid_X")) return;
  const int64_t width = int64_t{config_.hc_mult} * config_.hidden_size;
  prompt_attention[layer].Add(StoredRows<bf16>("mid_X", layer, rows.num_rows(), width), streams);
  const auto p = StoredRows<float>("mid_pre", layer, rows.num_rows(), config_.hc_mult);
  for (size_t i = 0; i < p.size(); ++i) {
    pre_error = std::max(pre_error, Magnitude(static_cast<double>(p[i] - pre[i])));
  }
}

void GoldenRecorder::Selection(int32_t layer, const RowSet& rows, int32_t* selection,
                               const float* scores) {
  if (feed_ == GoldenFeed::kNothing) return;
  const std::string which = StrCat(step_ < 0 ? "prompt." : "decode.", layer);
  const std::string run = prefix_.empty() ? run_ + "." : prefix_;
  const auto first = static_cast<size_t>(std::max(step_, 0));
  const auto count = static_cast<size_t>(rows.num_rows());
  const auto k = static_cast<size_t>(config_.index_topk);
  const auto stored = data_.Get<int32_t>(run + "sel_" + which).subspan(first * k, count * k);
  if (feed_ == GoldenFeed::kStreams) {
    const auto gaps = data_.Get<float>(run + "selgap_" + which).subspan(first, count);
    CompareSelection(rows, stored, gaps, selection, scores);
  }
  std::copy(stored.begin(), stored.end(), selection);
}

void GoldenRecorder::CompareSelection(const RowSet& rows, std::span<const int32_t> stored,
                                      std::span<const float> gaps, const int32_t* selection,
                                      const float* scores) {
  const int64_t k = config_.index_topk;
  selection_rows += rows.num_rows();
  for (int64_t t = 0; t < rows.num_rows(); ++t) {
    if (SameRow(selection, stored, t, k)) continue;
    // Two BF16 ulp of the smallest selected score: closer entries may change places.
    const float least = *std::min_element(scores + t * k, scores + (t + 1) * k);
    const float ulp = std::ldexp(1.0f, std::ilogb(std::max(std::fabs(least), 1e-6f)) - 7);
    const bool tie = gaps[static_cast<size_t>(t)] < 2 * ulp;
    (tie ? selection_ties : selection_mismatches) += 1;
  }
}

void GoldenRecorder::CandidateBlocks(int32_t, const RowSet& rows, int32_t* blocks) {
  const std::string name = "candidate_blocks_prompt";  // [T, blocks] 1 = kept
  if (feed_ != GoldenFeed::kStreams || step_ >= 0 || !data_.Has(name)) return;
  const auto stored = data_.Get<uint8_t>(name);
  const int64_t all = data_.Shape(name)[1];
  for (int64_t t = 0; t < rows.num_rows(); ++t) {
    std::vector<uint8_t> kept(static_cast<size_t>(all), 0);
    for (int64_t i = 0; i < config_.candidate_topk_blocks; ++i) {
      const int32_t block = blocks[t * config_.candidate_topk_blocks + i];
      if (block >= 0) kept[static_cast<size_t>(block)] = 1;
    }
    const bool same = std::equal(kept.begin(), kept.end(), stored.begin() + t * all);
    candidate_mismatches += same ? 0 : 1;
  }
}

void GoldenRecorder::Routes(int32_t layer, const RowSet& rows, const int32_t* experts,
                            const float* gap) {
  if (feed_ != GoldenFeed::kStreams || step_ >= 0) return;
  const int64_t k = config_.num_experts_per_tok;
  const auto stored = StoredRows<int32_t>("route_prompt", layer, rows.num_rows(), k);
  for (int64_t t = 0; t < rows.num_rows(); ++t) {
    if (!SameRow(experts, stored, t, k) && !(gap[t] < kRouteGap)) ++route_mismatches;
  }
}

void GoldenRecorder::MainHidden(const RowSet& rows, bf16* main_hidden) {
  if (feed_ != GoldenFeed::kStreams) return;
  const auto width =
      static_cast<int64_t>(config_.dspark_target_layer_ids.size()) * config_.hidden_size;
  const int64_t first = rows.positions.front();
  const auto stored = data_.Get<bf16>("main_hidden")
                          .subspan(static_cast<size_t>(first * width),
                                   static_cast<size_t>(rows.num_rows() * width));
  main_hidden_out.Add(stored, main_hidden);
  std::copy(stored.begin(), stored.end(), main_hidden);
}

}  // namespace deepinfer
