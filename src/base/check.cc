#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace deepinfer {

void CheckFailed(const char* file, int line, const std::string& what) {
  std::fprintf(stderr, "deepinfer: internal error at %s:%d: %s\n", file, line, what.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace deepinfer
