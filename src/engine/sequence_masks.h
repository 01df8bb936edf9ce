// engine/sequence_masks.h: which tokens may come at the next positions of one sequence: at the one
// after its newest token, and behind each of its drafts.
//
// Life: not begun (the grammar is being built) -> computing -> ready -> computing -> ... Computing,
// it belongs to the mask workers; else to the executing thread. It stays with its sequence through
// preemption, and also when everything is computed anew, since the tokens stay the same.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "engine/token_constraint.h"

namespace deepinfer {

inline constexpr int32_t kMaxDrafts = 7;

class SequenceMasks {
 public:
  // end_ids: a draft that is one of these is the last that may be verified.
  SequenceMasks(int32_t vocab_size, std::vector<int32_t> end_ids);

  // ---- planning thread
  // The grammar is there: the masks at the beginning of the output are to be computed. The caller
  // hands the object to the mask workers.
  void Begin(ConstraintMaker maker);
  bool begun() const { return begun_.load(std::memory_order_acquire); }
  // What is to be computed has no use any more. Any thread.
  void Cancel() { cancelled_.store(true, std::memory_order_relaxed); }

  // ---- executing thread. Requires of all but ready(): ready().
  bool ready() const { return ready_.load(std::memory_order_acquire); }
  // Not ok: the constraint refused a token that its own mask allowed.
  const Status& status() const { return status_; }
  // Positions with a mask: the next one, and those behind drafts that may come.
  int32_t num_rows() const { return num_rows_; }
  // [ceil(vocab_size / 32)]; null: every token may come.
  const uint32_t* Row(int32_t row) const;
  // Processor time that they took.
  double seconds() const { return seconds_; }
  // `sampled` was appended to the sequence; `drafts` are guessed to follow. The caller hands the
  // object to the mask workers.
  void Continue(std::span<const int32_t> sampled, std::span<const int32_t> drafts);

  // ---- mask workers
  void Compute();
  void SetReady() { ready_.store(true, std::memory_order_release); }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  // Processor time of the slowest mask; forgotten by a tenth with each computation. None before
  // the first.
  std::optional<double> mask_seconds() const { return mask_seconds_; }

 private:
  void ComputeRows();
  void FillRow();
  bool Ends(int32_t token) const;

  const int32_t num_words_;
  const std::vector<int32_t> end_ids_;
  std::atomic<bool> begun_{false}, ready_{false}, cancelled_{false};
  ConstraintMaker maker_;
  std::unique_ptr<TokenConstraint> constraint_;
  std::vector<int32_t> sampled_, drafts_;
  std::vector<uint32_t> words_;  // [1 + kMaxDrafts, num_words_]
  std::vector<bool> free_;       // [1 + kMaxDrafts]: everything is allowed
  int32_t num_rows_ = 0;
  Status status_;
  double seconds_ = 0;
  std::optional<double> mask_seconds_;
};

}  // namespace deepinfer
