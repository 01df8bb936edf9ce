#include "base/process_memory.h"

#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>

namespace deepinfer {
namespace {

// Bytes after "name:" in what the system says about this process; 0 if it says nothing.
int64_t StatusBytes(Disk& disk, std::string_view name) {
  const std::string text = disk.ReadText("/proc/self/status").value_or("");
  const size_t line = text.find(name);
  if (line == std::string::npos) return 0;
  const size_t digit = text.find_first_of("0123456789", line + name.size());
  if (digit == std::string::npos) return 0;
  int64_t kilobytes = 0;
  std::from_chars(text.data() + digit, text.data() + text.size(), kilobytes);
  return kilobytes * 1024;
}

}  // namespace

int64_t ResidentBytes(Disk& disk) { return StatusBytes(disk, "\nVmRSS:"); }
int64_t VirtualBytes(Disk& disk) { return StatusBytes(disk, "\nVmSize:"); }
int64_t PeakResidentBytes(Disk& disk) { return StatusBytes(disk, "\nVmHWM:"); }

// A switch of the system's, which can only be written: nothing that a Disk knows.
void ForgetPeakResidentBytes() {
  if (std::FILE* const file = std::fopen("/proc/self/clear_refs", "we")) {
    std::fputs("5", file);
    std::fclose(file);
  }
}

}  // namespace deepinfer
