// Random schedules: whatever is cancelled, preempted or failed and whenever, every page, state,
// save and slot comes back, and what rows read is their own (the driver compares).
#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "schedule/scheduler.h"
#include "schedule/testing/scheduler_driver.h"

namespace deepinfer {
namespace {

using testing::DriverEnd;
using testing::DriverRequest;
using testing::MakePrompt;
using testing::SchedulerDriver;

// Small windows, so that short prompts meet every case.
constexpr ReplayShape kSmallShape = {
    .window = 8, .verify_width = 3, .num_layers = 4, .num_encoder_layers = 2, .keep = 20};

SchedulerOptions Options(ReplayMode mode) {
  return {.max_num_seqs = 6,
          .max_num_batched_tokens = 90,
          .max_model_len = 400,
          .max_waiting = 24,
          .num_drafts = 2,
          .replay = mode,
          .shape = kSmallShape};
}

constexpr CacheSizes kTight = {
    .num_pages = 14, .num_host_pages = 10, .num_states = 6, .num_saves = 2, .num_slots = 6};

// What has no room on the device has none anywhere.
constexpr CacheSizes kNoHost = {.num_pages = 14, .num_states = 6, .num_slots = 6};

// ---- R01: a cancel in every state

// Brings a sequence into a state; the rest of the engine is busy with two others.
enum class At { kWaiting, kBlocked, kBetweenChunks, kDecoding, kPreempted, kInFlight };

TEST(SchedulerRandom, case_R01_ACancelInEveryStateAndAtEveryChunkBoundaryGivesAllBack) {
  for (const At state : {At::kWaiting, At::kBlocked, At::kBetweenChunks, At::kDecoding,
                         At::kPreempted, At::kInFlight}) {
    for (int boundary = 0; boundary < 5; ++boundary) {
      SCOPED_TRACE(static_cast<int>(state) * 10 + boundary);
      SchedulerDriver driver(Options(ReplayMode::kBounded), kTight);
      const int other = driver.Add({.prompt = MakePrompt(1, 30), .max_output = 60, .accepts = 1});
      driver.Step();
      const DriverRequest request = {.prompt = MakePrompt(2, 300), .max_output = 20};
      const int first = driver.Add(request);
      DriverRequest more = request;
      more.after = first;
      const int second = driver.Add(more);
      if (state != At::kWaiting) driver.Step();
      if (state == At::kDecoding) {
        while (driver.At(first).num_output() <= boundary) driver.Step();
      } else if (state != At::kWaiting) {
        for (int i = 0; i < boundary; ++i) driver.Step();
      }
      if (state == At::kPreempted) {
        driver.Preempt(first);
        for (int32_t i = 0; i < 3; ++i) {  // no room for its return
          driver.Add({.prompt = MakePrompt(5 + i, 60), .max_output = 60, .priority = 1});
        }
        driver.Plan();
        driver.Execute();
        driver.Commit();
      }
      if (state == At::kInFlight) {
        driver.Plan();
        driver.Plan();
      }
      driver.Cancel(state == At::kBlocked ? second : first);
      driver.scheduler().CheckInvariants();
      while (driver.num_in_flight() > 0) {
        driver.Execute();
        driver.Commit();
      }
      driver.Run();
      EXPECT_EQ(driver.At(other).end, DriverEnd::kDone);
      EXPECT_EQ(driver.At(state == At::kBlocked ? first : second).end, DriverEnd::kDone);
      driver.CheckNothingHeld();
    }
  }
}

// ---- R01: random schedules

class RandomSchedule {
 public:
  RandomSchedule(uint64_t seed, ReplayMode mode)
      : rng_(seed), driver_(Options(mode), seed % 5 == 0 ? kNoHost : kTight) {}

  void Run(int num_steps, bool ahead) {
    for (int step = 0; step < num_steps; ++step) {
      if (Chance(3)) AddOne();
      if (driver_.num_sequences() > 0) {
        const int any = Below(driver_.num_sequences());
        if (Chance(12)) driver_.Cancel(any);
        if (Chance(12)) driver_.Preempt(any);
        if (Chance(40)) driver_.At(any).fail_in = 0;
        if (Chance(20)) driver_.At(any).loses_load = true;
        if (Chance(4)) driver_.At(any).sits_out = 1 + Below(3);
        if (Chance(4)) driver_.Release(any);
      }
      if (Chance(100)) driver_.scheduler().ClearCache();
      driver_.Advance(std::chrono::milliseconds(5));
      ahead ? driver_.StepAhead() : driver_.Step();
      driver_.scheduler().CheckInvariants();
    }
    while (driver_.num_in_flight() > 0) {
      driver_.Execute();
      driver_.Commit();
    }
    for (int i = 0; i < driver_.num_sequences(); ++i) driver_.Release(i);
    driver_.Run();
    driver_.CheckNothingHeld();
  }
  const SchedulerDriver& driver() const { return driver_; }

 private:
  bool Chance(uint64_t one_in) { return rng_.Uniform(one_in) == 0; }
  int32_t Below(int32_t bound) {
    return static_cast<int32_t>(rng_.Uniform(static_cast<uint64_t>(bound)));
  }
  void AddOne() {
    std::vector<int32_t> prompt = MakePrompt(Below(3), 1 + Below(300));
    prompt.insert(prompt.end(), static_cast<size_t>(Below(20)), Below(5));
    DriverRequest request = {.prompt = std::move(prompt),
                             .max_output = Below(Chance(3) ? 250 : 70),
                             .tenant = Below(3),
                             .priority = Below(8) / 7,
                             .deadline_ms = Chance(8) ? Below(100) : -1,
                             .whole_prompt = Chance(12),
                             .held = Chance(6),
                             .accepts = Below(3)};
    if (Chance(6) && driver_.num_sequences() > 0) request.after = driver_.num_sequences() - 1;
    const StatusOr<int> handle = driver_.TryAdd(request);
    EXPECT_TRUE(handle.ok() || handle.status().code() == StatusCode::kResourceExhausted);
  }

  SeededRng rng_;
  SchedulerDriver driver_;
};

TEST(SchedulerRandom, case_R01_NothingLeaksInAThousandRandomSchedules) {
  SchedulerStats sum;
  int64_t ends[5] = {};
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    RandomSchedule schedule(
        seed, std::array{ReplayMode::kExact, ReplayMode::kBounded, ReplayMode::kMask}[seed % 3]);
    schedule.Run(150, seed % 2 == 0);
    const SchedulerDriver& driver = schedule.driver();
    for (int i = 0; i < driver.num_sequences(); ++i) ++ends[static_cast<int>(driver.At(i).end)];
    const SchedulerStats stats = driver.scheduler().stats();
    sum.preempted += stats.preempted;
    sum.resumed += stats.resumed;
    sum.preempt_recomputed += stats.preempt_recomputed;
    sum.lost += stats.lost;
    sum.hits_with_slot += stats.hits_with_slot;
    sum.hits_replayed += stats.hits_replayed;
    sum.pages_loaded += stats.pages_loaded;
    sum.snapshots_taken += stats.snapshots_taken;
  }
  // Everything that this is about has happened.
  EXPECT_EQ(ends[static_cast<int>(DriverEnd::kNone)], 0);
  EXPECT_GT(ends[static_cast<int>(DriverEnd::kDone)], 1000);
  EXPECT_GT(ends[static_cast<int>(DriverEnd::kCancelled)], 1000);
  EXPECT_GT(ends[static_cast<int>(DriverEnd::kExpired)], 100);
  EXPECT_GT(ends[static_cast<int>(DriverEnd::kFailed)], 100);
  EXPECT_GT(sum.preempted, 1000);
  EXPECT_GT(sum.resumed, 1000);
  EXPECT_GT(sum.preempt_recomputed, 10);
  EXPECT_GT(sum.lost, 100);
  EXPECT_GT(sum.hits_with_slot, 100);
  EXPECT_GT(sum.hits_replayed, 100);
  EXPECT_GT(sum.pages_loaded, 1000);
  EXPECT_GT(sum.snapshots_taken, 1000);
}

// ---- R10

TEST(SchedulerRandom, case_R10_TwoThousandShortSequencesWithFullAcceptanceAllEnd) {
  SchedulerOptions options = Options(ReplayMode::kBounded);
  options.max_num_seqs = 2000;
  options.max_num_batched_tokens = 8192;
  options.max_waiting = 2000;
  CacheSizes sizes = {.num_pages = 4000, .num_states = 2000, .num_slots = 64};
  for (const bool ahead : {false, true}) {
    SchedulerDriver driver(options, sizes);
    for (int32_t i = 0; i < 2000; ++i) {
      driver.Add({.prompt = MakePrompt(i, 10 + i % 50), .max_output = 30, .accepts = 2});
    }
    int num_running_max = 0;
    while (ahead ? driver.StepAhead() : driver.Step()) {
      num_running_max = std::max(num_running_max, driver.scheduler().stats().num_running);
    }
    EXPECT_GT(num_running_max, 830);
    for (int i = 0; i < 2000; ++i) EXPECT_EQ(driver.At(i).end, DriverEnd::kDone);
    driver.CheckNothingHeld();
  }
}

}  // namespace
}  // namespace deepinfer
