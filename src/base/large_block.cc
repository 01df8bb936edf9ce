#include "base/large_block.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <utility>

#include "base/check.h"

namespace deepinfer {

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
  ::madvise(at, size, MADV_HUGEPAGE);  // small pages are as right
  block.data_ = static_cast<uint8_t*>(at);
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

void AskForPages(std::span<const uint8_t> bytes) {
  if (bytes.empty()) return;
  static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data()) / page * page;
  const auto end = reinterpret_cast<uintptr_t>(bytes.data()) + bytes.size();
  ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_WILLNEED);
}

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
