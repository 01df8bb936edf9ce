#include "model/expert_rounds.h"

#include <algorithm>

#include "base/check.h"

namespace deepinfer {

ExpertRounds::ExpertRounds(ExpertSource& source, int32_t max_experts)
    : source_(source),
      marks_(static_cast<size_t>(max_experts)),
      matrices_(static_cast<size_t>(max_experts)) {
  CHECK_GE(source.capacity(), 2);
  for (auto& fetch : fetches_) fetch = source.NewFetch(max_experts);
  chosen_.reserve(static_cast<size_t>(max_experts));
}

void ExpertRounds::Begin(int32_t block, const ExpertsParams& params) {
  block_ = block;
  params_ = params;
  params_.matrices = matrices_.data();
  std::fill(marks_.begin(), marks_.end(), uint8_t{0});
  const int64_t places = int64_t{params.num_tokens} * params.topk;
  for (int64_t i = 0; i < places; ++i) marks_[static_cast<size_t>(params.experts[i])] = 1;
  chosen_.clear();
  for (int32_t e = 0; e < params.num_experts; ++e) {
    if (marks_[static_cast<size_t>(e)] != 0) chosen_.push_back(e);
  }
  // One round if all fit; else two rounds share the room, one in use and one coming in.
  const auto capacity = static_cast<size_t>(source_.capacity());
  round_size_ = chosen_.size() <= capacity ? capacity : capacity / 2;
  num_rounds_ = (chosen_.size() + round_size_ - 1) / round_size_;
  if (num_rounds_ > 0) FetchOf(0).Start(block_, Round(0));
}

std::span<const int32_t> ExpertRounds::Round(size_t index) const {
  const size_t begin = index * round_size_;
  return std::span(chosen_).subspan(begin, std::min(round_size_, chosen_.size() - begin));
}

Status ExpertRounds::Run(const Backend& backend) {
  const Status status = RunAll(backend);
  for (auto& fetch : fetches_) fetch->End();
  return status;
}

Status ExpertRounds::RunAll(const Backend& backend) {
  for (size_t round = 0; round < num_rounds_; ++round) {
    DI_RETURN_IF_ERROR(FetchOf(round).Wait(matrices_.data()));
    if (round + 1 < num_rounds_) FetchOf(round + 1).Start(block_, Round(round + 1));
    RunRound(backend, Round(round));
    FetchOf(round).End();
  }
  return OkStatus();
}

void ExpertRounds::RunRound(const Backend& backend, std::span<const int32_t> experts) {
  if (num_rounds_ == 1) return Experts(backend, params_);
  std::fill(marks_.begin(), marks_.end(), uint8_t{0});
  for (const int32_t expert : experts) marks_[static_cast<size_t>(expert)] = 1;
  const int64_t places = int64_t{params_.num_tokens} * params_.topk;
  int32_t* const ids = ids_.Get(places);
  for (int64_t i = 0; i < places; ++i) {
    const int32_t id = params_.experts[i];
    ids[i] = marks_[static_cast<size_t>(id)] != 0 ? id : -1;
  }
  ExpertsParams params = params_;
  params.experts = ids;
  Experts(backend, params);
}

}  // namespace deepinfer
