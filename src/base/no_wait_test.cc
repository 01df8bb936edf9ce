#include "base/no_wait.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/read_queue.h"
#include "base/simulated_disk.h"
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
  const auto read = [] {
    SimulatedDisk disk;
    CHECK(disk.WriteText("file", "1").ok());
    const auto file = disk.OpenRead("file").value();
    uint8_t byte = 0;
    ReadQueue queue(1);
    ReadBatch batch({{.file = file.get(), .offset = 0, .out = {&byte, 1}}});
    queue.Start(batch);
    const NoWaitScope scope;
    batch.Wait().IgnoreError();
  };
  EXPECT_DEATH(read(), "no_wait");
  const auto write = [] {
    const std::string path = ::testing::TempDir() + "/no_wait";
    const auto file = RealDisk().Create(path).value();
    const NoWaitScope scope;
    file->Append("x").IgnoreError();
  };
  EXPECT_DEATH(write(), "no_wait");
  const auto wait = [] {
    SimulatedClock clock;
    std::mutex mutex;
    std::condition_variable changed;
    std::unique_lock lock(mutex);
    const NoWaitScope scope;
    clock.WaitUntil(lock, changed, clock.Now(), [] { return true; });
  };
  EXPECT_DEATH(wait(), "no_wait");
}

TEST(NoWait, OutsideAndAfterAScopeTheyMay) {
  { const NoWaitScope scope; }
  CheckMayWait();
  RealClock().SleepUntil(RealClock().Now());
}

}  // namespace
}  // namespace deepinfer
