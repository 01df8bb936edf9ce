// engine/engine_core.h: the joint: one step = plan -> forward -> sample -> events.
//
// Small on purpose: who runs is schedule/scheduler's business, what a plan does to bytes
// engine/step_executor's, the next token model/sampler's, text engine/text_output's. What shares a
// step, how a prompt is cut and who was preempted changes no result, so anything may share a step
// with anything. In exact mode a result depends on the request alone; in bounded mode also on what
// the cache had of its prompt when it started.
// Structured output: Ready comes once the grammar is built; meanwhile the prompt is computed. Masks
// are computed beside the pass; who has none yet sits the step out. That, too, changes no result.
// Asynchronous (the default): while a step runs on a thread of its own, this one makes the next
// plan and turns the step before into events. Results are those of the synchronous mode.
// Threads: the planning thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/rng.h"
#include "base/status.h"
#include "cache/kv_memory.h"
#include "deepinfer/request.h"
#include "engine/constraint_builds.h"
#include "engine/mask_workers.h"
#include "engine/sequence.h"
#include "engine/step_executor.h"
#include "engine/step_runner.h"
#include "engine/tenant_table.h"
#include "schedule/scheduler.h"
#include "tokens/tokenizer.h"

namespace deepinfer {

// Log-probabilities that a prompt may give, (top n + 1) for each token: they are kept until Ready.
inline constexpr int64_t kMaxPromptLogprobs = int64_t{1} << 22;
inline constexpr int64_t kMaxStartDeadlineMs = int64_t{365} * 24 * 3600 * 1000;

struct EngineCoreOptions {
  SchedulerOptions scheduler;
  bool async = true;
  MaskOptions masks;
  int32_t num_step_times = 0;  // the newest ones kept for step_times()
  Duration min_pass_time{0};   // for tests of what happens while requests run
};

// What the engine runs on. All pointers outlive it.
struct EngineBackend {
  ForwardFn forward;
  std::function<void()> prepare;  // see ExecutorBackend
  ThreadPool* threads = nullptr;  // see ExecutorBackend
  KvMemory* memory = nullptr;
  Drafter* drafter = nullptr;            // null: nothing is drafted
  ConstraintSource* grammars = nullptr;  // null: no structured output
  const Tokenizer* tokenizer = nullptr;  // null: token ids only
  Rng* rng = nullptr;  // seeds of requests that have none, secret of the cache keys
  Clock* clock = nullptr;
  int32_t vocab_size = 0;
  int32_t eos_id = 0;
  Sha256Digest model_fingerprint = {};  // part of every cache key
};

struct EngineStats {
  SchedulerStats scheduler;
  int64_t steps = 0;
  int64_t plans_in_time = 0;  // made while the step before was still running
  int64_t plans_late = 0;     // made after it had ended, although there was something to plan
  int64_t drafts_verified = 0, drafts_accepted = 0;
  int64_t output_tokens = 0;
  double step_seconds = 0;  // of all steps, on the executing thread
  int64_t masks = 0;        // computed, of grammars
  double mask_seconds = 0;  // processor time of the mask threads, for these
  int64_t masks_late = 0;   // rows that sat a step out because theirs were not ready
  int64_t failures = 0;     // sequences that ended with an error
};

// One step, for `bench` and `verify`.
struct StepTimes {
  double plan_s = 0;  // planning, on the planning thread
  double step_s = 0;  // copies, pass and sampling, on the executing thread
  int32_t rows = 0, num_sequences = 0;
};

class EngineCore {
 public:
  // Requires: CheckSchedulerOptions passed; backend.memory has sizes that fit the options.
  EngineCore(EngineBackend backend, const EngineCoreOptions& options);
  ~EngineCore();  // waits for steps in flight

  // As Engine::Submit of deepinfer/engine.h.
  StatusOr<RequestId> Submit(Request request);
  void Cancel(RequestId request);
  bool HasWork() const;
  // How many more requests may wait before Submit() refuses them.
  int32_t queue_room() const { return scheduler_.queue_room(); }
  std::vector<Event> Step();

  EngineStats stats() const;
  // The newest options.num_step_times steps, oldest first.
  std::vector<StepTimes> step_times() const;
  const SchedulerOptions& options() const { return options_.scheduler; }
  const Scheduler& scheduler() const { return scheduler_; }
  // Preempts everything that runs, before the next step; for `verify` and tests.
  void PreemptAll();
  // Runs what is in flight and forgets every cached page and snapshot.
  void ClearCache();

 private:
  Status CheckRequest(const Request& request) const;
  Status CheckStructured(const StructuredOutput& structured) const;
  Status CheckLengths(const Request& request) const;
  static Status CheckPromptLogprobs(const Request& request);
  int32_t MaxOutput(const Request& request) const;
  PageKey RootOf(const Request& request);
  StatusOr<std::unique_ptr<Sequence>> MakeSequence(const std::shared_ptr<AdmittedRequest>& owner,
                                                   int32_t choice, const PageKey& root) const;
  struct Admission {
    MonotonicTime arrival;
    PageKey root;      // of the chains of its pages
    SequenceId first;  // its first choice
  };
  Status AddChoice(const std::shared_ptr<AdmittedRequest>& owner, int32_t choice,
                   Admission& admission);
  void GiveTenantBack(int32_t tenant);

  void TakeGrammars();
  void TakeGrammar(std::span<Sequence* const> choices, ConstraintMaker maker);
  void FailGrammar(std::span<Sequence* const> choices, const Status& status);
  void BeginMasks(Sequence& sequence);
  void FailExpired();
  bool PlanNext();
  void TakeResults(StepJob& job);
  void KeepTimes(const StepJob& job);
  void TakeOutcome(const PlannedRows& rows, RowsOutcome& outcome);
  void SendTokens(Sequence& sequence, RowsOutcome& outcome);
  void SendReady(Sequence& sequence);
  void Finish(Sequence& sequence, FinishEvent how);
  void Fail(Sequence& sequence, const Status& status);
  void Drop(Sequence& sequence);
  void DropForgotten();

  const EngineBackend backend_;
  const EngineCoreOptions options_;
  ConstraintBuilds builds_;
  std::unique_ptr<MaskWorkers> mask_workers_;  // none without grammars
  Scheduler scheduler_;
  StepExecutor executor_;
  std::vector<std::unique_ptr<Sequence>> sequences_;  // by SequenceId; null: none
  std::vector<SequenceId> ending_;                    // ended, not forgotten yet
  TenantTable tenants_;
  PageKey cache_root_;
  int64_t next_id_ = 1;
  std::vector<Event> events_;  // for the next return of Step()
  StepJob jobs_[2];
  int next_job_ = 0;
  std::vector<SequenceId> expired_;
  EngineStats stats_;
  std::vector<StepTimes> step_times_;   // ring
  std::unique_ptr<StepRunner> runner_;  // last: its thread uses what is above
};

// The public form of a failure: unlisted codes become kInternal.
Error ToError(const Status& status);

}  // namespace deepinfer
