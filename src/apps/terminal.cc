#include "apps/terminal.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace deepinfer {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void OnInterrupt(int) {
  if (interrupted != 0) ::_exit(130);
  interrupted = 1;
}

// Without SA_RESTART, so that a read of stdin returns.
void SetHandler(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigaction(number, &action, nullptr);
}

}  // namespace

Status WriteStdout(std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::write(STDOUT_FILENO, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      const auto code = errno == ENOSPC ? StatusCode::kResourceExhausted : StatusCode::kInternal;
      return MakeStatus(code, StrCat("stdout: cannot write: ", std::strerror(errno)));
    }
    text.remove_prefix(static_cast<size_t>(put));
  }
  return OkStatus();
}

void PrintError(std::string_view line) {
  const std::string text = StrCat(line, "\n");
  [[maybe_unused]] const ssize_t put = ::write(STDERR_FILENO, text.data(), text.size());
}

bool StdinIsTerminal() { return ::isatty(STDIN_FILENO) == 1; }
bool StdoutIsTerminal() { return ::isatty(STDOUT_FILENO) == 1; }

bool IsDeviceOrPipe(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

std::optional<std::string> StdinLines::Next() {
  for (;;) {
    if (const size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      if (!line.empty() && line.back() == '\r') line.pop_back();
      return line;
    }
    if (ended_) {
      if (buffer_.empty()) return std::nullopt;
      return std::exchange(buffer_, {});
    }
    char piece[4096];
    const ssize_t got = ::read(STDIN_FILENO, piece, sizeof piece);
    if (got > 0) {
      buffer_.append(piece, static_cast<size_t>(got));
    } else if (got < 0 && errno == EINTR && interrupted != 0) {
      return std::nullopt;
    } else if (got == 0 || errno != EINTR) {
      ended_ = true;
    }
  }
}

Interrupts::Interrupts() {
  interrupted = 0;
  SetHandler(SIGINT, OnInterrupt);
}
Interrupts::~Interrupts() { SetHandler(SIGINT, SIG_DFL); }
bool Interrupts::seen() const { return interrupted != 0; }
void Interrupts::Clear() { interrupted = 0; }

}  // namespace deepinfer
