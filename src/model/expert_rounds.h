// model/expert_rounds.h: the routed experts of a block, as many at a time as their source holds.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernels/experts/experts.h"
#include "model/expert_source.h"
#include "model/scratch.h"

namespace deepinfer {

// Experts on whom a pass depends come in from Begin() on; what the caller does before Run() hides
// the time of the first round, the products of a round that of the next. The result does not depend
// on the number of rounds. Serves one block after the other.
class ExpertRounds {
 public:
  // max_experts: of a block. `source` outlives the object.
  ExpertRounds(ExpertSource& source, int32_t max_experts);

  // Takes the memory for blocks with so many places (num_tokens * topk), in bytes MemoryFor().
  void Reserve(int64_t max_places) { ids_.Reserve(max_places); }
  static int64_t MemoryFor(int64_t max_places) { return Scratch<int32_t>::BytesOf(max_places); }

  // `params` as for Experts, without matrices; what they view outlives Run().
  void Begin(int32_t block, const ExpertsParams& params);
  // Runs all of them. Errors: as ExpertFetch::Wait; what was begun is over then, too.
  Status Run(const Backend& backend);

 private:
  Status RunAll(const Backend& backend);
  std::span<const int32_t> Round(size_t index) const;
  ExpertFetch& FetchOf(size_t round) { return *fetches_[round % 2]; }
  void RunRound(const Backend& backend, std::span<const int32_t> experts);

  ExpertSource& source_;
  std::unique_ptr<ExpertFetch> fetches_[2];  // one round is in use while the next comes in
  int32_t block_ = 0;
  ExpertsParams params_;
  std::vector<uint8_t> marks_;            // [E] of a block, then of a round
  std::vector<int32_t> chosen_;           // distinct, ascending
  std::vector<ExpertMatrices> matrices_;  // [E]
  Scratch<int32_t> ids_;                  // [T, k] those of a round
  size_t round_size_ = 0, num_rounds_ = 0;
};

}  // namespace deepinfer
