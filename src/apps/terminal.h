// apps/terminal.h: standard input and output of a command, and Ctrl-C.
//
// Results go to stdout, everything else to stderr. Threads: the command's own.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace deepinfer {

// Writes all of `text` to stdout now. Errors: what the system said (a full disk, a closed pipe).
Status WriteStdout(std::string_view text);
// One line to stderr.
void PrintError(std::string_view line);

bool StdinIsTerminal();
bool StdoutIsTerminal();
// Whether `path` exists and is neither a regular file nor a directory.
bool IsDeviceOrPipe(const std::string& path);

// The next line of stdin without its end; nothing at the end of input or at Ctrl-C (then
// Interrupts::seen() is true).
class StdinLines {
 public:
  std::optional<std::string> Next();

 private:
  std::string buffer_;
  bool ended_ = false;
};

// While one lives, Ctrl-C is remembered instead of ending the process. A second Ctrl-C before
// Clear() ends it, so that nothing can hang. One at a time.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  bool seen() const;
  void Clear();
};

}  // namespace deepinfer
