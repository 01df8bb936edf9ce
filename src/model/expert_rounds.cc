#include "model/expert_rounds.h"

#include <algorithm>

#include "base/check.h"

namespace deepinfer {

ExpertRounds::ExpertRounds(ExpertSource& source, int32_t block, const ExpertsParams& params)
    : source_(source),
      block_(block),
      params_(params),
      chosen_(params.experts, params.experts + int64_t{params.num_tokens} * params.topk),
      matrices_(static_cast<size_t>(params.num_experts)) {
  std::sort(chosen_.begin(), chosen_.end());
  chosen_.erase(std::unique(chosen_.begin(), chosen_.end()), chosen_.end());
  params_.matrices = matrices_.data();
  // One round if all fit; else two rounds share the room, one in use and one coming in.
  const auto capacity = static_cast<size_t>(source.capacity());
  CHECK_GE(capacity, size_t{2});
  round_size_ = chosen_.size() <= capacity ? capacity : capacity / 2;
  num_rounds_ = (chosen_.size() + round_size_ - 1) / round_size_;
  if (num_rounds_ > 0) fetch_ = source_.Start(block_, Round(0));
}

std::span<const int32_t> ExpertRounds::Round(size_t index) const {
  const size_t begin = index * round_size_;
  return std::span(chosen_).subspan(begin, std::min(round_size_, chosen_.size() - begin));
}

Status ExpertRounds::Run(const Backend& backend) {
  for (size_t round = 0; round < num_rounds_; ++round) {
    DI_RETURN_IF_ERROR(fetch_->Wait(matrices_.data()));
    std::unique_ptr<ExpertFetch> next;
    if (round + 1 < num_rounds_) next = source_.Start(block_, Round(round + 1));
    RunRound(backend, Round(round));
    fetch_ = std::move(next);
  }
  return OkStatus();
}

void ExpertRounds::RunRound(const Backend& backend, std::span<const int32_t> experts) {
  if (num_rounds_ == 1) return Experts(backend, params_);
  std::vector<uint8_t> runs(matrices_.size(), 0);
  for (const int32_t expert : experts) runs[static_cast<size_t>(expert)] = 1;
  std::vector<int32_t> ids(params_.experts,
                           params_.experts + int64_t{params_.num_tokens} * params_.topk);
  for (int32_t& id : ids) {
    if (runs[static_cast<size_t>(id)] == 0) id = -1;
  }
  ExpertsParams params = params_;
  params.experts = ids.data();
  Experts(backend, params);
}

}  // namespace deepinfer
