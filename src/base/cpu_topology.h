// base/cpu_topology.h: which processors this process may use, and where they are.
#pragma once

#include <string_view>
#include <vector>

#include "base/disk.h"

namespace deepinfer {

struct Cpu {
  int id = 0;
  int node = 0;     // of memory
  int sibling = 0;  // 0: the first of its physical core that we may use, 1: the second, ...
};

// The processors of this process's affinity mask, ascending. What /sys does not tell (in some
// containers) counts as one node of single-threaded cores.
std::vector<Cpu> UsableCpus(Disk& disk = RealDisk());

// As many of `cpus` as asked for, one to a core first, those of a node together: neighbours among
// threads are neighbours in memory. Fewer than `count` if there are not as many.
std::vector<Cpu> PlaceThreads(std::vector<Cpu> cpus, int count);

// How many threads compute fastest: one for each physical core that may be used, no more than the
// control group's share of time. At least 1.
int DefaultNumThreads();

// "0-3,8" -> {0, 1, 2, 3, 8}. Empty for a text of another form.
std::vector<int> ParseCpuList(std::string_view text);
// The quota of a control group's cpu.max, "200000 100000" -> 2 CPUs, rounded up; 0: none.
int ParseCpuQuota(std::string_view text);

}  // namespace deepinfer
