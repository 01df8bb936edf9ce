// engine/testing/fake_model.h: a model whose KV proves where it came from. Tests only.
//
// Every position's record in the pages and in every ring holds a hash of all tokens up to it. A row
// is computed from the record before it, and checks everything that the real model would read: the
// pages of all earlier positions (the hash covers them), the window in each ring, what a prefix hit
// left in place. A page, ring or snapshot that belongs to somebody else stops the test.
// Logits are a function of that hash (never EOS), or of the tokens, if a test gives one.
#pragma once

#include <atomic>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "model/forward_batch.h"

namespace deepinfer::testing {

class FakeModel {
 public:
  static constexpr int32_t kWindow = 8, kDraftLength = 5, kVerifyWidth = 1 + kDraftLength;
  static constexpr int32_t kEncoderRings = 2, kDecoderRings = 2, kKeep = 20;
  static constexpr int32_t kEos = 1;

  // logits(tokens so far) -> the row for the next one.
  using LogitsFn = std::function<std::vector<float>(std::span<const int32_t>)>;

  explicit FakeModel(int32_t vocab_size, LogitsFn logits = nullptr);

  static KvShape Shape();
  // The row for the token after these, without a LogitsFn.
  static std::vector<float> LogitsAfter(std::span<const int32_t> tokens, int32_t vocab_size);
  StatusOr<std::span<const float>> Forward(const ForwardBatch& batch);

  // Rows of every pass so far.
  const std::vector<int32_t>& pass_rows() const { return pass_rows_; }
  int64_t num_rows() const { return num_rows_; }
  // The pass with this number, counted from 1, fails.
  void FailPass(int64_t number) { failing_pass_ = number; }
  // From another thread, too. A pass that fails has written garbage where its rows go.
  void FailNextPasses(int32_t count) { num_failing_passes_ = count; }
  void FailNextPass() { FailNextPasses(1); }
  // Every pass fails that has a row of this token.
  void FailToken(int32_t token) { failing_token_ = token; }
  // Rows whose newest token is this one give logits that are not numbers.
  void SpoilToken(int32_t token) { spoiled_token_ = token; }

 private:
  bool Fails(const ForwardBatch& batch);
  static void WriteGarbage(const ForwardSegment& segment);
  void RunSegment(const ForwardSegment& segment);
  void CheckWindow(const ForwardSegment& segment, int32_t ring, int32_t position, int32_t begin,
                   int32_t stored_from);
  void StoreRings(const ForwardSegment& segment);
  void AddLogits(const ForwardSegment& segment, int32_t position);

  const int32_t vocab_size_;
  const LogitsFn logits_fn_;
  std::vector<uint64_t> hashes_;  // of the running segment's rows
  std::vector<float> logits_;
  std::vector<int32_t> pass_rows_;
  int64_t num_rows_ = 0;
  int64_t failing_pass_ = 0;
  std::atomic<int32_t> num_failing_passes_{0};
  std::atomic<int32_t> failing_token_{-1};
  int32_t spoiled_token_ = -1;
};

}  // namespace deepinfer::testing
