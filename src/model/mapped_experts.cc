#include "model/mapped_experts.h"

#include <limits>
#include <vector>

#include "base/large_block.h"
#include "kernels/formats/panels.h"

namespace deepinfer {
namespace {

class MappedExperts : public ExpertSource {
 public:
  explicit MappedExperts(const ModelWeights& weights) : weights_(weights) {}

  int32_t capacity() const override { return std::numeric_limits<int32_t>::max(); }
  std::unique_ptr<ExpertFetch> NewFetch(int32_t max_experts) override {
    return std::make_unique<Fetch>(*this, max_experts);
  }
  int64_t memory_bytes() const override { return 0; }

 private:
  class Fetch : public ExpertFetch {
   public:
    Fetch(MappedExperts& source, int32_t max_experts) : source_(source) {
      experts_.reserve(static_cast<size_t>(max_experts));
    }

    void Start(int32_t block, std::span<const int32_t> experts) override {
      all_ = &BlockOf(source_.weights_, block).experts;
      experts_.assign(experts.begin(), experts.end());
      for (const int32_t expert : experts) AskFor((*all_)[static_cast<size_t>(expert)]);
      source_.counts_.fetched += std::ssize(experts);
    }
    Status Wait(ExpertMatrices* matrices) override {
      for (const int32_t expert : experts_) matrices[expert] = (*all_)[static_cast<size_t>(expert)];
      return OkStatus();
    }
    void End() override { experts_.clear(); }

   private:
    MappedExperts& source_;
    const std::vector<ExpertWeights>* all_ = nullptr;  // of the block
    std::vector<int32_t> experts_;
  };

  static void AskFor(const ExpertWeights& expert) {
    for (const Matrix* m : {&expert.w1, &expert.w3, &expert.w2}) {
      if (m->panels == nullptr) continue;
      const int64_t bytes = PackedBytes(m->format, m->rows, m->cols);
      AskForPages({m->panels, static_cast<size_t>(bytes)});
    }
  }

  const ModelWeights& weights_;
};

}  // namespace

std::unique_ptr<ExpertSource> MakeMappedExperts(const ModelWeights& weights) {
  return std::make_unique<MappedExperts>(weights);
}

}  // namespace deepinfer
