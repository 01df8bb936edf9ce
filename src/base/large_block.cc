#include "base/large_block.h"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/cpu_topology.h"

namespace deepinfer {
namespace {

// The nodes of memory that the processors of this process belong to.
const std::vector<int>& OwnNodes() {
  static const std::vector<int> nodes = [] {
    std::set<int> distinct;
    for (const Cpu& cpu : UsableCpus()) distinct.insert(cpu.node);
    return std::vector<int>(distinct.begin(), distinct.end());
  }();
  return nodes;
}

bool AdvisePages(std::span<const uint8_t> bytes, int advice) {
  if (bytes.empty()) return true;
  static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data()) / page * page;
  const auto end = reinterpret_cast<uintptr_t>(bytes.data()) + bytes.size();
  return ::madvise(reinterpret_cast<void*>(begin), end - begin, advice) == 0;
}

}  // namespace

StatusOr<LargeBlock> LargeBlock::Allocate(int64_t num_bytes, std::string_view what) {
  CHECK_GE(num_bytes, 0);
  LargeBlock block;
  if (num_bytes == 0) return block;
  const auto size = static_cast<size_t>(num_bytes);
  void* const at =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) {
    return ResourceExhausted(what, ": the system does not give ", num_bytes, " bytes of memory");
  }
  AskForHugePages({static_cast<const uint8_t*>(at), size});
  block.data_ = static_cast<uint8_t*>(at);
  if (OwnNodes().size() > 1) InterleavePages({block.data_, size}, OwnNodes());
  block.num_bytes_ = num_bytes;
  return block;
}

LargeBlock::~LargeBlock() {
  if (data_ != nullptr) ::munmap(data_, static_cast<size_t>(num_bytes_));
}

LargeBlock::LargeBlock(LargeBlock&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), num_bytes_(std::exchange(other.num_bytes_, 0)) {}

LargeBlock& LargeBlock::operator=(LargeBlock&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(num_bytes_, other.num_bytes_);
  return *this;
}

bool InterleavePages(std::span<const uint8_t> memory, std::span<const int> nodes) {
  constexpr int kBits = sizeof(unsigned long) * CHAR_BIT;
  std::vector<unsigned long> mask;
  for (const int node : nodes) {
    const auto word = static_cast<size_t>(node / kBits);
    if (mask.size() <= word) mask.resize(word + 1);
    mask[word] |= 1ul << (node % kBits);
  }
  // The system takes the number of bits to be one less than what it is told.
  return ::syscall(SYS_mbind, memory.data(), memory.size(), MPOL_INTERLEAVE, mask.data(),
                   mask.size() * kBits + 1, 0u) == 0;
}

void AskForHugePages(std::span<const uint8_t> bytes) {
  constexpr size_t kHugePage = size_t{2} << 20;
  if (bytes.size() >= kHugePage) AdvisePages(bytes, MADV_HUGEPAGE);
}

void AskForPages(std::span<const uint8_t> bytes) { AdvisePages(bytes, MADV_WILLNEED); }

int64_t AvailableMemoryBytes(Disk& disk) {
  // The number after `label`, or `none` where there is no such file, label or number.
  const auto number = [&](const std::string& path, std::string_view label, int64_t none) {
    const StatusOr<std::string> text = disk.ReadText(path);
    const size_t at = text.ok() ? text->find(label) : std::string::npos;
    if (at == std::string::npos) return none;
    const size_t first = text->find_first_not_of(' ', at + label.size());
    if (first == std::string::npos) return none;
    int64_t value = none;
    std::from_chars(text->data() + first, text->data() + text->size(), value);
    return value;
  };
  constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  // What a control group has left; files that it reads give their memory back.
  const auto left = [&](const std::string& group, std::string_view limit, std::string_view used) {
    const int64_t most = number(StrCat(group, limit), "", kNoLimit);
    if (most == kNoLimit) return kNoLimit;
    const int64_t taken = number(StrCat(group, used), "", 0) -
                          number(StrCat(group, "memory.stat"), "inactive_file ", 0);
    return std::max<int64_t>(0, most - std::max<int64_t>(0, taken));
  };
  return std::min(
      {number("/proc/meminfo", "MemAvailable:", 0) * 1024,
       left("/sys/fs/cgroup/", "memory.max", "memory.current"),
       left("/sys/fs/cgroup/memory/", "memory.limit_in_bytes", "memory.usage_in_bytes")});
}

}  // namespace deepinfer
