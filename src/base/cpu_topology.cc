#include "base/cpu_topology.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <tuple>

#include "base/strings.h"

namespace deepinfer {
namespace {

constexpr int kMaxCpus = CPU_SETSIZE;

// A file of the system's; empty if there is none.
std::string ReadFile(Disk& disk, const std::string& path) {
  return disk.ReadText(path).value_or("");
}

// Takes a whole number off the front of `text`.
std::optional<int64_t> TakeNumber(std::string_view& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

std::vector<int> AffinityMask() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> ids;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  for (int id = 0; id < kMaxCpus; ++id) {
    if (CPU_ISSET(id, &set)) ids.push_back(id);
  }
  return ids.empty() ? std::vector<int>{0} : ids;
}

}  // namespace

std::vector<int> ParseCpuList(std::string_view text) {
  std::vector<int> ids;
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  while (!text.empty()) {
    const auto first = TakeNumber(text);
    if (!first) return {};
    std::optional<int64_t> last = first;
    if (!text.empty() && text.front() == '-') {
      text.remove_prefix(1);
      last = TakeNumber(text);
    }
    if (!last || *last < *first || *last >= kMaxCpus) return {};
    for (int64_t id = *first; id <= *last; ++id) ids.push_back(static_cast<int>(id));
    if (text.empty()) break;
    if (text.front() != ',') return {};
    text.remove_prefix(1);
  }
  return ids;
}

int ParseCpuQuota(std::string_view text) {
  const auto quota = TakeNumber(text);
  if (!quota || text.empty() || text.front() != ' ') return 0;  // "max 100000"
  text.remove_prefix(1);
  const auto period = TakeNumber(text);
  if (!period || *period == 0) return 0;
  return static_cast<int>(std::clamp<int64_t>((*quota + *period - 1) / *period, 1, kMaxCpus));
}

std::vector<Cpu> UsableCpus(Disk& disk) {
  std::map<int, int> node_of;
  const std::string nodes = "/sys/devices/system/node/";
  for (const int node : ParseCpuList(ReadFile(disk, nodes + "online"))) {
    for (const int id : ParseCpuList(ReadFile(disk, StrCat(nodes, "node", node, "/cpulist")))) {
      node_of[id] = node;
    }
  }
  std::map<int, int> seen_of_core;  // by the core's first processor
  std::vector<Cpu> cpus;
  for (const int id : AffinityMask()) {
    const std::vector<int> siblings = ParseCpuList(ReadFile(
        disk, StrCat("/sys/devices/system/cpu/cpu", id, "/topology/thread_siblings_list")));
    const int core = siblings.empty() ? id : siblings.front();
    cpus.push_back({id, node_of.contains(id) ? node_of[id] : 0, seen_of_core[core]++});
  }
  return cpus;
}

std::vector<Cpu> PlaceThreads(std::vector<Cpu> cpus, int count) {
  std::sort(cpus.begin(), cpus.end(), [](const Cpu& a, const Cpu& b) {
    return std::tie(a.sibling, a.node, a.id) < std::tie(b.sibling, b.node, b.id);
  });
  if (std::ssize(cpus) > count) cpus.resize(static_cast<size_t>(std::max(count, 0)));
  std::stable_sort(cpus.begin(), cpus.end(),
                   [](const Cpu& a, const Cpu& b) { return a.node < b.node; });
  return cpus;
}

int DefaultNumThreads() {
  const std::vector<Cpu> cpus = UsableCpus();
  const auto cores = static_cast<int>(
      std::count_if(cpus.begin(), cpus.end(), [](const Cpu& cpu) { return cpu.sibling == 0; }));
  const int quota = ParseCpuQuota(ReadFile(RealDisk(), "/sys/fs/cgroup/cpu.max"));
  return std::max(1, quota > 0 ? std::min(cores, quota) : cores);
}

}  // namespace deepinfer
