#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>

namespace deepinfer {
namespace {

TEST(ThreadPool, RunsEveryIndexOnceInAnySize) {
  for (const int num_threads : {1, 2, 5}) {
    ThreadPool pool(num_threads);
    EXPECT_EQ(pool.num_threads(), num_threads);
    for (const int64_t count : {0, 1, 2, 19, 1000}) {
      for (const int64_t min_piece : {0, 1, 7, 5000}) {
        std::vector<int> hits(static_cast<size_t>(count), 0);
        pool.ParallelFor(count, min_piece, [&](int64_t begin, int64_t end) {
          ASSERT_TRUE(0 <= begin && begin < end && end <= count) << begin << ".." << end;
          for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
        });
        EXPECT_EQ(std::count(hits.begin(), hits.end(), 1), count);
      }
    }
  }
}

TEST(ThreadPool, PiecesAreAtLeastAsLongAsAsked) {
  ThreadPool pool(4);
  std::atomic<int> num_short{0};
  pool.ParallelFor(100, 30, [&](int64_t begin, int64_t end) {
    if (end - begin < 30 && end != 100) ++num_short;
  });
  EXPECT_EQ(num_short, 0);
}

TEST(ThreadPool, WritesOfOneLoopAreSeenByTheNext) {
  ThreadPool pool(4);
  std::vector<int64_t> values(512, 0);
  for (int round = 0; round < 200; ++round) {
    pool.ParallelFor(512, 1, [&](int64_t begin, int64_t end) {
      // Each index reads what another thread may have written in the round before.
      for (int64_t i = begin; i < end; ++i) ++values[static_cast<size_t>(i)];
    });
  }
  EXPECT_EQ(std::accumulate(values.begin(), values.end(), int64_t{0}), 512 * 200);
}

TEST(ThreadPool, LoopsFollowEachOtherThroughSleepAndSpin) {
  for (const bool pin : {false, true}) {
    ThreadPool pool(2, {.pin = pin});
    std::atomic<int64_t> sum{0};
    for (int round = 0; round < 60; ++round) {
      if (round % 20 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      pool.ParallelFor(8, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
    }
    EXPECT_EQ(sum, 60 * 8);
  }
}

// A worker that never comes must not hold up a loop: pieces are done by whoever is there.
TEST(ThreadPool, ManyMoreThreadsThanCpus) {
  ThreadPool pool(40);
  std::atomic<int64_t> sum{0};
  for (int round = 0; round < 50; ++round) {
    pool.ParallelFor(1000, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) sum += i;
    });
  }
  EXPECT_EQ(sum, 50 * 499500);
}

}  // namespace
}  // namespace deepinfer
