#include "base/cpu_time.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/clock.h"

namespace deepinfer {
namespace {

using std::chrono::milliseconds;

TEST(CpuTime, CountsWorkAndNotSleep) {
  const double before = ThreadCpuSeconds(), process_before = ProcessCpuSeconds();
  RealClock().SleepUntil(RealClock().Now() + milliseconds(40));
  EXPECT_LT(ThreadCpuSeconds() - before, 0.02);
  // The system advances the two clocks at different moments.
  const auto both = [&] {
    return std::min(ThreadCpuSeconds() - before, ProcessCpuSeconds() - process_before);
  };
  const MonotonicTime deadline = RealClock().Now() + std::chrono::seconds(30);
  while (both() < 0.03 && RealClock().Now() < deadline) {
  }
  EXPECT_GE(both(), 0.03);
}

}  // namespace
}  // namespace deepinfer
