#include "engine/sequence_masks.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/cpu_time.h"

namespace deepinfer {

SequenceMasks::SequenceMasks(int32_t vocab_size, std::vector<int32_t> end_ids)
    : num_words_((vocab_size + 31) / 32), end_ids_(std::move(end_ids)), free_(1 + kMaxDrafts) {}

void SequenceMasks::Begin(ConstraintMaker maker) {
  CHECK(!begun());
  maker_ = std::move(maker);
  begun_.store(true, std::memory_order_release);
}

const uint32_t* SequenceMasks::Row(int32_t row) const {
  CHECK_LT(row, num_rows_);
  const auto at = static_cast<size_t>(row);
  return free_[at] ? nullptr : words_.data() + at * static_cast<size_t>(num_words_);
}

void SequenceMasks::Continue(std::span<const int32_t> sampled, std::span<const int32_t> drafts) {
  CHECK(ready());
  CHECK_LT(drafts.size(), free_.size());
  sampled_.assign(sampled.begin(), sampled.end());
  drafts_.assign(drafts.begin(), drafts.end());
  ready_.store(false, std::memory_order_relaxed);
}

void SequenceMasks::Compute() {
  const double start = ThreadCpuSeconds();
  if (constraint_ == nullptr) {
    constraint_ = std::exchange(maker_, nullptr)();
    words_.resize(free_.size() * static_cast<size_t>(num_words_));
  }
  num_rows_ = 0;
  mask_seconds_ = 0.9 * mask_seconds_.value_or(0);
  for (const int32_t token : sampled_) {
    if (constraint_->Accept(token)) continue;
    status_ = Internal("structured output: token ", token, " came, which its grammar refuses");
    break;
  }
  if (status_.ok()) ComputeRows();
  seconds_ = ThreadCpuSeconds() - start;
}

// The grammar goes along the drafts and back. Behind what it forbids, or what ends the output,
// nothing will be verified.
void SequenceMasks::ComputeRows() {
  int32_t num_accepted = 0;
  FillRow();
  for (const int32_t draft : drafts_) {
    if (Ends(draft) || !constraint_->Accept(draft)) break;
    ++num_accepted;
    FillRow();
  }
  if (num_accepted > 0) constraint_->Rollback(num_accepted);
}

void SequenceMasks::FillRow() {
  const double start = ThreadCpuSeconds();
  const auto row = static_cast<size_t>(num_rows_++);
  const auto words = static_cast<size_t>(num_words_);
  free_[row] = !constraint_->FillMask(std::span(words_).subspan(row * words, words));
  mask_seconds_ = std::max(*mask_seconds_, ThreadCpuSeconds() - start);
}

bool SequenceMasks::Ends(int32_t token) const {
  return std::find(end_ids_.begin(), end_ids_.end(), token) != end_ids_.end();
}

}  // namespace deepinfer
