#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <numeric>
#include <set>
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

// Large pieces first, single ones at the end: few are asked for, and nobody waits long.
TEST(ThreadPool, PiecesBecomeSmallerTowardsTheEnd) {
  ThreadPool pool(2);
  std::mutex mutex;
  std::vector<int64_t> lengths;
  pool.ParallelFor(2000, 1, [&](int64_t begin, int64_t end) {
    const std::lock_guard lock(mutex);
    lengths.push_back(end - begin);
  });
  EXPECT_LE(lengths.size(), 60u);
  EXPECT_EQ(*std::min_element(lengths.begin(), lengths.end()), 1);
  EXPECT_GE(*std::max_element(lengths.begin(), lengths.end()), 250);
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

TEST(ThreadPool, OnEveryThreadRunsOnceOnEach) {
  for (const int num_threads : {1, 2, 7}) {
    ThreadPool pool(num_threads);
    for (int round = 0; round < 20; ++round) {
      std::mutex mutex;
      std::multiset<std::thread::id> seen;
      pool.OnEveryThread([&] {
        std::lock_guard lock(mutex);
        seen.insert(std::this_thread::get_id());
      });
      EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), static_cast<size_t>(num_threads));
      EXPECT_EQ(seen.size(), static_cast<size_t>(num_threads));
      EXPECT_EQ(seen.count(std::this_thread::get_id()), 1u);
    }
  }
}

TEST(FunctionRef, CallsWhatItRefersToAndCopiesNothing) {
  int calls = 0;
  auto counter = [&calls, by_value = 0](int step) mutable {
    calls += step;
    return ++by_value;
  };
  const FunctionRef<int(int)> ref = counter;
  const FunctionRef<int(int)> same = ref;
  EXPECT_EQ(ref(5), 1);
  EXPECT_EQ(same(2), 2);  // the one object
  EXPECT_EQ(calls, 7);
  const std::function<int(int)> constant = [](int x) { return 2 * x; };
  EXPECT_EQ(FunctionRef<int(int)>(constant)(4), 8);
}

}  // namespace
}  // namespace deepinfer
