#include "model/mapped_experts.h"

#include <limits>
#include <vector>

#include "base/large_block.h"
#include "kernels/formats/panels.h"

namespace deepinfer {
namespace {

class MappedFetch : public ExpertFetch {
 public:
  MappedFetch(const std::vector<ExpertWeights>& all, std::span<const int32_t> experts)
      : all_(all), experts_(experts.begin(), experts.end()) {}

  Status Wait(ExpertMatrices* matrices) override {
    for (const int32_t expert : experts_) matrices[expert] = all_[static_cast<size_t>(expert)];
    return OkStatus();
  }

 private:
  const std::vector<ExpertWeights>& all_;
  const std::vector<int32_t> experts_;
};

class MappedExperts : public ExpertSource {
 public:
  explicit MappedExperts(const ModelWeights& weights) : weights_(weights) {}

  int32_t capacity() const override { return std::numeric_limits<int32_t>::max(); }

  std::unique_ptr<ExpertFetch> Start(int32_t block, std::span<const int32_t> experts) override {
    const std::vector<ExpertWeights>& all = BlockOf(weights_, block).experts;
    for (const int32_t expert : experts) {
      const ExpertWeights& e = all[static_cast<size_t>(expert)];
      for (const Matrix* m : {&e.w1, &e.w3, &e.w2}) {
        if (m->panels == nullptr) continue;
        const int64_t bytes = PackedBytes(m->format, m->rows, m->cols);
        AskForPages({m->panels, static_cast<size_t>(bytes)});
      }
    }
    counts_.fetched += std::ssize(experts);
    return std::make_unique<MappedFetch>(all, experts);
  }

  int64_t memory_bytes() const override { return 0; }

 private:
  const ModelWeights& weights_;
};

}  // namespace

std::unique_ptr<ExpertSource> MakeMappedExperts(const ModelWeights& weights) {
  return std::make_unique<MappedExperts>(weights);
}

}  // namespace deepinfer
