// Who runs when, in plans without a model: mixing, fairness, priorities, deadlines, preemption,
// plans made ahead.
#include "schedule/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "schedule/testing/small_case.h"

namespace deepinfer {
namespace {

using testing::DriverEnd;
using testing::DriverRequest;
using testing::MakeRequest;
using testing::RowsIn;
using testing::SchedulerDriver;
using testing::SmallSizes;

SchedulerOptions Options() { return testing::SmallOptions(ReplayMode::kBounded); }

// ---- R06: steps mix, nobody waits for nothing

TEST(Scheduler, case_R06_ALoneRequestIsInTheVeryNextPlan) {
  SchedulerDriver driver(Options(), SmallSizes());
  const auto expect_next = [&](int32_t seed) {
    const int handle = driver.Add(MakeRequest(seed, 100, 4));
    ASSERT_TRUE(driver.Plan());
    ASSERT_NE(driver.RowsOf(handle), nullptr);
    EXPECT_EQ(RowsIn(driver, handle), 100);
    driver.Execute();
    driver.Commit();
    driver.Run();
  };
  expect_next(1);
  for (int32_t seed = 2; seed < 60; ++seed)
    driver.Add(MakeRequest(seed % 7, 40 * (seed % 9 + 1), 20));
  for (int i = 0; i < 5; ++i) driver.Step();
  for (int handle = 0; handle < driver.num_sequences(); handle += 3) driver.Cancel(handle);
  driver.Run();
  driver.Advance(std::chrono::hours(10));
  for (int i = 0; i < 200; ++i) EXPECT_FALSE(driver.Step());  // idle
  expect_next(100);
  driver.CheckNothingHeld();
}

TEST(Scheduler, case_R06_DecodeRowsAndChunksShareAStep) {
  SchedulerDriver driver(Options(), SmallSizes());
  const int a = driver.Add(MakeRequest(1, 50, 30)), b = driver.Add(MakeRequest(2, 50, 30));
  driver.Step();
  const int c = driver.Add(MakeRequest(3, 2000, 1));
  int32_t prefill_rows = 0;
  for (int step = 0; step < 4; ++step) {
    ASSERT_TRUE(driver.Step());
    EXPECT_EQ(RowsIn(driver, a), 1);
    EXPECT_EQ(RowsIn(driver, b), 1);
    EXPECT_GT(RowsIn(driver, c), 0);
    EXPECT_EQ(driver.plan().rows.back().kind, RowsKind::kPrefill);  // decode rows first
    prefill_rows += RowsIn(driver, c);
  }
  EXPECT_GE(prefill_rows, 4 * 448);  // what two decode rows leave, to the page end
  driver.Run();
  driver.CheckNothingHeld();
}

TEST(Scheduler, ALongPromptDoesNotHoldUpAShortOne) {
  SchedulerDriver driver(Options(), SmallSizes());
  const int long_one = driver.Add(MakeRequest(1, 3000));
  driver.Step();
  const int short_one = driver.Add(MakeRequest(2, 100));
  ASSERT_TRUE(driver.Step());
  EXPECT_EQ(RowsIn(driver, short_one), 100);
  EXPECT_GE(RowsIn(driver, long_one), 384);  // and both advance
  driver.Run();
}

// ---- R05: who cannot run blocks nobody

TEST(Scheduler, case_R05_FirstInQueueWithoutRoomLetsOthersRunAndStartsAsSoonAsItCan) {
  CacheSizes sizes = SmallSizes();
  sizes.num_pages = 20;
  SchedulerDriver driver(Options(), sizes);
  const int holder = driver.Add(MakeRequest(1, 600, 8));  // 10 pages
  driver.Step();
  const int large = driver.Add(MakeRequest(2, 1000));  // 16 pages: not beside the first
  std::vector<int> small;
  for (int32_t i = 0; i < 3; ++i) small.push_back(driver.Add(MakeRequest(10 + i, 60)));
  ASSERT_TRUE(driver.Step());
  EXPECT_EQ(RowsIn(driver, large), 0);
  for (const int handle : small) EXPECT_EQ(RowsIn(driver, handle), 60);
  while (driver.At(holder).alive()) {
    ASSERT_TRUE(driver.Step());
    EXPECT_EQ(RowsIn(driver, large), 0);
  }
  ASSERT_TRUE(driver.Step());  // the very next plan
  EXPECT_GT(RowsIn(driver, large), 0);
  driver.Run();
  driver.CheckNothingHeld();
}

TEST(Scheduler, case_R05_NoStarvationBehindAnEndlessStreamOfSmallOnes) {
  CacheSizes sizes = SmallSizes();
  sizes.num_pages = 20;
  SchedulerDriver driver(Options(), sizes);
  driver.Add(MakeRequest(1, 500, 20));
  driver.Step();
  const int large = driver.Add(MakeRequest(2, 1200));  // 19 pages
  int32_t seed = 10, steps = 0;
  for (; driver.RowsOf(large) == nullptr; ++steps) {
    ASSERT_LT(steps, 200);
    for (int i = 0; i < 2; ++i) driver.Add(MakeRequest(seed++, 120, 12));
    ASSERT_TRUE(driver.Step());
  }
  driver.Run();
  driver.CheckNothingHeld();
}

TEST(Scheduler, WhatNeverFitsIsRefusedWithTheNumbers) {
  CacheSizes sizes = SmallSizes();
  sizes.num_pages = 10;
  SchedulerDriver driver(Options(), sizes);
  const auto refused = driver.TryAdd(MakeRequest(1, 600, 42));  // 641 rows
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(MessageOf(refused.status()),
            "request: prompt of 600 and up to 42 output tokens need 11 KV pages, the cache has 10; "
            "lower max_tokens or raise kv_cache_bytes");
  EXPECT_TRUE(driver.TryAdd(MakeRequest(1, 600, 41)).ok());  // the last token needs no row
  driver.Run();
  driver.CheckNothingHeld();
}

TEST(Scheduler, TheQueueIsBounded) {
  SchedulerOptions options = Options();
  options.max_waiting = 3;
  SchedulerDriver driver(options, SmallSizes());
  for (int32_t i = 0; i < 3; ++i) EXPECT_TRUE(driver.TryAdd(MakeRequest(i, 10)).ok());
  EXPECT_EQ(driver.TryAdd(MakeRequest(9, 10)).status().code(), StatusCode::kResourceExhausted);
  driver.Step();
  EXPECT_TRUE(driver.TryAdd(MakeRequest(9, 10)).ok());
  driver.Run();
  driver.CheckNothingHeld();
}

// ---- order

TEST(Scheduler, HigherPriorityStartsFirst) {
  SchedulerOptions options = Options();
  options.max_num_seqs = 1;
  SchedulerDriver driver(options, SmallSizes());
  const int low = driver.Add(MakeRequest(1, 10)), high = driver.Add(MakeRequest(2, 10));
  driver.At(high);
  DriverRequest urgent = MakeRequest(3, 10);
  urgent.priority = 1;
  const int top = driver.Add(urgent);
  driver.Run();
  EXPECT_EQ(driver.TakeEnded(), (std::vector<int>{top, low, high}));
}

TEST(Scheduler, TenantsShareWhatEachOfThemAsksFor) {
  SchedulerOptions options = Options();
  options.max_num_seqs = 1;
  SchedulerDriver driver(options, SmallSizes());
  for (int32_t i = 0; i < 20; ++i) driver.Add(MakeRequest(i, 100));  // tenant 0 is here first
  for (int32_t i = 0; i < 4; ++i) {
    DriverRequest other = MakeRequest(100 + i, 100);
    other.tenant = 1;
    driver.Add(other);
  }
  for (int i = 0; i < 8; ++i) driver.Step();
  const std::vector<int> ended = driver.TakeEnded();
  EXPECT_EQ(std::count_if(ended.begin(), ended.end(), [](int handle) { return handle >= 20; }), 4);
}

TEST(Scheduler, ADeadlineThatPassesInTheQueueEndsTheRequestThere) {
  SchedulerOptions options = Options();
  options.max_num_seqs = 1;
  SchedulerDriver driver(options, SmallSizes());
  driver.Add(MakeRequest(1, 10, 50));
  driver.Step();
  DriverRequest late = MakeRequest(2, 10);
  late.deadline_ms = 100;
  const int expires = driver.Add(late);
  driver.Advance(std::chrono::milliseconds(99));
  driver.Step();
  EXPECT_TRUE(driver.At(expires).alive());
  driver.Advance(std::chrono::milliseconds(1));
  driver.Step();
  EXPECT_EQ(driver.At(expires).end, DriverEnd::kExpired);
  driver.Run();
  driver.CheckNothingHeld();
}

TEST(Scheduler, FurtherChoicesWaitForThePromptAndThenFindIt) {
  SchedulerDriver driver(Options(), SmallSizes());
  const int first = driver.Add(MakeRequest(1, 1000, 4));
  DriverRequest more = MakeRequest(1, 1000, 4);
  more.after = first;
  const int second = driver.Add(more), third = driver.Add(more);
  while (!driver.At(first).num_output()) {
    driver.Step();
    EXPECT_EQ(RowsIn(driver, second), 0);
  }
  driver.Step();
  EXPECT_GT(RowsIn(driver, second), 0);
  EXPECT_GT(RowsIn(driver, third), 0);
  driver.Run();
  EXPECT_EQ(driver.At(second).num_cached, 960);
  EXPECT_EQ(driver.At(third).num_cached, 960);
  driver.CheckNothingHeld();
}

TEST(Scheduler, ChoicesGoOnWhenTheFirstIsCancelled) {
  SchedulerDriver driver(Options(), SmallSizes());
  const int first = driver.Add(MakeRequest(1, 1000, 4));
  DriverRequest more = MakeRequest(1, 1000, 4);
  more.after = first;
  const int second = driver.Add(more);
  driver.Step();
  driver.Cancel(first);
  driver.Run();
  EXPECT_EQ(driver.At(second).end, DriverEnd::kDone);
  driver.CheckNothingHeld();
}

// ---- claim 10: token budget and time

TEST(Scheduler, claim_10_NoPlanIsAboveTheTokenBudget) {
  SchedulerOptions options = Options();
  options.max_num_seqs = 64;
  options.max_num_batched_tokens = 32'768;
  options.num_drafts = 5;
  CacheSizes sizes = SmallSizes();
  sizes.num_states = 64;
  sizes.num_pages = 4096;
  SchedulerDriver driver(options, sizes);
  SeededRng rng(1);
  for (int32_t i = 0; i < 100; ++i) {
    DriverRequest request = MakeRequest(i, 1 + static_cast<int32_t>(rng.Uniform(8000)), 60);
    request.accepts = static_cast<int32_t>(rng.Uniform(6));
    driver.Add(request);
  }
  int32_t fullest = 0;
  while (driver.Step()) {
    ASSERT_LE(driver.plan().num_rows, 32'768);
    fullest = std::max(fullest, driver.plan().num_rows);
  }
  EXPECT_GT(fullest, 32'768 - 64 - 140);  // and it is used
}

TEST(Scheduler, claim_10_ChunksBesideDecodeRowsKeepTheStepWithinItsTime) {
  SchedulerOptions options = Options();
  options.max_num_batched_tokens = 32'768;
  options.max_model_len = 1 << 20;
  CacheSizes sizes = SmallSizes();
  sizes.num_pages = 8192;
  SchedulerDriver driver(options, sizes);
  driver.Add(MakeRequest(1, 10, 400));
  driver.Step();
  struct {
    int32_t num_prompt;
    double target_s;
  } const tiers[] = {{16'000, 0.100}, {60'000, 0.250}, {99'000, 0.500}, {270'000, 0.800}};
  for (const auto& [num_prompt, target_s] : tiers) {
    const int handle = driver.Add(MakeRequest(num_prompt, num_prompt));
    ASSERT_TRUE(driver.Plan());
    StepLoad load;
    for (const PlannedRows& rows : driver.plan().rows) load.Add(rows.num_rows(), rows.begin);
    const double predicted_s = driver.scheduler().cost_model().Predict(load);
    EXPECT_LE(predicted_s, target_s) << num_prompt;
    load.Add(64, 0);
    const bool filled = driver.scheduler().cost_model().Predict(load) > target_s ||
                        driver.plan().num_rows > 32'768 - 64 ||
                        RowsIn(driver, handle) == num_prompt;
    EXPECT_TRUE(filled) << num_prompt << ": " << driver.plan().num_rows;
    driver.Execute();
    driver.Commit();
    driver.Cancel(handle);
  }
}

// ---- preemption

// Sequences that fill the pool with their prompts and need more while they decode.
struct Full {
  explicit Full(CacheSizes sizes = Small(), SchedulerOptions options = Options())
      : driver(options, sizes) {}
  static CacheSizes Small() {
    CacheSizes sizes = SmallSizes();
    sizes.num_pages = 9;
    sizes.num_slots = 0;
    return sizes;
  }
  // 3 pages, needs a fourth after one token.
  int Add(int32_t seed, int32_t priority = 0) {
    DriverRequest request = MakeRequest(seed, 190, 40);
    request.priority = priority;
    return driver.Add(request);
  }
  void Fill() {
    for (int step = 0; step < 5 && driver.scheduler().stats().preempted == 0; ++step) driver.Step();
  }
  bool Preempted(int handle) const {
    for (const PlannedCopy& copy : driver.plan().copies) {
      const bool leaves = copy.kind == CopyKind::kSaveState;
      if (leaves && driver.HandleOf(copy.sequence) == handle) return true;
    }
    return false;
  }
  SchedulerDriver driver;
};

TEST(Preemption, TheNewestGivesWayAndComesBackToItsPlace) {
  Full full;
  const int a = full.Add(1), b = full.Add(2), c = full.Add(3);
  full.Fill();
  EXPECT_TRUE(full.Preempted(c));
  EXPECT_FALSE(full.Preempted(a) || full.Preempted(b));
  const int d = full.Add(4);  // younger: does not overtake
  full.driver.Run();
  EXPECT_EQ(full.driver.TakeEnded(), (std::vector<int>{a, b, c, d}));
  EXPECT_EQ(full.driver.scheduler().stats().preempt_recomputed, 0);
  EXPECT_GT(full.driver.scheduler().stats().resumed, 0);
  full.driver.CheckNothingHeld();
}

TEST(Preemption, LowerPriorityGivesWayBeforeTheNewest) {
  Full full;
  const int low = full.Add(1, -1), a = full.Add(2), b = full.Add(3);
  full.Fill();
  EXPECT_TRUE(full.Preempted(low));
  EXPECT_FALSE(full.Preempted(a) || full.Preempted(b));
  full.driver.Run();
  full.driver.CheckNothingHeld();
}

TEST(Preemption, LowerPriorityGivesWayAlsoIfItWasHereFirst) {
  CacheSizes sizes = Full::Small();
  sizes.num_pages = 7;
  Full full(sizes);
  const int low = full.Add(1, -1);
  full.driver.Step();
  const int high = full.Add(2);
  full.Fill();
  EXPECT_TRUE(full.Preempted(low));
  EXPECT_FALSE(full.Preempted(high));
  full.driver.Run();
  full.driver.CheckNothingHeld();
}

TEST(Preemption, AFullHostMakesTheNewestWaitInItsPlace) {
  CacheSizes sizes = Full::Small();
  sizes.num_host_pages = 2;  // not one sequence's
  Full full(sizes);
  const int a = full.Add(1), b = full.Add(2), c = full.Add(3);
  for (int step = 0; step < 20; ++step) full.driver.Step();
  EXPECT_EQ(full.driver.scheduler().stats().preempted,
            full.driver.scheduler().stats().preempt_recomputed);  // nothing was saved
  full.driver.Run();
  for (const int handle : {a, b, c}) EXPECT_EQ(full.driver.At(handle).end, DriverEnd::kDone);
  full.driver.CheckNothingHeld();
}

TEST(Preemption, WithRoomNowhereTheNewestIsComputedAgainAndCounted) {
  for (const bool no_saves : {false, true}) {
    CacheSizes sizes = Full::Small();
    (no_saves ? sizes.num_saves : sizes.num_host_pages) = 0;
    Full full(sizes);
    const int a = full.Add(1), b = full.Add(2), c = full.Add(3);
    full.driver.Run();
    EXPECT_EQ(full.driver.TakeEnded(), (std::vector<int>{a, b, c}));
    EXPECT_GT(full.driver.scheduler().stats().preempt_recomputed, 0);
    EXPECT_EQ(full.driver.scheduler().stats().resumed, 0);
    full.driver.CheckNothingHeld();
  }
}

TEST(Preemption, OnRequestWithoutHostMemoryItIsComputedAgain) {
  CacheSizes sizes = Full::Small();
  sizes.num_saves = 0;
  Full full(sizes);
  const int a = full.Add(1);
  full.driver.Step();
  full.driver.Preempt(a);
  full.driver.Step();
  ASSERT_NE(full.driver.RowsOf(a), nullptr);
  EXPECT_EQ(full.driver.RowsOf(a)->begin, 0);
  EXPECT_EQ(full.driver.scheduler().stats().preempt_recomputed, 1);
  full.driver.Run();
  EXPECT_EQ(full.driver.At(a).end, DriverEnd::kDone);
  full.driver.CheckNothingHeld();
}

// A hit with a snapshot leaves the decoder half out before it; a cold computation may not.
TEST(Preemption, WhatIsComputedAgainIsComputedCold) {
  SchedulerOptions options = Options();
  options.replay = ReplayMode::kExact;
  CacheSizes sizes = Full::Small();
  sizes.num_pages = 11;
  sizes.num_slots = 4;
  sizes.num_saves = 0;
  Full full(sizes, options);
  full.Add(3);
  full.driver.Run();  // leaves pages and a snapshot
  full.driver.Add(MakeRequest(1, 190, 100)), full.driver.Add(MakeRequest(2, 190, 100));
  full.driver.Step();
  const int again = full.Add(3);
  full.driver.Step();
  ASSERT_NE(full.driver.RowsOf(again), nullptr);
  EXPECT_EQ(full.driver.RowsOf(again)->begin, 128);
  int64_t cold_starts = 0;
  while (full.driver.Step()) {
    const PlannedRows* rows = full.driver.RowsOf(again);
    if (rows == nullptr || rows->begin != 0) continue;
    ++cold_starts;
    EXPECT_EQ(rows->decoder_begin, 0);
    EXPECT_EQ(rows->decoder_window_begin, 0);
    EXPECT_EQ(rows->window_begin, 0);
    EXPECT_EQ(rows->keep_entries_below, 0);
  }
  EXPECT_EQ(cold_starts, 1);
  EXPECT_EQ(full.driver.scheduler().stats().preempt_recomputed, 1);
  full.driver.CheckNothingHeld();
}

// Nothing else runs: it goes on in the plan that brings it back.
TEST(Preemption, ALoneSequenceComesBackWithItsRows) {
  Full full;
  const int a = full.Add(1);
  for (int step = 0; step < 10; ++step) full.driver.Step();
  full.driver.Preempt(a);
  ASSERT_TRUE(full.driver.Step());
  EXPECT_TRUE(full.Preempted(a));
  EXPECT_EQ(RowsIn(full.driver, a), 1);
  full.driver.Run();
  EXPECT_EQ(full.driver.scheduler().stats().preempted, 1);
  full.driver.CheckNothingHeld();
}

TEST(Preemption, OnRequestAtEveryTokenAndChunk) {
  SchedulerOptions options = Options();
  options.max_num_batched_tokens = 128;
  for (int at = 1; at < 15; ++at) {
    SchedulerDriver driver(options, SmallSizes());
    const int a = driver.Add(MakeRequest(1, 700, 10)), b = driver.Add(MakeRequest(2, 30, 20));
    for (int step = 0; step < at; ++step) driver.Step();
    driver.Preempt(a);
    driver.Run();
    EXPECT_EQ(driver.At(a).end, DriverEnd::kDone);
    EXPECT_EQ(driver.At(b).end, DriverEnd::kDone);
    EXPECT_EQ(driver.scheduler().stats().preempted, 1) << at;
    driver.CheckNothingHeld();
  }
}

// ---- plans made ahead

TEST(PlanAhead, DecodeRowsOfUncertainLengthHaveTheirPages) {
  for (int32_t accepts = 0; accepts <= 5; ++accepts) {
    SchedulerOptions options = Options();
    options.num_drafts = 5;
    SchedulerDriver driver(options, SmallSizes());
    for (int32_t i = 0; i < 6; ++i) {
      DriverRequest request = MakeRequest(i + 1, 60 + i, 150);
      request.accepts = (accepts + i) % 6;
      driver.Add(request);
    }
    while (driver.StepAhead()) driver.scheduler().CheckInvariants();
    for (int handle = 0; handle < 6; ++handle) {
      EXPECT_EQ(driver.At(handle).num_output(), 150);
      EXPECT_EQ(driver.At(handle).end, DriverEnd::kDone);
    }
    driver.CheckNothingHeld();
  }
}

TEST(PlanAhead, NothingIsPlannedPastTheLastToken) {
  SchedulerDriver driver(Options(), SmallSizes());
  const int a = driver.Add(MakeRequest(1, 63, 2));
  ASSERT_TRUE(driver.Plan());
  ASSERT_TRUE(driver.Plan());  // the second token comes from here
  driver.Execute();
  driver.Commit();
  EXPECT_FALSE(driver.Plan());  // a third would be one too many
  driver.Execute();
  driver.Commit();
  EXPECT_EQ(driver.At(a).end, DriverEnd::kDone);
  driver.CheckNothingHeld();
}

TEST(PlanAhead, ACancelledSequenceIsForgottenAfterItsLastPlanInFlight) {
  SchedulerDriver driver(Options(), SmallSizes());
  const int a = driver.Add(MakeRequest(1, 100, 50));
  driver.Step();
  ASSERT_TRUE(driver.Plan());
  ASSERT_TRUE(driver.Plan());
  const SequenceId id = driver.At(a).id;
  driver.Cancel(a);
  EXPECT_EQ(driver.scheduler().pages().num_held(), 0);  // at once
  EXPECT_EQ(driver.scheduler().num_free_states(), 8);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(driver.scheduler().Exists(id));
    driver.Execute();
    driver.Commit();
  }
  EXPECT_FALSE(driver.scheduler().Exists(id));
  driver.CheckNothingHeld();
}

}  // namespace
}  // namespace deepinfer
