// tests/tidy/tidy.h: rules about the source tree that no compiler checks (CONTRIBUTING.md lists
// them).
#pragma once

#include <map>
#include <string>
#include <vector>

namespace deepinfer::tidy {

// Path from the repository's root -> text. In memory, so that a test can plant a fault in a small
// one.
using SourceTree = std::map<std::string, std::string>;

// Everything that people write: code, build files, scripts, pages. Leaves out build folders and
// data.
SourceTree ReadSourceTree(const std::string& root);

// One line per fault: "src/a/b.cc:12: what is wrong". compiled: paths that the build compiled,
// beside those that a CMakeLists.txt names (a folder may list its sources by a pattern).
std::vector<std::string> FindFaults(const SourceTree& tree, const std::string& compiled);

}  // namespace deepinfer::tidy
