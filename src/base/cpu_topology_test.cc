#include "base/cpu_topology.h"

#include <gtest/gtest.h>

#include "base/simulated_disk.h"
#include "base/strings.h"

namespace deepinfer {
namespace {

TEST(CpuTopology, ReadsLists) {
  EXPECT_EQ(ParseCpuList("0-3,8\n"), (std::vector<int>{0, 1, 2, 3, 8}));
  EXPECT_EQ(ParseCpuList("5"), (std::vector<int>{5}));
  for (const char* bad : {"", "\n", "a", "3-", "3-1", "1,,2", "0-99999999", "-1", "1;2"}) {
    EXPECT_TRUE(ParseCpuList(bad).empty()) << bad;
  }
}

TEST(CpuTopology, ReadsQuotas) {
  EXPECT_EQ(ParseCpuQuota("200000 100000"), 2);
  EXPECT_EQ(ParseCpuQuota("150000 100000"), 2);
  EXPECT_EQ(ParseCpuQuota("1000 100000"), 1);
  for (const char* none : {"max 100000", "", "100000", "100000 0", "x y"}) {
    EXPECT_EQ(ParseCpuQuota(none), 0) << none;
  }
}

// Two nodes of two cores of two threads: 0..3 are the first threads, 4..7 their siblings.
TEST(CpuTopology, ThreadsTakeCoresFirstAndStayTogetherByNode) {
  const std::vector<Cpu> cpus = {{0, 0, 0}, {1, 1, 0}, {2, 0, 0}, {3, 1, 0},
                                 {4, 0, 1}, {5, 1, 1}, {6, 0, 1}, {7, 1, 1}};
  const auto ids = [&](int count) {
    std::vector<int> out;
    for (const Cpu& cpu : PlaceThreads(cpus, count)) out.push_back(cpu.id);
    return out;
  };
  EXPECT_EQ(ids(4), (std::vector<int>{0, 2, 1, 3}));
  EXPECT_EQ(ids(6), (std::vector<int>{0, 2, 4, 6, 1, 3}));
  EXPECT_EQ(ids(100).size(), 8u);
  EXPECT_TRUE(ids(0).empty());
}

TEST(CpuTopology, UsableCpusHaveTheirNodeAndSibling) {
  SimulatedDisk disk;
  const std::vector<Cpu> plain = UsableCpus(disk);  // tells nothing
  ASSERT_FALSE(plain.empty());
  for (const Cpu& cpu : plain) EXPECT_TRUE(cpu.node == 0 && cpu.sibling == 0) << cpu.id;
  // All that we may use are threads of one core of node 3.
  std::string all;
  for (const Cpu& cpu : plain) all += StrCat(all.empty() ? "" : ",", cpu.id);
  const auto write = [&](const std::string& path, const std::string& text) {
    ASSERT_TRUE(disk.WriteText("/sys/devices/system/" + path, text + "\n").ok());
  };
  write("node/online", "0,3");
  write("node/node0/cpulist", "");
  write("node/node3/cpulist", all);
  for (const Cpu& cpu : plain) {
    write(StrCat("cpu/cpu", cpu.id, "/topology/thread_siblings_list"), all);
  }
  const std::vector<Cpu> told = UsableCpus(disk);
  ASSERT_EQ(told.size(), plain.size());
  for (size_t i = 0; i < told.size(); ++i) {
    EXPECT_EQ(told[i].node, 3);
    EXPECT_EQ(told[i].sibling, static_cast<int>(i));
  }
}

TEST(CpuTopology, ThereIsAlwaysAThread) { EXPECT_GE(DefaultNumThreads(), 1); }

}  // namespace
}  // namespace deepinfer
