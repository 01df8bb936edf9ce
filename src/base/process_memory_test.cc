#include "base/process_memory.h"

#include <gtest/gtest.h>

#include "base/simulated_disk.h"

namespace deepinfer {
namespace {

TEST(ProcessMemory, ReadsWhatTheSystemSays) {
  SimulatedDisk disk;
  EXPECT_EQ(ResidentBytes(disk), 0);  // says nothing
  ASSERT_TRUE(disk.WriteText("/proc/self/status",
                             "Name:\tx\nVmPeak:\t 9 kB\nVmHWM:\t   300 kB\nVmRSS:\t  200 kB\n")
                  .ok());
  EXPECT_EQ(ResidentBytes(disk), 200 * 1024);
  EXPECT_EQ(PeakResidentBytes(disk), 300 * 1024);
}

TEST(ProcessMemory, ThisProcessHasSome) { EXPECT_GT(ResidentBytes(), 0); }

}  // namespace
}  // namespace deepinfer
