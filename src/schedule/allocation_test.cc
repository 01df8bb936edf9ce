// What the planning thread calls in every step allocates nothing, however much waits.
//
// This file replaces the program's operator new by one that counts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

#include "schedule/cost_model.h"
#include "schedule/waiting_queue.h"

namespace {

int64_t g_num_allocations = 0;

}  // namespace

void* operator new(size_t size) {
  ++g_num_allocations;
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) std::abort();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace deepinfer {
namespace {

template <typename Fn>
int64_t AllocationsIn(Fn&& fn) {
  const int64_t before = g_num_allocations;
  fn();
  return g_num_allocations - before;
}

TEST(Allocation, ControlIsSeen) {
  EXPECT_GE(AllocationsIn([] { std::vector<int>(100).data()[0] = 1; }), 1);
}

TEST(Allocation, CostModelLearnsAndFitsWithoutAny) {
  CostModel model;
  EXPECT_EQ(AllocationsIn([&] {
              for (int i = 0; i < 5000; ++i) {
                StepLoad load;
                load.Add(1 + i % 100, i);
                model.Add(load, 0.01 + 1e-5 * (i % 100));
              }
              EXPECT_GT(model.Errors().num_steps, 0);
            }),
            0);
  EXPECT_GT(model.num_fits(), 5);
}

// A thousand entries; what the queue refuses is put back as if it had started.
void Fill(WaitingQueue& queue, int32_t num_tenants) {
  for (int32_t i = 0; i < 1000; ++i) {
    const WaitingEntry entry = {.id = i, .tenant = i % num_tenants, .priority = i % 3, .cost = i};
    if (!queue.Push(entry).ok()) queue.Requeue(entry);
  }
}

TEST(Allocation, QueueOfAThousandIsVisitedWithoutAny) {
  for (const int32_t num_tenants : {1, 10, 1000}) {
    WaitingQueue queue(800);  // has grown
    Fill(queue, num_tenants);
    int64_t offered = 0;
    EXPECT_EQ(AllocationsIn([&] {
                for (int64_t s = 1; s <= 50; ++s) {
                  const MonotonicTime now = {s * 1'000'000'000};
                  queue.Visit(now, [&](int64_t id) {
                    ++offered;
                    if (id % 50 == s) return VisitAnswer::kStart;
                    return s > 40 && id % 97 == 0 ? VisitAnswer::kSkip : VisitAnswer::kNotReady;
                  });
                  queue.Charge(0, 100);
                  queue.TakeExpired(now, [](int64_t) {});
                }
              }),
              0);
    EXPECT_GT(offered, 5000);
  }
}

}  // namespace
}  // namespace deepinfer
