// Feeds files to one fuzzer, so that a corpus is a regression test under any compiler.
// Usage: fuzz_NAME FOLDER_OR_FILE...   Ends at the first broken property; fails without any file.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "fuzz.h"

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> FilesOf(const fs::path& place) {
  if (!fs::is_directory(place)) return {place};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(place)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

bool Replay(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return false;
  // No spare capacity: a sanitizer sees the first byte read behind the end.
  std::vector<uint8_t> bytes(std::istreambuf_iterator<char>(file), {});
  bytes.shrink_to_fit();
  std::printf("%s\n", path.c_str());
  std::fflush(stdout);  // the last line names the culprit
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  LLVMFuzzerInitialize(&argc, &argv);
  LLVMFuzzerTestOneInput(nullptr, 0);
  int num_files = 0;
  for (int i = 1; i < argc; ++i) {
    for (const fs::path& path : FilesOf(argv[i])) {
      if (!Replay(path)) {
        std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
        return 1;
      }
      ++num_files;
    }
  }
  std::printf("%d inputs\n", num_files);
  return num_files > 0 ? 0 : 1;
}
