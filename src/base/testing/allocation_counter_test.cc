#include "base/testing/allocation_counter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/thread_pool.h"

namespace deepinfer {
namespace {

// Hides a pointer from the optimiser, which may leave out an allocation that nobody looks at.
void Use(void* memory) { asm volatile("" : : "r"(memory) : "memory"); }

int64_t CountOf(FunctionRef<void()> body) {
  AllocationCounter counter;
  body();
  return counter.count();
}

TEST(AllocationCounter, SeesEveryKindAndEveryThread) {
  if (!CountsAllocations()) GTEST_SKIP() << "skipped: sanitizer";
  EXPECT_EQ(CountOf([] {}), 0);
  EXPECT_EQ(CountOf([] { Use(std::make_unique<int>(1).get()); }), 1);
  EXPECT_EQ(CountOf([] { Use(std::vector<char>(100).data()); }), 1);
  EXPECT_EQ(CountOf([] {
              struct alignas(128) Wide {
                char bytes[128];
              };
              Use(std::make_unique<Wide>().get());
            }),
            1);
  EXPECT_EQ(CountOf([] {
              void* memory = std::malloc(10);
              Use(memory);
              memory = std::realloc(memory, 1000);
              Use(memory);
              std::free(memory);
            }),
            2);
  EXPECT_EQ(CountOf([] {
              void* memory = std::calloc(3, 5);
              Use(memory);
              std::free(memory);
              memory = std::aligned_alloc(64, 128);
              Use(memory);
              std::free(memory);
              if (posix_memalign(&memory, 64, 100) != 0) std::abort();
              Use(memory);
              std::free(memory);
            }),
            3);
  ThreadPool pool(2);
  EXPECT_EQ(CountOf([&] { pool.OnEveryThread([] { Use(std::make_unique<int>(2).get()); }); }), 2);
}

TEST(AllocationCounter, KnowsWhatWasNotGivenBack) {
  if (!CountsAllocations()) GTEST_SKIP() << "skipped: sanitizer";
  AllocationCounter counter;
  Use(std::vector<char>(5000).data());
  EXPECT_EQ(counter.kept_bytes(), 0);
  const std::vector<char> kept(777);
  Use(const_cast<char*>(kept.data()));
  EXPECT_EQ(counter.count(), 2);
  EXPECT_GE(counter.kept_bytes(), 777);
  EXPECT_LE(counter.kept_bytes(), 777 + 64);
}

// Loops of a pool go on for the whole life of a step, so they may not allocate themselves.
TEST(AllocationCounter, ParallelForAllocatesNothing) {
  if (!CountsAllocations()) GTEST_SKIP() << "skipped: sanitizer";
  ThreadPool pool(2);
  const int64_t a = 1, b = 2, c = 3, d = 4;
  std::atomic<int64_t> sum{0};
  EXPECT_EQ(CountOf([&] {
              pool.ParallelFor(64, 1, [&sum, a, b, c, d](int64_t begin, int64_t end) {
                sum += (end - begin) * (a + b + c + d);
              });
            }),
            0);
  EXPECT_EQ(sum, 640);
}

}  // namespace
}  // namespace deepinfer
