#include <unistd.h>

#include <cstdlib>
#include <new>

#include "apps/command.h"

namespace {

// Memory that nobody plans for ran out; what is planned for fails with a line of its own.
[[noreturn]] void OutOfMemory() {
  constexpr char kLine[] =
      "deepinfer: the system gives no more memory; give it more, or ask for less (--help)\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kLine, sizeof kLine - 1);
  std::_Exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  std::set_new_handler(OutOfMemory);
  return deepinfer::RunCommandLine({argv + 1, argv + argc});
}
