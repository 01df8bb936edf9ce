// schedule/testing/scheduler_driver.h: plays the engine for a Scheduler, without a model. Tests
// only.
//
// A sequence's tokens are counted up, how many drafts are accepted is the test's choice. Every plan
// is executed over shadows: what a page, a state, a save or a slot would hold is kept as a hash of
// the tokens that it stands for, and what rows would read is compared. So a page that is given away
// too early, shared wrongly, not reserved or not copied stops the test.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "cache/page_key.h"
#include "schedule/scheduler.h"

namespace deepinfer::testing {

// The real model's shape.
inline constexpr ReplayShape kRealReplayShape = {
    .window = 128, .verify_width = 6, .num_layers = 40, .num_encoder_layers = 20, .keep = 140};

struct DriverRequest {
  std::vector<int32_t> prompt;
  int32_t max_output = 1;
  int32_t tenant = 0;
  int32_t priority = 0;
  int64_t deadline_ms = -1;  // from now; -1: none
  bool whole_prompt = false;
  bool scores_prompt = false;
  int after = -1;       // handle of the first choice
  bool held = false;    // until Release()
  int32_t accepts = 0;  // drafts accepted in each verification
};

// What became of a sequence.
enum class DriverEnd : uint8_t { kNone, kDone, kCancelled, kExpired, kFailed };

struct DriverSequence {
  DriverSequence(const DriverRequest& request, const PageKey& root);

  SequenceId id;
  DriverRequest request;
  std::vector<int32_t> tokens;   // prompt, then output
  std::vector<uint64_t> hashes;  // one a token: of all tokens up to it
  PageKeyChain keys;
  int32_t num_computed = 0;
  int32_t num_cached = 0;  // once it has started
  int32_t num_drafts = 0;  // of the next verification
  int32_t fail_in = -1;    // rows of this execution, counted from 0, fail
  int32_t sits_out = 0;    // so many of the next rows that sample give no token
  DriverEnd end = DriverEnd::kNone;
  bool full = false;        // executed its last rows
  bool loses_load = false;  // the next page or snapshot that is loaded for it is damaged
  bool lost = false;        // one was: no rows until it starts anew
  std::vector<int32_t> pages;
  int32_t state = -1;
  uint64_t state_hash = 0;  // what its state has to hold

  int32_t num_tokens() const { return static_cast<int32_t>(tokens.size()); }
  int32_t num_prompt() const { return static_cast<int32_t>(request.prompt.size()); }
  int32_t num_output() const { return num_tokens() - num_prompt(); }
  bool alive() const { return end == DriverEnd::kNone; }
};

class SchedulerDriver {
 public:
  SchedulerDriver(const SchedulerOptions& options, const CacheSizes& sizes);

  // Handles count up from 0 and are never given again.
  StatusOr<int> TryAdd(const DriverRequest& request);
  int Add(const DriverRequest& request);  // Requires: it is not refused
  void Cancel(int handle);
  void Preempt(int handle);
  void Release(int handle);

  // One more plan, of two at most. False: nothing can run.
  bool Plan();
  // Runs the oldest plan; then tells its results.
  void Execute();
  void Commit();
  // Expires, plans, executes, commits. False: nothing could run.
  bool Step();
  // The same, but with the next plan made before this one is executed.
  bool StepAhead();
  void Run();  // until nothing is left to do

  const StepPlan& plan() const { return plans_[newest_]; }  // the newest
  const DriverSequence& At(int handle) const { return *sequences_[static_cast<size_t>(handle)]; }
  DriverSequence& At(int handle) { return *sequences_[static_cast<size_t>(handle)]; }
  int num_sequences() const { return static_cast<int>(sequences_.size()); }
  int HandleOf(SequenceId id) const { return handles_[static_cast<size_t>(id.v)]; }
  // The rows of a sequence in the newest plan; null: none.
  const PlannedRows* RowsOf(int handle) const;
  // Sequences that ended since the last call, in that order.
  std::vector<int> TakeEnded() { return std::exchange(ended_, {}); }

  Scheduler& scheduler() { return scheduler_; }
  const Scheduler& scheduler() const { return scheduler_; }
  void Advance(Duration d) { now_ = now_ + d; }
  MonotonicTime now() const { return now_; }
  int num_in_flight() const { return num_in_flight_; }
  // CHECKs that every page, state, save and slot is free, cached or ready, and none is in use.
  void CheckNothingHeld() const;

 private:
  using PageContent = std::vector<uint64_t>;  // one a token; empty: nothing known

  DriverSequence& Of(SequenceId id) { return At(HandleOf(id)); }
  void RunCopy(const StepPlan& plan, const PlannedCopy& copy);
  bool LosesLoad(const PlannedCopy& copy);
  RowsResult RunRows(const StepPlan& plan, const PlannedRows& rows);
  void ReadAndWrite(const PlannedRows& rows, DriverSequence& sequence, int32_t begin, int32_t end);
  void Sample(const PlannedRows& rows, DriverSequence& sequence, int32_t num_rows);
  void End(int handle, DriverEnd how);

  const SchedulerOptions options_;
  const CacheSizes sizes_;
  Scheduler scheduler_;
  const PageKey root_ = {};
  MonotonicTime now_ = {1};
  std::vector<std::unique_ptr<DriverSequence>> sequences_;
  std::vector<int> handles_;  // by SequenceId
  std::vector<int> ended_;
  std::vector<SequenceId> expired_;

  StepPlan plans_[2];
  int newest_ = 1;
  int num_in_flight_ = 0;
  std::vector<RowsResult> results_;       // of the oldest plan, once executed
  std::vector<PlannedCopy> lost_copies_;  // of the same

  std::vector<PageContent> pages_, host_pages_;
  std::vector<uint64_t> states_, saves_, slots_;
};

// `count` tokens that no other seed gives.
std::vector<int32_t> MakePrompt(int32_t seed, int32_t count);

}  // namespace deepinfer::testing
