// A step allocates nothing once everything has met its largest size: planning, copies, the pass of
// the real model, sampling, verification, snapshots. Text and events may, and so may admission.
#include <gtest/gtest.h>

#include <thread>

#include "base/testing/allocation_counter.h"
#include "engine/scripted_drafter.h"
#include "engine/step_executor.h"
#include "engine/testing/tiny_engine.h"
#include "schedule/scheduler.h"

namespace deepinfer {
namespace {

using testing::LoadTiny;

using testing::TinyPrompt;

constexpr int32_t kDrafts = 5;

// What EngineCore keeps of a sequence, without text.
struct Life {
  Life(std::vector<int32_t> prompt, int32_t max_output)
      : keys({}, static_cast<int32_t>(prompt.size()) + max_output + kMaxDrafts),
        run(prompt, max_output, {}, SequenceSampling({.ignore_eos = true}, 7, {}, prompt)) {
    for (const int32_t id : prompt) keys.Append(id);
  }
  SequenceId id;
  PageKeyChain keys;
  SequenceRun run;
};

class Steps {
 public:
  Steps()
      : loaded_(LoadTiny({.num_threads = 2,
                          .max_model_len = 2048,
                          .max_num_seqs = 8,
                          .max_num_batched_tokens = 256,
                          .async = false})),
        drafter_(kDrafts, loaded_->config().vocab_size,
                 [this](const SequenceRun&) { return ++accept_ % 3; }),
        scheduler_(Options(), Sizes()),
        executor_({.forward = [this](const ForwardBatch& b) { return Forward(b); },
                   .threads = &threads_,
                   .memory = &loaded_->kv_memory_for_tests(),
                   .drafter = &drafter_,
                   .clock = &RealClock(),
                   .vocab_size = loaded_->config().vocab_size}) {
    const int32_t num_pages = loaded_->kv_sizes().num_pages;
    job_.plan.Reserve(8, num_pages);
    job_.copy_runs.reserve(static_cast<size_t>(num_pages));
    loaded_->model().Reserve({.max_rows = 256, .max_logits_rows = 8 * 6, .max_context = 2048});
  }

  void Add(int32_t prompt_length, int32_t max_output) {
    lives_.push_back(std::make_unique<Life>(TinyPrompt(prompt_length, 3), max_output));
    Life& life = *lives_.back();
    life.id = *scheduler_.Add(
        {.num_prompt = prompt_length, .max_output = max_output, .keys = &life.keys});
  }
  void PreemptAll() {
    for (const auto& life : lives_) scheduler_.RequestPreemption(life->id);
  }
  void AllocateOnce() { allocate_once_ = true; }

  // Allocations of one step.
  int64_t Run() {
    AllocationCounter counter;
    if (!scheduler_.Plan({}, 0, job_.plan)) return 0;
    job_.copy_runs.clear();
    for (const PlannedCopy& copy : job_.plan.copies) job_.copy_runs.push_back(RunOf(copy.sequence));
    job_.row_runs.clear();
    for (const PlannedRows& rows : job_.plan.rows) job_.row_runs.push_back(RunOf(rows.sequence));
    executor_.Run(job_);
    scheduler_.CommitCopies(job_.plan);
    for (size_t i = 0; i < job_.plan.rows.size(); ++i) {
      const PlannedRows& rows = job_.plan.rows[i];
      const RowsOutcome& outcome = job_.outcomes[i];
      EXPECT_TRUE(outcome.status.ok());
      Life& life = *lives_[static_cast<size_t>(rows.sequence.v)];
      for (int32_t t = 0; t < outcome.num_new; ++t) life.keys.Append(outcome.tokens[t]);
      scheduler_.Commit(rows, {.snapshot_taken = outcome.snapshot_taken,
                               .num_computed = outcome.num_computed,
                               .num_tokens = outcome.num_tokens});
    }
    scheduler_.Learn(job_.load, job_.seconds);
    if (counter.count() > 0) counter.PrintFirst();
    return counter.count();
  }

  const SchedulerStats stats() const { return scheduler_.stats(); }

 private:
  SchedulerOptions Options() const {
    SchedulerOptions options = loaded_->core_options().scheduler;
    options.num_drafts = kDrafts;
    return options;
  }
  CacheSizes Sizes() const {
    const KvMemorySizes& sizes = loaded_->kv_sizes();
    return {.num_pages = sizes.num_pages,
            .num_host_pages = sizes.num_host_pages,
            .num_states = sizes.num_states,
            .num_saves = sizes.num_saves,
            .num_slots = sizes.num_slots};
  }
  SequenceRun* RunOf(SequenceId id) {
    return id.v < 0 ? nullptr : &lives_[static_cast<size_t>(id.v)]->run;
  }
  StatusOr<std::span<const float>> Forward(const ForwardBatch& batch) {
    if (std::exchange(allocate_once_, false)) kept_ = std::make_unique<int>(1);
    return loaded_->model().Forward(batch);
  }

  std::unique_ptr<LoadedEngine> loaded_;
  ThreadPool threads_{2};
  int32_t accept_ = 0;
  ScriptedDrafter drafter_;
  Scheduler scheduler_;
  StepExecutor executor_;
  StepJob job_;
  std::vector<std::unique_ptr<Life>> lives_;  // by SequenceId
  bool allocate_once_ = false;
  std::unique_ptr<int> kept_;
};

TEST(StepAllocation, case_53_StepsOfEveryKindAllocateNothingAfterTheFirstOnes) {
  if (!CountsAllocations()) GTEST_SKIP() << "skipped: a sanitizer allocates by itself";
  Steps steps;
  for (int32_t i = 0; i < 6; ++i) steps.Add(100 + 70 * i, 400);
  steps.Add(900, 100);
  for (int32_t step = 0; step < 40; ++step) {  // warm-up: every kind of step once
    if (step == 15) steps.PreemptAll();
    steps.Run();
  }
  int64_t count = 0;
  for (int32_t step = 0; step < 60; ++step) {
    if (step == 20) steps.PreemptAll();
    count += steps.Run();
  }
  EXPECT_EQ(count, 0);
  const SchedulerStats stats = steps.stats();
  EXPECT_GT(stats.decode_rows, 500);
  EXPECT_GT(stats.snapshots_taken, 10);
  EXPECT_GT(stats.pages_saved, 20);
  EXPECT_GE(stats.resumed, 4);
}

// Scratch is the heap's share of a start: what an instance keeps there is the plan's, and little
// more for lists of the scheduler and the caches.
TEST(StepAllocation, AStartTakesItsPlan) {
  if (!CountsAllocations()) GTEST_SKIP() << "skipped: a sanitizer allocates by itself";
  for (const bool async : {false, true}) {
    const auto loaded =
        LoadTiny({.num_threads = 2, .max_model_len = 2048, .max_num_seqs = 8, .async = async});
    ThreadPool threads(2);  // new ones: they have no scratch yet
    const int64_t planned = loaded->start_plan().scratch.total_bytes();
    int64_t taken = 0;
    std::thread([&] {
      AllocationCounter counter;
      const auto instance =
          loaded->NewInstance(loaded->core_options(), loaded->kv_sizes(), &threads);
      taken = counter.kept_bytes();
    }).join();
    EXPECT_GE(taken, planned);
    EXPECT_LE(taken, planned + planned / 10 + (2 << 20));
  }
}

TEST(StepAllocation, OneAllocationInAPassIsSeen) {
  if (!CountsAllocations()) GTEST_SKIP() << "skipped: a sanitizer allocates by itself";
  Steps steps;
  for (int32_t i = 0; i < 4; ++i) steps.Add(80, 200);
  for (int32_t step = 0; step < 30; ++step) steps.Run();
  EXPECT_EQ(steps.Run(), 0);
  steps.AllocateOnce();
  EXPECT_EQ(steps.Run(), 1);
}

}  // namespace
}  // namespace deepinfer
