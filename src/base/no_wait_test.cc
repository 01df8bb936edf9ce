#include "base/no_wait.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/thread_pool.h"

namespace deepinfer {
namespace {

TEST(NoWait, WhatBlocksOnOthersStopsTheProcessInsideAScope) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto loop = [] {
    ThreadPool pool(2);
    const NoWaitScope scope;
    pool.ParallelFor(2, 1, [](int64_t, int64_t) {});
  };
  EXPECT_DEATH(loop(), "no_wait");
  const auto sleep = [] {
    const NoWaitScope scope;
    RealClock().SleepUntil(RealClock().Now());
  };
  EXPECT_DEATH(sleep(), "no_wait");
}

TEST(NoWait, OutsideAndAfterAScopeTheyMay) {
  { const NoWaitScope scope; }
  CheckMayWait();
  RealClock().SleepUntil(RealClock().Now());
}

}  // namespace
}  // namespace deepinfer
