#include "kernels/cpu/scratch.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "base/sanitizers.h"

namespace deepinfer {
namespace {

// Each test has a thread of its own, so that nothing is there before.
void OnNewThread(void (*body)()) { std::thread(body).join(); }

void Fill(void* memory, int value, size_t bytes) { std::memset(memory, value, bytes); }

TEST(ThreadScratch, FramesAreAStackOfAlignedArrays) {
  OnNewThread([] {
    ThreadScratch::Mine().Reserve(1024);
    ScratchFrame outer;
    auto* const a = outer.Get<uint8_t>(1);
    auto* const b = outer.Get<double>(3);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % 64, 0u);
    EXPECT_EQ(reinterpret_cast<uint8_t*>(b) - a, 64);
    void* first = nullptr;
    {
      ScratchFrame inner;
      first = inner.Get<float>(10);
      EXPECT_GT(first, b);
    }
    ScratchFrame again;
    EXPECT_EQ(again.Get<float>(10), first);
    EXPECT_EQ(ThreadScratch::Mine().peak_bytes(), 192);
    EXPECT_EQ(ThreadScratch::Mine().capacity_bytes(), 1024);
  });
}

TEST(ThreadScratch, WhatDoesNotFitIsThereAllTheSameAndJoinsLater) {
  OnNewThread([] {
    ThreadScratch& scratch = ThreadScratch::Mine();
    scratch.Reserve(128);
    for (int round = 0; round < 2; ++round) {
      ScratchFrame outer;
      auto* const a = outer.Get<uint8_t>(100);
      Fill(a, 1, 100);
      {
        ScratchFrame inner;
        Fill(inner.Get<uint8_t>(5000), 2, 5000);
        Fill(inner.Get<uint8_t>(300), 3, 300);
      }
      auto* const b = outer.Get<uint8_t>(700);
      Fill(b, 4, 700);
      EXPECT_EQ(a[99], 1);
      EXPECT_EQ(b[0], 4);
      EXPECT_EQ(scratch.capacity_bytes() > 128, round == 1);
    }
    EXPECT_GE(scratch.capacity_bytes(), scratch.peak_bytes());
    EXPECT_EQ(scratch.peak_bytes(), 128 + 5056 + 320);
  });
}

TEST(ThreadScratch, WhatDidNotFitInAnInnerFrameJoinsWhenTheOuterOneCloses) {
  OnNewThread([] {
    ThreadScratch& scratch = ThreadScratch::Mine();
    scratch.Reserve(256);
    {
      ScratchFrame outer;
      outer.Get<uint8_t>(64);
      {
        ScratchFrame inner;
        inner.Get<uint8_t>(1000);
      }
      EXPECT_EQ(scratch.capacity_bytes(), 256);
    }
    EXPECT_GE(scratch.capacity_bytes(), 64 + 1024);
  });
}

TEST(ThreadScratch, ReserveTakesOnceAndKeepsTheLargest) {
  OnNewThread([] {
    ThreadScratch& scratch = ThreadScratch::Mine();
    scratch.Reserve(5000);
    EXPECT_EQ(scratch.capacity_bytes(), 5056);
    scratch.Reserve(100);
    EXPECT_EQ(scratch.capacity_bytes(), 5056);
  });
}

TEST(ThreadScratchDeathTest, ReserveUnderAnOpenFrameWouldMoveItsArrays) {
  EXPECT_DEATH(
      {
        ScratchFrame frame;
        ThreadScratch::Mine().Reserve(int64_t{1} << 30);
      },
      "num_frames_");
}

#if DI_ASAN
TEST(ThreadScratchDeathTest, AddressSanitizerSeesTheEndOfAnArrayAndOfItsFrame) {
  ThreadScratch::Mine().Reserve(4096);
  ScratchFrame frame;
  auto* const array = frame.Get<uint8_t>(100);
  frame.Get<uint8_t>(100);
  array[99] = 1;
  EXPECT_DEATH(array[104] = 1, "use-after-poison");
  uint8_t* gone = nullptr;
  {
    ScratchFrame inner;
    gone = inner.Get<uint8_t>(100);
  }
  EXPECT_DEATH(gone[0] = 1, "use-after-poison");
}
#endif

TEST(ScratchMeter, CountsWhatAFrameWouldTake) {
  OnNewThread([] {
    const auto take = [](auto& memory) {
      memory.template Get<double>(9);
      memory.template Get<uint8_t>(0);
      memory.template Get<uint8_t>(65);
    };
    ScratchMeter meter;
    take(meter);
    ThreadScratch::Mine().ResetPeak();
    ScratchFrame frame;
    take(frame);
    EXPECT_EQ(meter.bytes(), 128 + 128);
    EXPECT_EQ(ThreadScratch::Mine().peak_bytes(), meter.bytes());
  });
}

}  // namespace
}  // namespace deepinfer
