#include "base/clock.h"

#include <gtest/gtest.h>

#include <thread>

namespace deepinfer {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

void AwaitWaiters(const SimulatedClock& clock, int count) {
  while (clock.num_waiters() != count) std::this_thread::yield();
}

TEST(RealClock, RunsForwardAndKnowsTheDate) {
  const MonotonicTime before = RealClock().Now();
  RealClock().SleepUntil(before + milliseconds(5));
  EXPECT_GE(RealClock().Now() - before, milliseconds(5));
  EXPECT_GT(RealClock().Wall().ns, int64_t{1'700'000'000} * 1'000'000'000);  // after 2023
}

TEST(RealClock, WaitEndsAtItsDeadline) {
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_lock lock(mutex);
  const MonotonicTime deadline = RealClock().Now() + milliseconds(5);
  EXPECT_FALSE(RealClock().WaitUntil(lock, changed, deadline, [] { return false; }));
  EXPECT_GE(RealClock().Now(), deadline);
}

TEST(SimulatedClock, MovesOnlyWhenTold) {
  SimulatedClock clock(WallTime{500});
  EXPECT_EQ(clock.Now().ns, 0);
  clock.Advance(Duration(7));
  EXPECT_EQ(clock.Now().ns, 7);
  EXPECT_EQ(clock.Wall().ns, 507);
}

TEST(SimulatedClock, SleeperWakesWhenItsTimeHasCome) {
  SimulatedClock clock;
  std::thread sleeper([&] { clock.SleepUntil(MonotonicTime() + hours(1)); });
  AwaitWaiters(clock, 1);
  clock.Advance(hours(1) - Duration(1));
  EXPECT_EQ(clock.num_waiters(), 1);
  clock.Advance(Duration(1));
  sleeper.join();
  EXPECT_EQ(clock.num_waiters(), 0);
}

TEST(SimulatedClock, WaiterLeavesWhenReadyOrLate) {
  SimulatedClock clock;
  std::mutex mutex;
  std::condition_variable changed;
  bool ready = false;
  std::optional<bool> result;
  const auto wait = [&] {
    std::unique_lock lock(mutex);
    result = clock.WaitUntil(lock, changed, clock.Now() + hours(1), [&] { return ready; });
  };

  std::thread late(wait);
  AwaitWaiters(clock, 1);
  clock.Advance(hours(1));
  late.join();
  EXPECT_EQ(result, false);

  std::thread early(wait);
  AwaitWaiters(clock, 1);
  {
    std::lock_guard lock(mutex);
    ready = true;
  }
  changed.notify_all();
  early.join();
  EXPECT_EQ(result, true);
}

}  // namespace
}  // namespace deepinfer
