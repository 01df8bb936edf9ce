#include "model/packed_layout.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/check.h"
#include "kernels/formats/panels.h"

namespace deepinfer {
namespace {

template <typename Weights, typename Visit>
void ForEachDense(Weights& w, const Visit& visit) {
  const auto block = [&](auto& b) {
    for (auto* m :
         {&b.wq_a, &b.wq_b, &b.wkv, &b.wo_a, &b.wo_b, &b.compressor_wkv, &b.compressor_wgate,
          &b.indexer_wk, &b.indexer_wq_b, &b.indexer_weights_proj, &b.gate, &b.engram.wkv,
          &b.shared_experts.w1, &b.shared_experts.w3, &b.shared_experts.w2}) {
      visit(*m);
    }
  };
  for (auto& b : w.layers) block(b);
  for (auto& b : w.mtp) block(b);
  for (auto* m : {&w.head, &w.main_proj, &w.markov_head, &w.confidence_proj}) visit(*m);
}

template <typename Block, typename Visit>
void ForEachExpertMatrix(Block& block, const Visit& visit) {
  for (auto& expert : block.experts) {
    for (auto* m : {&expert.w1, &expert.w3, &expert.w2}) visit(*m);
  }
}

bool HasPanels(const Matrix& m) { return PackedBytes(m.format, m.rows, m.cols) > 0; }

}  // namespace

std::vector<Matrix*> PackedMatrices(ModelWeights& weights) {
  std::vector<Matrix*> matrices;
  const auto take = [&](Matrix& m) {
    if (HasPanels(m)) matrices.push_back(&m);
  };
  ForEachDense(weights, take);
  for (BlockWeights& block : weights.layers) ForEachExpertMatrix(block, take);
  for (BlockWeights& block : weights.mtp) ForEachExpertMatrix(block, take);
  return matrices;
}

PackedLayout::PackedLayout(const ModelWeights& weights)
    : num_text_layers_(static_cast<int32_t>(weights.layers.size())) {
  ForEachDense(weights, [&](const Matrix& m) {
    if (HasPanels(m)) Append(m);
  });
  routed_experts_begin_ = image_bytes_;
  const auto append_experts = [&](const BlockWeights& block) {
    first_expert_entry_.push_back(static_cast<int32_t>(entries_.size()));
    num_experts_.push_back(static_cast<int32_t>(block.experts.size()));
    ForEachExpertMatrix(block, [&](const Matrix& m) {
      CHECK(HasPanels(m));  // routed experts are FP4, see BindWeights
      Append(m);
    });
  };
  for (const BlockWeights& block : weights.layers) append_experts(block);
  for (const BlockWeights& block : weights.mtp) append_experts(block);
}

void PackedLayout::Append(const Matrix& m) {
  const int64_t bytes = PackedBytes(m.format, m.rows, m.cols);
  entries_.push_back({image_bytes_, bytes});
  shapes_.push_back({PanelBytes(m.format, m.cols), NumPanels(m.rows)});
  image_bytes_ += RoundUp(bytes);
}

int32_t PackedLayout::ExpertEntry(int32_t block, int32_t expert) const {
  CHECK(block >= 0 && block < num_blocks());
  CHECK(expert >= 0 && expert < num_experts_[static_cast<size_t>(block)]);
  return first_expert_entry_[static_cast<size_t>(block)] + 3 * expert;
}

std::array<PackedRange, 3> PackedLayout::ExpertParts(int32_t block, int32_t expert) const {
  const auto first = static_cast<size_t>(ExpertEntry(block, expert));
  return {entries_[first], entries_[first + 1], entries_[first + 2]};
}

PackedRange PackedLayout::Expert(int32_t block, int32_t expert) const {
  const std::array<PackedRange, 3> parts = ExpertParts(block, expert);
  return {parts[0].offset, RoundUp(parts[2].end() - parts[0].offset)};
}

std::vector<PackedPiece> PackedLayout::Cut(int64_t target_bytes) const {
  std::vector<PackedPiece> pieces;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const auto [panel_bytes, num_panels] = shapes_[i];
    // Even, for FP8 scales; as many as make whole pages.
    const int64_t unit = std::lcm(int64_t{2}, kPackedAlign / std::gcd(panel_bytes, kPackedAlign));
    const int64_t step = RoundUp(std::max<int64_t>(target_bytes / panel_bytes, 1), unit);
    for (int64_t first = 0; first < num_panels; first += step) {
      const int64_t count = std::min(step, num_panels - first);
      pieces.push_back({static_cast<int32_t>(i),
                        static_cast<int32_t>(first),
                        static_cast<int32_t>(count),
                        {entries_[i].offset + first * panel_bytes, count * panel_bytes}});
    }
  }
  return pieces;
}

}  // namespace deepinfer
