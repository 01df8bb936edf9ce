// model/expert_rounds.h: the routed experts of a block, as many at a time as their source holds.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernels/experts/experts.h"
#include "model/expert_source.h"

namespace deepinfer {

// Experts on whom a pass depends come in from construction on; what the caller does before Run()
// hides the time of the first round, the products of a round that of the next.
// The result does not depend on the number of rounds.
class ExpertRounds {
 public:
  // `params` as for Experts, without matrices. `source` and what `params` views outlive the object.
  ExpertRounds(ExpertSource& source, int32_t block, const ExpertsParams& params);

  // Runs all of them. Errors: as ExpertFetch::Wait.
  Status Run(const Backend& backend);

 private:
  std::span<const int32_t> Round(size_t index) const;
  void RunRound(const Backend& backend, std::span<const int32_t> experts);

  ExpertSource& source_;
  const int32_t block_;
  ExpertsParams params_;
  std::vector<int32_t> chosen_;  // distinct, ascending
  size_t round_size_ = 0, num_rounds_ = 0;
  std::vector<ExpertMatrices> matrices_;  // [E]
  std::unique_ptr<ExpertFetch> fetch_;    // of the next round to run
};

}  // namespace deepinfer
