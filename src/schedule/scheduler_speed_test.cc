// What a step costs on the planning thread: 256 sequences decode, all of them pass a page end in
// the same step. Nothing is allocated; the times are printed, not judged (the bar is 200 us at p99
// for a plan on an idle machine).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "base/clock.h"
#include "base/testing/allocation_counter.h"
#include "schedule/scheduler.h"
#include "schedule/testing/scheduler_driver.h"

namespace deepinfer {
namespace {

using testing::DriverRequest;
using testing::kRealReplayShape;
using testing::MakePrompt;
using testing::SchedulerDriver;

constexpr int32_t kNumSeqs = 256;
constexpr int32_t kNumOutput = 640;  // ten page ends

struct Samples {
  std::vector<double> us;
  double At(double quantile) {
    std::sort(us.begin(), us.end());
    return us[static_cast<size_t>(quantile * static_cast<double>(us.size() - 1))];
  }
};

class PlanningThread {
 public:
  // spare_places: the queue is stopped by missing pages, not by the number of sequences.
  PlanningThread(int32_t num_drafts, int32_t num_waiting, int32_t spare_places)
      : driver_({.max_num_seqs = kNumSeqs + spare_places,
                 .max_num_batched_tokens = 65'536,
                 .max_model_len = 8192,
                 .max_waiting = 8192,
                 .num_drafts = num_drafts,
                 .shape = kRealReplayShape},
                {.num_pages = kNumSeqs * 12 + 100,
                 .num_host_pages = 2048,
                 .num_states = kNumSeqs + spare_places,
                 .num_saves = 16,
                 .num_slots = 1024}),
        num_drafts_(num_drafts),
        num_waiting_(num_waiting) {}

  // All start together, decode in step, end together. Others wait for a place.
  void RunRound(int32_t seed, bool counts) {
    std::vector<int> handles;
    for (int32_t i = 0; i < kNumSeqs; ++i) {
      handles.push_back(driver_.Add({.prompt = MakePrompt(seed * 1000 + i, 127),
                                     .max_output = kNumOutput,
                                     .accepts = num_drafts_ / 2}));
    }
    driver_.Step();
    std::vector<int> waiting;
    for (int32_t i = 0; i < num_waiting_; ++i) {
      waiting.push_back(driver_.Add({.prompt = MakePrompt(-1, 8000), .tenant = i % 50}));
    }
    while (driver_.At(handles.back()).alive()) Step(counts);
    for (const int handle : waiting) driver_.Cancel(handle);
    driver_.Run();
  }

  int64_t num_allocations() const { return num_allocations_; }
  void Print(const char* name) {
    std::printf(
        "%-24s plan p50 %6.1f p99 %6.1f us; page-end steps p50 %6.1f p99 %6.1f us;"
        " commit p50 %6.1f p99 %6.1f us\n",
        name, plan_.At(0.5), plan_.At(0.99), page_end_plan_.At(0.5), page_end_plan_.At(0.99),
        commit_.At(0.5), commit_.At(0.99));
  }

 private:
  template <typename Fn>
  double Measure(bool counts, Fn&& fn) {
    const AllocationCounter counter;
    const MonotonicTime start = RealClock().Now();
    fn();
    const double us = 1e6 * Seconds(RealClock().Now() - start);
    if (counts && counter.count() > 0) counter.PrintFirst();
    if (counts) num_allocations_ += counter.count();
    return us;
  }

  void Step(bool counts) {
    const int64_t before = num_allocations_;
    const double plan_us = Measure(counts, [&] { ASSERT_TRUE(driver_.Plan()); });
    const std::vector<PlannedCopy>& copies = driver_.plan().copies;
    const bool starts = std::any_of(copies.begin(), copies.end(), [](const PlannedCopy& copy) {
      return copy.kind == CopyKind::kNewState;
    });
    if (starts) num_allocations_ = before;  // a start takes the memory for its output
    driver_.Execute();
    const double commit_us = Measure(counts, [&] { driver_.Commit(); });
    if (!counts) return;
    plan_.us.push_back(plan_us);
    if (std::ssize(driver_.plan().pages) >= kNumSeqs) page_end_plan_.us.push_back(plan_us);
    commit_.us.push_back(commit_us);
  }

  SchedulerDriver driver_;
  const int32_t num_drafts_, num_waiting_;
  Samples plan_, page_end_plan_, commit_;
  int64_t num_allocations_ = 0;
};

void Check(const char* name, int32_t num_drafts, int32_t num_waiting, int32_t spare_places = 0) {
  if (!CountsAllocations()) GTEST_SKIP() << "a sanitizer allocates by itself, and takes time";
  PlanningThread thread(num_drafts, num_waiting, spare_places);
  thread.RunRound(0, false);  // every container meets its largest size
  for (int32_t round = 1; round <= 4; ++round) thread.RunRound(round, true);
  EXPECT_EQ(thread.num_allocations(), 0);
  thread.Print(name);
}

TEST(SchedulerSpeed, DecodingAllocatesNothing) { Check("256 decode", 0, 0); }

TEST(SchedulerSpeed, VerifyingAllocatesNothing) { Check("256 verify 5 drafts", 5, 0); }

TEST(SchedulerSpeed, DecodingBeforeAQueueWithoutPagesAllocatesNothing) {
  Check("256 decode, 2000 too large", 0, 2000, 8);
}

TEST(SchedulerSpeed, DecodingBeforeAQueueAllocatesNothing) {
  Check("256 decode, 2000 wait", 0, 2000);
}

}  // namespace
}  // namespace deepinfer
