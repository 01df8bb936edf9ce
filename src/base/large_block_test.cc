#include "base/large_block.h"

#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>

#include "base/simulated_disk.h"

namespace deepinfer {
namespace {

TEST(LargeBlock, IsZerosThatMayBeWrittenAndMoves) {
  constexpr int64_t kBytes = 3 << 20;
  LargeBlock block = LargeBlock::Allocate(kBytes, "test").value();
  EXPECT_EQ(block.num_bytes(), kBytes);
  EXPECT_EQ(std::count(block.data(), block.data() + kBytes, 0), kBytes);
  block.data()[kBytes - 1] = 7;
  LargeBlock moved = std::move(block);
  EXPECT_EQ(moved.data()[kBytes - 1], 7);
  block = LargeBlock();
  EXPECT_EQ(LargeBlock::Allocate(0, "test").value().data(), nullptr);
}

TEST(LargeBlock, TooMuchIsAnErrorThatNamesWhatItWasFor) {
  const auto block = LargeBlock::Allocate(int64_t{1} << 60, "engram tables");
  ASSERT_FALSE(block.ok());
  EXPECT_EQ(block.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(MessageOf(block.status()),
            "engram tables: the system does not give 1152921504606846976 bytes of memory");
}

TEST(LargeBlock, WishesChangeNothing) {
  LargeBlock block = LargeBlock::Allocate(1 << 16, "test").value();
  block.data()[5000] = 1;
  AskForPages({block.data() + 4999, 3});
  AskForPages({});
  EXPECT_EQ(block.data()[5000], 1);
}

TEST(LargeBlock, PagesComeFromTheNodesThatWereNamed) {
  const LargeBlock block = LargeBlock::Allocate(1 << 20, "test").value();
  const std::span memory(block.data(), 1 << 20);
  if (!InterleavePages(memory, std::array{0})) GTEST_SKIP() << "skipped: no memory policies";
  int policy = -1;
  std::array<unsigned long, 64> nodes = {};
  ASSERT_EQ(::syscall(SYS_get_mempolicy, &policy, nodes.data(), nodes.size() * 8 * CHAR_BIT,
                      block.data() + 5000, MPOL_F_ADDR),
            0);
  EXPECT_EQ(policy, MPOL_INTERLEAVE);
  EXPECT_EQ(nodes[0], 1u);
  block.data()[memory.size() - 1] = 1;
  EXPECT_FALSE(InterleavePages(memory, std::array{900})) << "there is no such node";
}

TEST(LargeBlock, AvailableMemoryIsTheLeastThatTheSystemNames) {
  EXPECT_GT(AvailableMemoryBytes(RealDisk()), 0);
  SimulatedDisk disk;
  EXPECT_EQ(AvailableMemoryBytes(disk), 0);
  const auto write = [&](const std::string& path, const std::string& text) {
    ASSERT_TRUE(disk.WriteText(path, text).ok());
  };
  write("/proc/meminfo", "MemTotal:  90000 kB\nMemAvailable:    5000 kB\n");
  EXPECT_EQ(AvailableMemoryBytes(disk), 5000 * 1024);
  write("/sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(AvailableMemoryBytes(disk), 5000 * 1024);
  write("/sys/fs/cgroup/memory.max", "4096000\n");
  EXPECT_EQ(AvailableMemoryBytes(disk), 4096000);
  // What is used counts, what is only cached does not.
  write("/sys/fs/cgroup/memory.current", "3000000\n");
  EXPECT_EQ(AvailableMemoryBytes(disk), 1096000);
  write("/sys/fs/cgroup/memory.stat", "anon 5\ninactive_file 1000000\nactive_file 7\n");
  EXPECT_EQ(AvailableMemoryBytes(disk), 2096000);
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1000\n");
  EXPECT_EQ(AvailableMemoryBytes(disk), 1000);
  write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "2000\n");
  EXPECT_EQ(AvailableMemoryBytes(disk), 0);
}

}  // namespace
}  // namespace deepinfer
