// Sequences that are held behind their prompt, and rows that sit a step out.
#include <gtest/gtest.h>

#include "schedule/testing/small_case.h"

namespace deepinfer {
namespace {

using testing::DriverEnd;
using testing::DriverRequest;
using testing::MakeRequest;
using testing::RowsIn;
using testing::SchedulerDriver;
using testing::SmallOptions;
using testing::SmallSizes;

DriverRequest Held(int32_t seed, int32_t num_prompt, int32_t max_output = 5) {
  DriverRequest request = MakeRequest(seed, num_prompt, max_output);
  request.held = true;
  return request;
}

// Pages may be copied all the same.
bool RunsRows(SchedulerDriver& driver) { return driver.Step() && !driver.plan().rows.empty(); }

TEST(SchedulerHeld, ComputesItsPromptAndRests) {
  SchedulerDriver driver(SmallOptions(ReplayMode::kExact), SmallSizes());
  const int held = driver.Add(Held(1, 700));
  EXPECT_TRUE(driver.Step());
  EXPECT_EQ(RowsIn(driver, held), 512);
  EXPECT_TRUE(driver.Step());
  EXPECT_EQ(RowsIn(driver, held), 188);
  EXPECT_FALSE(RunsRows(driver));
  EXPECT_TRUE(driver.scheduler().HasWork());
  driver.Release(held);
  driver.Run();
  EXPECT_EQ(driver.At(held).end, DriverEnd::kDone);
  EXPECT_EQ(driver.At(held).num_output(), 5);
  driver.CheckNothingHeld();
}

TEST(SchedulerHeld, ReleasedBeforeItsPromptIsDoneItNeverRests) {
  SchedulerDriver driver(SmallOptions(ReplayMode::kExact), SmallSizes());
  const int held = driver.Add(Held(1, 700));
  driver.Step();
  driver.Release(held);
  int steps = 1;
  while (RunsRows(driver)) ++steps;
  EXPECT_EQ(steps, 2 + 4);  // the second chunk gives the first token
}

// It has the only pages; a stranger who needs them gets them at once.
TEST(SchedulerHeld, GivesWayToWhoHasNoRoom) {
  CacheSizes sizes = SmallSizes();
  sizes.num_pages = 12;
  for (const bool ahead : {false, true}) {
    SchedulerDriver driver(SmallOptions(ReplayMode::kExact), sizes);
    const int held = driver.Add(Held(1, 640));
    driver.Step();
    driver.Step();
    EXPECT_FALSE(RunsRows(driver));
    const int other = driver.Add(MakeRequest(2, 400, 9));
    while (ahead ? driver.StepAhead() : driver.Step()) {
    }
    EXPECT_EQ(driver.At(other).end, DriverEnd::kDone);
    EXPECT_EQ(driver.scheduler().stats().num_preempted, 1);
    driver.Release(held);
    driver.Run();
    EXPECT_EQ(driver.At(held).end, DriverEnd::kDone);
    driver.CheckNothingHeld();
  }
}

TEST(SchedulerHeld, OnePreemptedStandsInNobodysWay) {
  SchedulerDriver driver(SmallOptions(ReplayMode::kExact), SmallSizes());
  const int held = driver.Add(Held(1, 100));
  driver.Step();
  driver.Preempt(held);
  driver.Step();
  EXPECT_EQ(driver.scheduler().stats().num_preempted, 1);
  const int other = driver.Add(MakeRequest(2, 100, 9));
  while (driver.Step()) {
  }
  EXPECT_EQ(driver.At(other).end, DriverEnd::kDone);
  EXPECT_EQ(driver.scheduler().stats().num_preempted, 1);  // it did not come back for nothing
  driver.Release(held);
  driver.Run();
  EXPECT_EQ(driver.At(held).end, DriverEnd::kDone);
  driver.CheckNothingHeld();
}

// All pages are theirs and nobody can say anything: no step, no end.
TEST(SchedulerHeld, AloneTheyWait) {
  SchedulerDriver driver(SmallOptions(ReplayMode::kExact), SmallSizes());
  for (int i = 0; i < 8; ++i) driver.Add(Held(i, 100));
  driver.Step();
  driver.Step();
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(RunsRows(driver));
  EXPECT_EQ(driver.scheduler().stats().preempted, 0);
  for (int i = 0; i < 8; ++i) driver.Cancel(i);
  driver.CheckNothingHeld();
}

TEST(SchedulerHeld, RowsThatSatOutRunAgainWhereTheyStood) {
  SchedulerOptions options = SmallOptions(ReplayMode::kExact);
  options.num_drafts = 2;
  for (const bool ahead : {false, true}) {
    for (int32_t prompt = 60; prompt < 70; ++prompt) {  // around a page end
      SchedulerDriver driver(options, SmallSizes());
      DriverRequest request = MakeRequest(1, prompt, 12);
      request.accepts = 2;
      const int one = driver.Add(request);
      request.prompt = testing::MakePrompt(2, prompt);
      const int other = driver.Add(request);
      driver.At(one).sits_out = 3;
      int steps = 0;
      while (ahead ? driver.StepAhead() : driver.Step()) ++steps;
      EXPECT_EQ(driver.At(one).num_output(), 12);
      EXPECT_EQ(driver.At(other).num_output(), 12);
      EXPECT_EQ(driver.TakeEnded(), (std::vector<int>{other, one}));
      driver.CheckNothingHeld();
    }
  }
}

// A snapshot at a page end that the row passes while it sits out is there once.
TEST(SchedulerHeld, ASnapshotIsTakenThoughTheRowSitsOut) {
  SchedulerDriver driver(SmallOptions(ReplayMode::kExact), SmallSizes());
  const int one = driver.Add(MakeRequest(1, 62, 9));
  driver.Step();
  driver.Step();  // position 62; token 64 is known
  driver.At(one).sits_out = 2;
  driver.Step();  // position 63 ends the page
  EXPECT_EQ(driver.At(one).num_tokens(), 64);
  EXPECT_EQ(driver.scheduler().stats().snapshots_taken, 1);
  driver.Run();
  EXPECT_EQ(driver.scheduler().stats().snapshots_taken, 1);
  driver.CheckNothingHeld();
}

}  // namespace
}  // namespace deepinfer
