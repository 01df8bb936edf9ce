#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "tidy.h"

namespace deepinfer::tidy {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 8> kExtensions = {".cc", ".h",  ".cu",    ".cuh",
                                                         ".py", ".sh", ".cmake", ".md"};

bool IsWritten(const fs::path& path) {
  const std::string extension = path.extension().string();
  return path.filename() == "CMakeLists.txt" ||
         std::find(kExtensions.begin(), kExtensions.end(), extension) != kExtensions.end();
}

}  // namespace

SourceTree ReadSourceTree(const std::string& root) {
  SourceTree tree;
  for (const char* top :
       {"src", "include", "tests", "tools", "examples", "cmake", "bench", "docs", "python"}) {
    if (!fs::is_directory(fs::path(root) / top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(root) / top)) {
      if (!entry.is_regular_file() || !IsWritten(entry.path())) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      tree[fs::relative(entry.path(), root).generic_string()] =
          std::string(std::istreambuf_iterator<char>(file), {});
    }
  }
  for (const auto& entry : fs::directory_iterator(root)) {
    if (!entry.is_regular_file() || !IsWritten(entry.path())) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    tree[entry.path().filename().string()] = std::string(std::istreambuf_iterator<char>(file), {});
  }
  return tree;
}

}  // namespace deepinfer::tidy
