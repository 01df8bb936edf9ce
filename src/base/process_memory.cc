#include "base/process_memory.h"

#include <cstdio>
#include <string_view>

namespace deepinfer {
namespace {

// Bytes after "name:" in what the system says about this process; 0 if it says nothing.
int64_t StatusBytes(std::string_view name) {
  std::FILE* const file = std::fopen("/proc/self/status", "re");
  if (file == nullptr) return 0;
  long long kilobytes = 0;
  char line[256];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::string_view(line).starts_with(name)) {
      std::sscanf(line + name.size(), ": %lld", &kilobytes);
      break;
    }
  }
  std::fclose(file);
  return kilobytes * 1024;
}

}  // namespace

int64_t ResidentBytes() { return StatusBytes("VmRSS"); }
int64_t PeakResidentBytes() { return StatusBytes("VmHWM"); }

void ForgetPeakResidentBytes() {
  if (std::FILE* const file = std::fopen("/proc/self/clear_refs", "we")) {
    std::fputs("5", file);
    std::fclose(file);
  }
}

}  // namespace deepinfer
