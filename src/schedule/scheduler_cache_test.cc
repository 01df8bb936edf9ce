// What is found again: prefix hits with and without snapshots, which snapshots are taken and kept,
// the host tier, and what may never be found.
#include <gtest/gtest.h>

#include <algorithm>

#include "schedule/scheduler.h"
#include "schedule/testing/scheduler_driver.h"

namespace deepinfer {
namespace {

using testing::DriverEnd;
using testing::DriverRequest;
using testing::kRealReplayShape;
using testing::MakePrompt;
using testing::SchedulerDriver;

SchedulerOptions Options(ReplayMode replay = ReplayMode::kBounded) {
  return {.max_num_seqs = 8,
          .max_num_batched_tokens = 2048,
          .max_model_len = 1 << 20,
          .replay = replay,
          .shape = kRealReplayShape};
}

CacheSizes Sizes() {
  return {.num_pages = 256, .num_host_pages = 0, .num_states = 8, .num_saves = 4, .num_slots = 16};
}

DriverRequest Request(std::vector<int32_t> prompt, int32_t max_output = 1) {
  return {.prompt = std::move(prompt), .max_output = max_output};
}

// One after the other; the second's handle.
int RunTwice(SchedulerDriver& driver, const DriverRequest& first, const DriverRequest& second) {
  driver.Add(first);
  driver.Run();
  const int handle = driver.Add(second);
  driver.Run();
  return handle;
}

std::vector<int32_t> SnapshotEnds(const SchedulerDriver& driver, int handle) {
  std::vector<int32_t> ends;
  const std::span<const PageKey> keys = driver.At(handle).keys.keys();
  for (size_t i = 0; i < keys.size(); ++i) {
    if (driver.scheduler().snapshots().Find(keys[i]) >= 0) {
      ends.push_back(static_cast<int32_t>(i + 1) * kTokensPerPage);
    }
  }
  return ends;
}

// ---- hits

TEST(PrefixHit, case_32_EveryFullPageOfARepeatedPromptIsCached) {
  for (const ReplayMode mode : {ReplayMode::kExact, ReplayMode::kBounded, ReplayMode::kMask}) {
    for (const int32_t length : {129, 257, 1024, 2048, 4095}) {
      SchedulerDriver driver(Options(mode), Sizes());
      const DriverRequest request = Request(MakePrompt(1, length));
      const int second = RunTwice(driver, request, request);
      EXPECT_EQ(driver.At(second).num_cached, (length - 1) / 64 * 64) << length;
      EXPECT_EQ(driver.scheduler().stats().hits_with_slot,
                mode == ReplayMode::kExact || length > 140 ? 1 : 0);
      driver.CheckNothingHeld();
    }
  }
}

TEST(PrefixHit, AnotherPromptHitsWhatItShares) {
  SchedulerDriver driver(Options(), Sizes());
  std::vector<int32_t> other = MakePrompt(1, 1000);
  other[700] = -5;
  const int second = RunTwice(driver, Request(MakePrompt(1, 1000)), Request(other));
  EXPECT_EQ(driver.At(second).num_cached, 640);            // the page of 700 is another
  EXPECT_EQ(driver.scheduler().stats().hits_replayed, 1);  // no snapshot ends there
}

TEST(PrefixHit, OutputIsFoundByTheNextTurn) {
  SchedulerDriver driver(Options(), Sizes());
  const int first = driver.Add(Request(MakePrompt(1, 300), 200));
  driver.Run();
  std::vector<int32_t> turn = driver.At(first).tokens;
  turn.insert(turn.end(), 150, 7);
  const int second = driver.Add(Request(turn));
  driver.Run();
  EXPECT_EQ(driver.At(second).num_cached, 448);  // of 499 that were computed
  EXPECT_EQ(driver.scheduler().stats().hits_with_slot, 1);
}

TEST(PrefixHit, claim_2_ReplayedRowsAreConstantWithContext) {
  for (const int32_t length : {4096, 65'536, 1'000'000}) {
    CacheSizes sizes = Sizes();
    sizes.num_pages = 15'700;
    sizes.num_slots = 0;
    SchedulerOptions options = Options();
    options.max_num_batched_tokens = 32'768;
    SchedulerDriver driver(options, sizes);
    const DriverRequest request = Request(MakePrompt(1, length));
    const int second = RunTwice(driver, request, request);
    const int32_t hit = (length - 1) / 64 * 64;
    EXPECT_EQ(driver.At(second).num_cached, hit);
    // The window before the hit, or what the decoder's last rows need of it.
    const int32_t replayed = hit - std::min(hit - 128, length - 140);
    EXPECT_EQ(driver.scheduler().stats().replay_rows, replayed) << length;
    EXPECT_GE(replayed, 128);
    EXPECT_LE(replayed, 139);
    EXPECT_EQ(driver.scheduler().stats().rows, length + length - hit + replayed);
  }
}

TEST(PrefixHit, WithASnapshotOnlyTheKeptRowsAreReplayedInOnePass) {
  SchedulerDriver driver(Options(), Sizes());
  driver.Add(Request(MakePrompt(1, 1000)));
  driver.Run();
  const int second = driver.Add(Request(MakePrompt(1, 1000), 4));
  ASSERT_TRUE(driver.Step());
  const PlannedRows* rows = driver.RowsOf(second);
  ASSERT_NE(rows, nullptr);
  EXPECT_EQ(rows->begin, 860);
  EXPECT_EQ(rows->end, 960);
  EXPECT_EQ(rows->keep_entries_below, 960);
  EXPECT_EQ(rows->keep_rings_below, 960);
  EXPECT_FALSE(rows->samples);
  ASSERT_TRUE(driver.Step());
  EXPECT_EQ(driver.RowsOf(second)->begin, 960);
  EXPECT_TRUE(driver.RowsOf(second)->samples);
  driver.Run();
}

TEST(PrefixHit, ExactWithoutASnapshotReplaysAllLayersWindowsOrMisses) {
  CacheSizes sizes = Sizes();
  sizes.num_slots = 0;
  SchedulerDriver driver(Options(ReplayMode::kExact), sizes);
  const int long_one = RunTwice(driver, Request(MakePrompt(1, 6000)), Request(MakePrompt(1, 6000)));
  EXPECT_EQ(driver.At(long_one).num_cached, 5952);
  EXPECT_EQ(driver.scheduler().stats().replay_rows, 5120);  // 40 layers x 128
  const int short_one =
      RunTwice(driver, Request(MakePrompt(2, 5000)), Request(MakePrompt(2, 5000)));
  EXPECT_EQ(driver.At(short_one).num_cached, 0);
}

TEST(PrefixHit, PromptLogprobsTakeNothingFromTheCache) {
  SchedulerDriver driver(Options(), Sizes());
  DriverRequest scored = Request(MakePrompt(1, 1000));
  scored.whole_prompt = true;
  scored.scores_prompt = true;
  driver.Add(Request(MakePrompt(1, 1000)));
  driver.Run();
  const int second = driver.Add(scored);
  int32_t next = 0;
  while (driver.Step()) {
    const PlannedRows* rows = driver.RowsOf(second);
    EXPECT_EQ(rows->begin, next);
    EXPECT_LE(rows->num_rows(), 256);
    EXPECT_EQ(rows->decoder_begin, 0);
    next = rows->end;
  }
  EXPECT_EQ(next, 1000);
  EXPECT_EQ(driver.At(second).num_cached, 0);
}

TEST(PrefixHit, SharedPagesOutliveEitherHolder) {
  for (const bool first_goes : {true, false}) {
    SchedulerDriver driver(Options(), Sizes());
    const int a = driver.Add(Request(MakePrompt(1, 640), 100));
    driver.Step();
    const int b = driver.Add(Request(MakePrompt(1, 640), 100));
    driver.Step();
    EXPECT_EQ(driver.scheduler().pages().num_held(), 11);  // b's nine are a's
    driver.Cancel(first_goes ? a : b);
    EXPECT_EQ(driver.scheduler().pages().num_held(), first_goes ? 9 : 11);
    driver.Run();  // the driver compares what the other reads
    EXPECT_EQ(driver.At(first_goes ? b : a).end, DriverEnd::kDone);
    driver.CheckNothingHeld();
  }
}

TEST(PrefixHit, ClearedOrSwitchedOffNothingIsFound) {
  SchedulerDriver driver(Options(), Sizes());
  driver.Add(Request(MakePrompt(1, 1000)));
  driver.Run();
  driver.scheduler().ClearCache();
  const int second = driver.Add(Request(MakePrompt(1, 1000)));
  driver.Run();
  EXPECT_EQ(driver.At(second).num_cached, 0);

  SchedulerOptions off = Options();
  off.prefix_cache = false;
  SchedulerDriver without(off, Sizes());
  const int again = RunTwice(without, Request(MakePrompt(1, 1000)), Request(MakePrompt(1, 1000)));
  EXPECT_EQ(without.At(again).num_cached, 0);
  EXPECT_EQ(without.scheduler().pages().num_cached(), 0);
  EXPECT_EQ(without.scheduler().stats().snapshots_taken, 0);
}

// ---- snapshots

TEST(SnapshotPlan, ThePromptsLastPageEndIsTakenInsideItsChunk) {
  SchedulerOptions options = Options();
  options.max_num_batched_tokens = 512;
  SchedulerDriver driver(options, Sizes());
  const int a = driver.Add(Request(MakePrompt(1, 1100)));
  std::vector<std::pair<int32_t, int32_t>> chunks;
  while (driver.Step()) {
    const PlannedRows* rows = driver.RowsOf(a);
    chunks.emplace_back(rows->begin, rows->end);
    EXPECT_EQ(rows->snapshot_slot >= 0, rows->begin == 1024);
    EXPECT_EQ(rows->snapshot_end, rows->begin == 1024 ? 1088 : 0);
  }
  EXPECT_EQ(chunks,
            (std::vector<std::pair<int32_t, int32_t>>{{0, 512}, {512, 1024}, {1024, 1100}}));
  EXPECT_EQ(SnapshotEnds(driver, a), (std::vector<int32_t>{1088}));
}

TEST(SnapshotPlan, APromptOfWholePagesIsTakenWhereItsRepetitionHits) {
  SchedulerDriver driver(Options(), Sizes());
  const int a = driver.Add(Request(MakePrompt(1, 1024)));
  driver.Run();
  EXPECT_EQ(SnapshotEnds(driver, a), (std::vector<int32_t>{960}));  // not 1024: a hit ends before
}

TEST(SnapshotPlan, InDecodeTheNewestReplacesTheFormerAndThePromptsStays) {
  for (const bool ahead : {false, true}) {
    for (const int32_t accepts : {0, 2, 5}) {
      SchedulerOptions options = Options();
      options.num_drafts = accepts;
      SchedulerDriver driver(options, Sizes());
      DriverRequest request = Request(MakePrompt(1, 300), 400);
      request.accepts = accepts;
      const int a = driver.Add(request);
      while (ahead ? driver.StepAhead() : driver.Step()) {
        const int32_t passed = driver.At(a).num_computed / 64 * 64;
        std::vector<int32_t> expected;
        if (driver.At(a).num_computed >= 256) expected.push_back(256);
        if (passed > 256) expected.push_back(passed);
        ASSERT_EQ(SnapshotEnds(driver, a), expected) << driver.At(a).num_computed;
      }
      EXPECT_EQ(driver.scheduler().stats().snapshots_taken, 1 + 6);  // 256; 320 ... 640
    }
  }
}

TEST(SnapshotPlan, WithoutASlotRowsRunWithoutASnapshot) {
  CacheSizes sizes = Sizes();
  sizes.num_slots = 1;
  SchedulerDriver driver(Options(), sizes);
  driver.Add(Request(MakePrompt(1, 200))), driver.Add(Request(MakePrompt(2, 200)));
  ASSERT_TRUE(driver.Plan());
  EXPECT_EQ(std::count_if(driver.plan().rows.begin(), driver.plan().rows.end(),
                          [](const PlannedRows& rows) { return rows.snapshot_slot >= 0; }),
            1);
  driver.Execute();
  driver.Commit();
  driver.CheckNothingHeld();
}

// ---- host tier

TEST(HostTierPlan, PagesThatTheDeviceEvictedComeBackFromTheHost) {
  CacheSizes sizes = Sizes();
  sizes.num_pages = 20;
  sizes.num_host_pages = 40;
  SchedulerDriver driver(Options(), sizes);
  driver.Add(Request(MakePrompt(1, 1000), 2));
  driver.Run();
  driver.Step();  // the last pages are saved behind the step that wrote them
  driver.Add(Request(MakePrompt(2, 1250)));  // takes the whole device
  driver.Run();
  EXPECT_EQ(driver.scheduler().stats().pages_loaded, 0);
  const int again = driver.Add(Request(MakePrompt(1, 1000)));
  driver.Run();
  EXPECT_EQ(driver.At(again).num_cached, 960);
  EXPECT_GE(driver.scheduler().stats().pages_loaded, 13);
  driver.CheckNothingHeld();
}

TEST(HostTierPlan, SavesOfAStepAreBounded) {
  SchedulerOptions options = Options();
  options.max_page_saves = 3;
  CacheSizes sizes = Sizes();
  sizes.num_host_pages = 40;
  SchedulerDriver driver(options, sizes);
  driver.Add(Request(MakePrompt(1, 1000), 10));
  int64_t saves = 0;
  while (driver.Step()) {
    const auto in_plan =
        std::count_if(driver.plan().copies.begin(), driver.plan().copies.end(),
                      [](const PlannedCopy& copy) { return copy.kind == CopyKind::kSavePage; });
    EXPECT_LE(in_plan, 3);
    saves += in_plan;
  }
  EXPECT_EQ(saves, 15);
}

TEST(HostTierPlan, APageThatIsLoadedOftenStaysLongerThanOneThatIsNot) {
  CacheSizes sizes = Sizes();
  sizes.num_pages = 12;
  sizes.num_host_pages = 20;
  SchedulerDriver driver(Options(), sizes);
  const auto run = [&](int32_t seed) {
    const int handle = driver.Add(Request(MakePrompt(seed, 700), 3));  // 10 full pages
    driver.Run();
    return driver.At(handle).num_cached;
  };
  run(1), run(2);          // both are in the host tier
  EXPECT_EQ(run(1), 640);  // used again
  run(3);                  // takes the place of 2
  EXPECT_EQ(run(1), 640);
}

// Damaged pages of the host and damaged snapshots count as a miss.
TEST(HostTierPlan, ADamagedLoadIsComputedInstead) {
  for (const bool ahead : {false, true}) {
    CacheSizes sizes = Sizes();
    sizes.num_pages = 40;
    sizes.num_host_pages = 80;
    SchedulerDriver driver(Options(), sizes);
    driver.Add(Request(MakePrompt(1, 1000), 2));
    driver.Run();
    driver.Step();
    driver.Add(Request(MakePrompt(2, 2500)));  // takes the whole device
    driver.Run();
    const int again = driver.Add(Request(MakePrompt(1, 1000), 70));
    driver.At(again).loses_load = true;
    const int other = driver.Add(Request(MakePrompt(3, 100), 30));
    while (ahead ? driver.StepAhead() : driver.Step()) driver.scheduler().CheckInvariants();
    EXPECT_EQ(driver.At(again).end, DriverEnd::kDone);
    EXPECT_EQ(driver.At(again).num_output(), 70);
    EXPECT_EQ(driver.At(again).num_cached, 0);
    EXPECT_EQ(driver.At(other).end, DriverEnd::kDone);
    EXPECT_EQ(driver.scheduler().stats().lost, 1);
    EXPECT_EQ(driver.scheduler().stats().cached_tokens, 0);
    driver.CheckNothingHeld();
  }
}

TEST(HostTierPlan, APreemptedSequenceWhosePageIsDamagedIsComputedAgain) {
  CacheSizes sizes = Sizes();
  sizes.num_host_pages = 40;
  SchedulerDriver driver(Options(), sizes);
  const int a = driver.Add(Request(MakePrompt(1, 300), 40));
  for (int step = 0; step < 10; ++step) driver.Step();
  driver.Preempt(a);
  driver.At(a).loses_load = true;
  driver.Run();
  EXPECT_EQ(driver.At(a).end, DriverEnd::kDone);
  EXPECT_EQ(driver.At(a).num_output(), 40);
  EXPECT_EQ(driver.scheduler().stats().lost, 1);
  driver.CheckNothingHeld();
}

// ---- what may not be found

TEST(Withdrawal, FailedRowsPublishNothing) {
  SchedulerOptions options = Options();
  options.max_num_batched_tokens = 512;
  SchedulerDriver driver(options, Sizes());
  const int a = driver.Add(Request(MakePrompt(1, 1000)));
  driver.At(a).fail_in = 1;
  driver.Run();
  EXPECT_EQ(driver.At(a).end, DriverEnd::kFailed);
  EXPECT_EQ(driver.scheduler().pages().num_cached(), 8);  // of the first chunk
  EXPECT_TRUE(SnapshotEnds(driver, a).empty());
  driver.CheckNothingHeld();
}

TEST(Withdrawal, DistrustTakesBackWhatTheSequenceComputedAndNoMore) {
  CacheSizes sizes = Sizes();
  sizes.num_host_pages = 64;
  SchedulerDriver driver(Options(), sizes);
  driver.Add(Request(MakePrompt(1, 500)));
  driver.Run();
  std::vector<int32_t> longer = MakePrompt(1, 448);  // the hit
  const std::vector<int32_t> more = MakePrompt(2, 552);
  longer.insert(longer.end(), more.begin(), more.end());
  const int b = driver.Add(Request(longer, 100));
  for (int step = 0; step < 90; ++step) driver.Step();
  ASSERT_TRUE(driver.At(b).alive());
  driver.scheduler().Distrust(driver.At(b).id);
  driver.Cancel(b);
  const std::span<const PageKey> keys = driver.At(b).keys.keys();
  for (size_t i = 0; i < keys.size(); ++i) {
    const bool own = i >= 448 / 64;
    EXPECT_EQ(driver.scheduler().pages().Find(keys[i]) >= 0, !own) << i;
    if (!own) continue;
    EXPECT_EQ(driver.scheduler().host().Find(keys[i]), -1);
    EXPECT_EQ(driver.scheduler().snapshots().Find(keys[i]), -1);
  }
  driver.CheckNothingHeld();
}

TEST(Withdrawal, ForgetTakesBackTheDamagedCopy) {
  CacheSizes sizes = Sizes();
  sizes.num_pages = 20;
  sizes.num_host_pages = 40;
  SchedulerDriver driver(Options(), sizes);
  driver.Add(Request(MakePrompt(1, 1000), 2));
  driver.Run();
  driver.Add(Request(MakePrompt(2, 1250)));
  driver.Run();
  driver.Add(Request(MakePrompt(1, 1000)));
  ASSERT_TRUE(driver.Plan());
  int num_forgotten = 0;
  for (const PlannedCopy& copy : driver.plan().copies) {
    const bool page = copy.kind == CopyKind::kLoadPage;
    if (!page && copy.kind != CopyKind::kLoadSnapshot) continue;
    driver.scheduler().Forget(copy);
    driver.scheduler().Forget(copy);  // also when two sequences loaded it
    EXPECT_FALSE(page ? driver.scheduler().host().HasKey(copy.from)
                      : driver.scheduler().snapshots().IsReady(copy.from));
    ++num_forgotten;
  }
  EXPECT_GE(num_forgotten, 14);
  driver.Execute();
  driver.Commit();
  driver.Run();
  driver.CheckNothingHeld();
}

}  // namespace
}  // namespace deepinfer
