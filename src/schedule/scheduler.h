// schedule/scheduler.h: who runs in the next step, with which rows, pages and slots.
//
// States of a sequence:
//   blocked   a further choice of a request whose first choice still computes their prompt
//   waiting   in the queue (schedule/waiting_queue.h has its order)
//   running   has a state slot; its rows are prefill until all known tokens are computed, then
//             decode
//   preempted its state and pages are in host memory; resumes exactly where it was
//   ended     Finish() was called; remembered until no plan in flight names it
// A sequence that is held (what it may say is not known yet) computes its prompt and then rests:
// its decode rows come once it is released. While it rests it gives way as soon as nothing else can
// run, and preempted it neither comes back nor stands in the way of others.
//
// A plan holds every decode row first, then what was preempted, then new sequences, then prefill
// chunks: as many rows as the token budget and the time of a step allow; the higher priority first,
// plus 1 for every 10 s without rows, then who got none for longest. A sequence that never started
// and lacks room lets others start (cases R05, R06). Who was preempted has its claim already: they
// come back in order of admission, none overtakes another, and meanwhile nothing new starts.
//
// Plans may be made ahead: what a step in flight will give is then known within bounds (a decode
// step gives at least one token, at most its rows), and pages and snapshots are planned for both.
// Rows may also sit a step out: they give no token, and what was planned behind them then runs
// where they stood, on pages that are reserved already.
// Ids are given to a new owner as soon as the old owner's last use is planned, because plans are
// executed in order.
//
// Threads: the planning thread only. Plan() allocates nothing once every container has met its
// largest size (they are reserved at construction and in Add).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "cache/host_tier.h"
#include "cache/page_key.h"
#include "cache/page_pool.h"
#include "cache/snapshot_table.h"
#include "schedule/cost_model.h"
#include "schedule/id_pool.h"
#include "schedule/replay_plan.h"
#include "schedule/step_plan.h"
#include "schedule/waiting_queue.h"

namespace deepinfer {

struct SchedulerOptions {
  int32_t max_num_seqs = 64;              // running and preempted sequences that do not rest
  int32_t max_num_batched_tokens = 2048;  // rows of a step
  int32_t max_model_len = 4096;           // prompt + output of a sequence
  int32_t max_waiting = 4096;             // sequences that have not started, at most kMaxWaiting
  int32_t num_drafts = 0;                 // verified beside the newest token of a decode row set
  ReplayMode replay = ReplayMode::kBounded;
  ReplayShape shape;
  bool prefix_cache = true;
  // Step time aimed at while others decode, by the total context of the sequence whose prefill
  // leads: < 16K, < 64K, < 256K, more. Source: serving.md 4.2.
  double target_step_s[4] = {0.100, 0.250, 0.500, 0.800};
  int32_t max_page_saves = 64;    // pages copied to the host tier in a step
  int32_t max_scored_rows = 256;  // rows of a step of prompts that are scored: each gives V logits
};
// The queue's memory is taken at start.
inline constexpr int32_t kMaxWaiting = 65'536;
// Errors: kInvalidArgument naming the option, what was found and the nearest value that works.
Status CheckSchedulerOptions(const SchedulerOptions& options);

struct CacheSizes {
  int32_t num_pages = 0;
  int32_t num_host_pages = 0;
  int32_t num_states = 0;
  int32_t num_saves = 0;
  int32_t num_slots = 0;
};

// What scheduling knows of a sequence.
struct SequenceSpec {
  int32_t tenant = 0;
  int32_t priority = 0;  // higher first
  MonotonicTime arrival;
  MonotonicTime start_deadline = kNoDeadline;  // the first row is planned by then, or never
  int32_t num_prompt = 0;                      // tokens
  int32_t max_output = 0;                      // tokens; 0: the prompt is only computed
  // The sequence's tokens so far; grows by AppendToken of the owner. Outlives the sequence.
  const PageKeyChain* keys = nullptr;
  // Every row runs every layer and nothing is taken from the cache: prompt log-probabilities.
  bool whole_prompt = false;
  bool scores_prompt = false;  // every prompt row gives logits; needs whole_prompt
  SequenceId after;            // waits until this one has computed its prompt or ended; -1: none
  bool held = false;           // rests behind its prompt until Release()
};

// Counters since the start, and gauges (num_x of now).
struct SchedulerStats {
  int64_t num_plans = 0;
  int64_t rows = 0, decode_rows = 0, replay_rows = 0;
  int64_t chunks = 0;                            // row sets of prefill
  int64_t prompt_tokens = 0, cached_tokens = 0;  // of sequences that started
  int64_t hits_with_slot = 0, hits_replayed = 0;
  int64_t preempted = 0, resumed = 0, preempt_recomputed = 0;
  int64_t pages_saved = 0, pages_loaded = 0;
  int64_t lost = 0;  // sequences that met a damaged copy and were computed again
  int64_t snapshots_taken = 0;
  int32_t num_waiting = 0, num_running = 0, num_preempted = 0;
};

// What a step did for one planned row set.
struct RowsResult {
  bool ok = true;  // false: KV of these rows is useless; the owner will call Finish
  bool snapshot_taken = false;
  int32_t num_computed = 0;  // positions whose KV is now present
  // Prompt + output tokens now known. Rows that sat out gave none, and num_computed is one less.
  int32_t num_tokens = 0;
};

class Scheduler {
 public:
  // Requires: CheckSchedulerOptions passed; sizes.num_states >= max_num_seqs.
  Scheduler(const SchedulerOptions& options, const CacheSizes& sizes);
  ~Scheduler();

  // Errors: kResourceExhausted if max_waiting sequences wait or are blocked, or the pages of the
  // whole sequence would not fit an empty cache.
  StatusOr<SequenceId> Add(const SequenceSpec& spec);
  // Takes everything away from a sequence, in any state. Idempotent.
  void Finish(SequenceId sequence);
  // It is no longer held, whatever its state.
  void Release(SequenceId sequence);
  // False once an ended sequence is forgotten.
  bool Exists(SequenceId sequence) const;

  // Fills `plan`. Returns false, with an empty plan, if nothing can run now.
  // num_in_flight: plans made whose results did not come yet (0 or 1).
  bool Plan(MonotonicTime now, int32_t num_in_flight, StepPlan& plan);
  // The copies of a plan were made, or have failed. Before the results of its rows.
  void CommitCopies(const StepPlan& plan);
  // The results of a plan, one a PlannedRows, in plan order; `new_tokens` are already in the keys.
  void Commit(const PlannedRows& rows, const RowsResult& result);
  // A copy of a plan failed: what `copy` loaded is damaged and is found no more. The owner calls
  // Lose for its sequence once the plan's results are in.
  void Forget(const PlannedCopy& copy);
  // What was loaded for this sequence is damaged, or its pass failed: it waits again and computes
  // everything anew, as a miss. Its rows in plans in flight have to be dropped, that is to be
  // committed as not ok. Not of a running or preempted sequence: nothing happens.
  void Lose(SequenceId sequence);
  // What this sequence computed is wrong (its logits were no numbers): nobody finds its pages and
  // snapshots any more. The owner calls Finish next.
  void Distrust(SequenceId sequence);
  // How long the rows that a step really ran took, for the cost model. No rows: nothing is learnt.
  void Learn(const StepLoad& load, double seconds);

  // Sequences whose start_deadline passed before a row of them was planned; the owner calls Finish
  // for each.
  void TakeExpired(MonotonicTime now, std::vector<SequenceId>& expired);

  // How many more Add() will take; 0 also while more wait again than that.
  int32_t queue_room() const {
    return std::max(0, queue_.capacity() - queue_.size() - num_blocked_);
  }
  // Nobody of this tenant is known any more; its number may be given to another.
  void ForgetTenant(int32_t tenant) { queue_.ForgetTenant(tenant); }
  bool HasWork() const;  // anything waiting, running or preempted
  // Prompt tokens found in the cache when it started.
  int32_t num_cached(SequenceId sequence) const;
  SchedulerStats stats() const;
  const CostModel& cost_model() const { return cost_model_; }
  const PagePool& pages() const { return pages_; }
  const HostTier& host() const { return host_; }
  const SnapshotTable& snapshots() const { return snapshots_; }
  int32_t num_free_states() const { return states_.num_free(); }
  int32_t num_free_saves() const { return saves_.num_free(); }
  // Preempts a running sequence at the next plan; without room in host memory it is computed again,
  // unless a plan in flight has rows of it. For `verify` and tests.
  void RequestPreemption(SequenceId sequence);
  // Forgets every cached page and snapshot; host copies too.
  void ClearCache();
  void CheckInvariants() const;

 private:
  enum class State : uint8_t { kFree, kBlocked, kWaiting, kRunning, kPreempted, kEnded };
  struct Entry;
  struct Hit;

  Entry& At(SequenceId id);
  const Entry& At(SequenceId id) const;
  void TakeSnapshot(Entry& entry, const PlannedRows& rows);
  void Unblock(SequenceId first);
  void Free(Entry& entry);

  // ---- scheduler_plan.cc: one plan
  void PlanPageSaves();
  void PlanPreemptions();
  void PlanDecodeRows();
  int32_t RowsKeptFromDrafts() const;
  bool PlanResumes();
  void PlanStarts(MonotonicTime now);
  void PlanPrefillRows();
  int32_t ChunkOf(const Entry& entry, bool first) const;
  void AddRows(Entry& entry, PlannedRows rows, int32_t num_old_pages);
  void AttachSnapshot(PlannedRows& rows, int32_t end);
  bool AnyWouldRun() const;
  bool BreakDeadlock();
  int32_t RowsLeft() const { return options_.max_num_batched_tokens - plan_->num_rows; }
  int32_t MaxReplayRows() const {
    return options_.max_num_batched_tokens - options_.max_num_seqs + 1;
  }
  int32_t RingRows() const { return options_.shape.window + options_.shape.verify_width; }

  // ---- scheduler_memory.cc: pages, states, slots
  Hit FindHit(const Entry& entry) const;
  int32_t PromisedPages() const;
  bool Start(Entry& entry);
  void BeginRunning(Entry& entry, const ReplayPlan& replay);
  bool Resume(Entry& entry);
  void LoadHostPage(Entry& entry, int32_t i, int32_t host_page);
  void AddCopy(PlannedCopy copy, const Entry* with_pages);
  bool GrowPages(Entry& entry, int32_t num_tokens);
  Entry* NextVictim(const Entry& entry, const Entry* after) const;
  bool Preempt(Entry& entry);
  void PreemptByRecompute(Entry& entry);
  void WaitAnew(Entry& entry);
  void PublishPages(Entry& entry);
  void ReleaseDevice(Entry& entry);
  void ReleaseMemory(Entry& entry);

  const SchedulerOptions options_;
  PagePool pages_;
  HostTier host_;
  SnapshotTable snapshots_;
  IdPool states_, saves_;
  WaitingQueue queue_;
  CostModel cost_model_;
  SchedulerStats stats_;
  int64_t next_order_ = 0;
  int32_t num_blocked_ = 0;
  std::vector<std::unique_ptr<Entry>> entries_;
  std::vector<int32_t> free_entries_;
  std::vector<Entry*> running_;    // in order of admission
  std::vector<Entry*> preempted_;  // in order of admission
  struct PendingSave {             // a published page without a copy in the host tier
    int32_t page;
    PageKey key;
  };
  std::vector<PendingSave> pending_saves_;

  // Of the plan that is being made.
  StepPlan* plan_ = nullptr;
  MonotonicTime now_;
  int32_t num_scored_rows_ = 0;
  int64_t num_plans_ = 0;
  StepLoad load_;
  std::vector<Entry*> batch_;  // the sequences looked at
  std::vector<int32_t> scratch_pages_;
};

}  // namespace deepinfer
