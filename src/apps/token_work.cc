#include "apps/token_work.h"

#include "kernels/formats/panels.h"

namespace deepinfer {
namespace {

class WorkCounter {
 public:
  explicit WorkCounter(const ModelConfig& config) : config_(config) {}

  void Add(const Matrix& w) {
    if (!w.empty()) Add(w.format, w.rows, w.cols);
  }

  void AddLayer(const BlockWeights& b) {
    AddHyper();
    AddHyper();
    for (const Matrix* w :
         {&b.wq_a, &b.wq_b, &b.wkv, &b.wo_a, &b.wo_b, &b.compressor_wkv, &b.compressor_wgate,
          &b.indexer_wk, &b.indexer_wq_b, &b.indexer_weights_proj, &b.gate, &b.engram.wkv,
          &b.shared_experts.w1, &b.shared_experts.w2, &b.shared_experts.w3}) {
      Add(*w);
    }
    // By shape: routed experts need not be in memory.
    const int32_t inner = config_.moe_intermediate_size, dim = config_.hidden_size;
    for (int32_t i = 0; i < config_.num_experts_per_tok; ++i) {
      Add(WeightFormat::kFp4, inner, dim);
      Add(WeightFormat::kFp4, inner, dim);
      Add(WeightFormat::kFp4, dim, inner);
    }
  }

  const TokenWork& work() const { return work_; }

 private:
  void Add(WeightFormat format, int32_t rows, int32_t cols) {
    work_.macs += int64_t{rows} * cols;
    work_.bytes += PackedBytes(format, rows, cols);
  }
  void AddHyper() {
    const int64_t elements =
        int64_t{2 + config_.hc_mult} * config_.hc_mult * config_.hc_mult * config_.hidden_size;
    work_.macs += elements;
    work_.bytes += elements * static_cast<int64_t>(sizeof(float));
  }

  const ModelConfig& config_;
  TokenWork work_;
};

}  // namespace

TokenWork CountTokenWork(const ModelConfig& config, const ModelWeights& weights) {
  WorkCounter counter(config);
  for (const BlockWeights& layer : weights.layers) counter.AddLayer(layer);
  counter.Add(weights.main_proj);
  for (const BlockWeights& draft : weights.mtp) counter.Add(draft.wkv);
  counter.Add(weights.head);
  return counter.work();
}

}  // namespace deepinfer
