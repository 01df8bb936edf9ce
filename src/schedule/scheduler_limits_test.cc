// What bounds who waits, who runs without rows, and how much of a step one kind of row may take.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "schedule/scheduler.h"
#include "schedule/testing/small_case.h"

namespace deepinfer {
namespace {

using testing::DriverEnd;
using testing::DriverRequest;
using testing::MakeRequest;
using testing::RowsIn;
using testing::SchedulerDriver;
using testing::SmallSizes;

SchedulerOptions Options() { return testing::SmallOptions(ReplayMode::kExact); }

// ---- who waits

TEST(SchedulerLimits, FurtherChoicesCountAmongThoseThatWait) {
  SchedulerOptions options = Options();
  options.max_waiting = 3;
  SchedulerDriver driver(options, SmallSizes());
  DriverRequest more = MakeRequest(1, 100, 4);
  more.after = driver.Add(more);
  driver.Add(more);
  EXPECT_EQ(driver.scheduler().queue_room(), 1);
  const int last = driver.Add(more);
  EXPECT_EQ(driver.scheduler().queue_room(), 0);
  const auto refused = driver.TryAdd(more);
  EXPECT_EQ(MessageOf(refused.status()),
            "waiting queue holds 3 sequences, its limit is 3; retry later or raise max_waiting");
  driver.Cancel(last);
  EXPECT_EQ(driver.scheduler().queue_room(), 1);
  driver.Run();
  EXPECT_EQ(driver.scheduler().queue_room(), 3);
  driver.CheckNothingHeld();
}

TEST(SchedulerLimits, MaxWaitingHasAMaximum) {
  SchedulerOptions options = Options();
  options.max_waiting = kMaxWaiting;
  EXPECT_TRUE(CheckSchedulerOptions(options).ok());
  options.max_waiting = std::numeric_limits<int32_t>::max();
  EXPECT_EQ(MessageOf(CheckSchedulerOptions(options)),
            "max_waiting: found 2147483647, expected 1..65536");
}

// ---- deadlines

TEST(SchedulerLimits, AStartedRequestsFurtherChoicesHaveNoDeadlineAnyMore) {
  SchedulerDriver driver(Options(), SmallSizes());
  DriverRequest request = MakeRequest(1, 1000, 4);
  request.deadline_ms = 100;
  const int first = driver.Add(request);
  request.after = first;
  const int second = driver.Add(request);
  driver.Step();
  driver.Advance(std::chrono::seconds(1));
  driver.Run();
  EXPECT_EQ(driver.At(first).end, DriverEnd::kDone);
  EXPECT_EQ(driver.At(second).end, DriverEnd::kDone);
}

TEST(SchedulerLimits, FurtherChoicesOfARequestThatNeverStartedExpireWithIt) {
  SchedulerOptions options = Options();
  options.max_num_seqs = 1;
  SchedulerDriver driver(options, SmallSizes());
  driver.Add(MakeRequest(2, 10, 50));
  driver.Step();
  DriverRequest request = MakeRequest(1, 100, 4);
  request.deadline_ms = 100;
  const int first = driver.Add(request);
  request.after = first;
  const int second = driver.Add(request);
  driver.Advance(std::chrono::seconds(1));
  driver.Step();
  driver.Step();
  EXPECT_EQ(driver.At(first).end, DriverEnd::kExpired);
  EXPECT_EQ(driver.At(second).end, DriverEnd::kExpired);
  driver.Run();
  driver.CheckNothingHeld();
}

// Keeps every row of every step busy with prompts of a higher priority.
class Flooded {
 public:
  explicit Flooded(SchedulerOptions options = Options()) : driver(options, SmallSizes()) {
    for (int i = 0; i < 2; ++i) Pour();
  }
  bool Step() {
    Pour();
    driver.Advance(std::chrono::seconds(1));
    return driver.Step();
  }
  SchedulerDriver driver;

 private:
  void Pour() {
    DriverRequest request = MakeRequest(1000 + driver.num_sequences(), 512);
    request.priority = 1;
    driver.Add(request);
  }
};

TEST(SchedulerLimits, WhoHasAPlaceButNoRowsExpires) {
  Flooded flooded;
  DriverRequest request = MakeRequest(1, 100);
  request.deadline_ms = 3'500;
  const int starved = flooded.driver.Add(request);
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(flooded.Step());
    ASSERT_EQ(RowsIn(flooded.driver, starved), 0);
    EXPECT_TRUE(flooded.driver.At(starved).alive());
  }
  EXPECT_EQ(flooded.driver.scheduler().stats().num_waiting, 0);  // all of them have a place
  ASSERT_TRUE(flooded.Step());
  EXPECT_EQ(flooded.driver.At(starved).end, DriverEnd::kExpired);
  flooded.driver.Run();
  flooded.driver.CheckNothingHeld();
}

TEST(SchedulerLimits, APlaceWithoutRowsAgesAndDoesNotStarve) {
  Flooded flooded;
  const int low = flooded.driver.Add(MakeRequest(1, 600));
  std::vector<int> steps_with_rows;
  for (int step = 1; flooded.driver.At(low).alive(); ++step) {
    ASSERT_LT(step, 50);
    ASSERT_TRUE(flooded.Step());
    if (RowsIn(flooded.driver, low) > 0) steps_with_rows.push_back(step);
  }
  // Its place came with the first step; 10 s without rows count as a priority. Beside it, who never
  // had a chunk goes first.
  ASSERT_EQ(steps_with_rows.size(), 2u);
  EXPECT_EQ(steps_with_rows[0], 11);
  EXPECT_EQ(steps_with_rows[1], 31);
}

// ---- rows of a step

TEST(SchedulerLimits, ScoredRowsOfAllPromptsTogetherAreBounded) {
  SchedulerOptions options = Options();
  options.max_scored_rows = 100;
  SchedulerDriver driver(options, SmallSizes());
  for (int32_t i = 0; i < 4; ++i) {
    DriverRequest request = MakeRequest(i, 90);
    request.whole_prompt = request.scores_prompt = i != 3;
    driver.Add(request);
  }
  int32_t most = 0;
  while (driver.Step()) {
    int32_t scored = 0;
    for (int handle = 0; handle < 3; ++handle) scored += RowsIn(driver, handle);
    EXPECT_LE(scored, 100);
    most = std::max(most, scored);
  }
  EXPECT_GT(most, 60);
  EXPECT_EQ(driver.scheduler().stats().num_plans - 1, 4);  // 270 rows, and one token that is last
}

TEST(SchedulerLimits, DraftsLeaveAPromptItsLeastChunk) {
  SchedulerOptions options = Options();
  options.max_num_seqs = 64;
  options.max_num_batched_tokens = 320;
  options.num_drafts = 5;
  CacheSizes sizes = SmallSizes();
  sizes.num_states = 64;
  sizes.num_pages = 256;
  SchedulerDriver driver(options, sizes);
  for (int32_t i = 0; i < 60; ++i) driver.Add(MakeRequest(i, 4, 200));
  for (int step = 0; step < 3; ++step) driver.Step();
  EXPECT_EQ(driver.plan().num_rows, 320);  // nobody else wants them
  const int prompt = driver.Add(MakeRequest(100, 1000));
  driver.Step();
  driver.Step();
  EXPECT_EQ(RowsIn(driver, prompt), 256);
  EXPECT_GE(driver.plan().num_rows, 60 + 256);
  driver.Run();
}

// ---- what is learnt

TEST(SchedulerLimits, StepsWithoutRowsAreNotLearntFrom) {
  SchedulerDriver driver(Options(), SmallSizes());
  driver.scheduler().Learn({}, 1e-6);
  EXPECT_EQ(driver.scheduler().cost_model().num_steps(), 0);
  driver.scheduler().Learn({.rows = 1}, 1e-6);
  EXPECT_EQ(driver.scheduler().cost_model().num_steps(), 1);
}

}  // namespace
}  // namespace deepinfer
