#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <numeric>

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

TEST(ThreadPool, CountsUsableCpus) { EXPECT_GE(NumUsableCpus(), 1); }

}  // namespace
}  // namespace deepinfer
