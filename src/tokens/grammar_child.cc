#include "tokens/grammar_child.h"

#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/process_memory.h"
#include "base/sanitizers.h"

namespace deepinfer {
namespace {

// Sanitizers map terabytes of address space, which no limit on it allows.
constexpr bool kLimitsMemory = !DI_SANITIZED;

// On the socket, from the parent: a Question and the text. Back: an Answer and the text.
struct Question {
  int32_t kind;
  int32_t has_trigger;  // tool calls begin differently without
  int64_t text_bytes;
};
struct Answer {
  int32_t code;  // of the status; its message is the text unless it is kOk
  int32_t unused;
  int64_t text_bytes;
};

bool SendAll(int fd, const void* data, size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = ::send(fd, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<size_t>(sent);
  }
  return true;
}

// wait_ms: for each piece; -1: forever.
bool ReceiveAll(int fd, void* data, size_t bytes, int wait_ms) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    pollfd ready{fd, POLLIN, 0};
    const int events = ::poll(&ready, 1, wait_ms);
    if (events < 0 && errno == EINTR) continue;
    if (events <= 0) return false;
    const ssize_t got = ::recv(fd, at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

bool WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written <= 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

// ---- The build: a process for one grammar -------------------------------------------------------

void Limit(int what, int64_t value) {
  const rlimit limit{static_cast<rlim_t>(value), static_cast<rlim_t>(value)};
  ::setrlimit(static_cast<__rlimit_resource_t>(what), &limit);
}

void SetLimits(const GrammarBuildLimits& limits) {
  Limit(RLIMIT_CORE, 0);
  Limit(RLIMIT_CPU, limits.cpu_s);
  Limit(RLIMIT_FSIZE, limits.result_bytes);
  ::malloc_trim(0);  // memory that this process has and does not use would not count
  if (kLimitsMemory) Limit(RLIMIT_AS, VirtualBytes() + limits.memory_bytes);
  ::alarm(static_cast<unsigned>(limits.wall_s));
}

// Writes the status code and the text to `result`.
[[noreturn]] void BuildAndExit(const StructuredOutput& structured, int result,
                               const std::shared_ptr<const GrammarVocabulary>& vocabulary,
                               const GrammarBuildLimits& limits) {
  SetLimits(limits);
  StatusOr<std::string> text = Internal("not built");
  if (auto grammar = Grammar::Compile(structured, vocabulary); grammar.ok()) {
    text = (*grammar)->Serialize();
  } else {
    text = grammar.status();
  }
  const auto code = static_cast<int32_t>(text.status().code());
  const std::string message = text.ok() ? "" : MessageOf(text.status());
  const bool written =
      WriteAll(result, std::string_view(reinterpret_cast<const char*>(&code), sizeof code)) &&
      WriteAll(result, text.ok() ? std::string_view(*text) : message);
  ::_exit(written ? 0 : 1);
}

std::string WhyItDied(int status, const GrammarBuildLimits& limits) {
  constexpr std::string_view kTooLarge = "the grammar is too large: building it takes more than ";
  if (!WIFSIGNALED(status)) return StrCat(kTooLarge, limits.result_bytes, " bytes");
  switch (WTERMSIG(status)) {
    case SIGXCPU:
    case SIGKILL:
      return StrCat(kTooLarge, limits.cpu_s, " s of processor time");
    case SIGALRM:
      return StrCat(kTooLarge, limits.wall_s, " s");
    case SIGXFSZ:
      return StrCat(kTooLarge, limits.result_bytes, " bytes");
    case SIGABRT:
      return StrCat(kTooLarge, limits.memory_bytes >> 20, " MiB of memory");
    default:
      return StrCat("the grammar cannot be built: its builder stopped with signal ",
                    WTERMSIG(status));
  }
}

// ---- The process between ------------------------------------------------------------------------

bool SendFailure(int socket, StatusCode code, const std::string& message) {
  const Answer answer{static_cast<int32_t>(code), 0, static_cast<int64_t>(message.size())};
  return SendAll(socket, &answer, sizeof answer) && SendAll(socket, message.data(), message.size());
}

bool SendResult(int socket, int result) {
  const off_t end = ::lseek(result, 0, SEEK_END);
  Answer answer{};
  off_t at = sizeof answer.code;
  answer.text_bytes = static_cast<int64_t>(end) - at;
  if (::pread(result, &answer.code, sizeof answer.code, 0) != sizeof answer.code) return false;
  if (!SendAll(socket, &answer, sizeof answer)) return false;
  while (at < end) {
    const ssize_t sent = ::sendfile(socket, result, &at, static_cast<size_t>(end - at));
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
  }
  return true;
}

bool Serve(int socket, const StructuredOutput& structured,
           const std::shared_ptr<const GrammarVocabulary>& vocabulary,
           const GrammarBuildLimits& limits) {
  const int result = ::memfd_create("grammar", MFD_CLOEXEC);
  if (result < 0) {
    return SendFailure(socket, StatusCode::kInternal,
                       "the grammar cannot be built: no memory file");
  }
  const pid_t build = ::fork();
  if (build == 0) BuildAndExit(structured, result, vocabulary, limits);
  int status = 0;
  while (build > 0 && ::waitpid(build, &status, 0) < 0 && errno == EINTR) {
  }
  bool sent = false;
  if (build < 0) {
    sent = SendFailure(socket, StatusCode::kInternal, "the grammar cannot be built: no process");
  } else if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    sent = SendResult(socket, result);
  } else {
    sent = SendFailure(socket, StatusCode::kUnimplemented, WhyItDied(status, limits));
  }
  ::close(result);
  return sent;
}

[[noreturn]] void RunBetween(int socket, const std::shared_ptr<const GrammarVocabulary>& vocabulary,
                             const GrammarBuildLimits& limits) {
  ::setpgid(0, 0);  // Ctrl-C in a terminal is for the server, which ends us in its own time
  ::signal(SIGTERM, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);
  ::prctl(PR_SET_NAME, "di-grammar");
  // Nothing of the server's stays open here, such as the port it listens on.
  if (socket != 3) ::dup2(socket, 3);
  ::close_range(4, ~0u, 0);
  Question question{};
  while (ReceiveAll(3, &question, sizeof question, -1)) {
    StructuredOutput structured{.kind = static_cast<StructuredOutput::Kind>(question.kind),
                                .text = std::string(static_cast<size_t>(question.text_bytes), ' ')};
    if (question.has_trigger != 0) structured.trigger_token_ids = {0};
    if (!ReceiveAll(3, structured.text.data(), structured.text.size(), -1)) break;
    if (!Serve(3, structured, vocabulary, limits)) break;
  }
  ::_exit(0);
}

}  // namespace

GrammarChild::GrammarChild(std::shared_ptr<const GrammarVocabulary> vocabulary,
                           GrammarBuildLimits limits)
    : vocabulary_(std::move(vocabulary)), limits_(limits) {}

GrammarChild::~GrammarChild() {
  Stop();
  if (socket_ >= 0) ::close(socket_);
  if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
}

Status GrammarChild::Start() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return Internal("grammar builder: no socket: ", std::strerror(errno));
  }
  const pid_t pid = ::fork();
  if (pid == 0) RunBetween(ends[1], vocabulary_, limits_);
  ::close(ends[1]);
  if (pid < 0) {
    ::close(ends[0]);
    return Internal("grammar builder: no process: ", std::strerror(errno));
  }
  ::setpgid(pid, pid);  // here too, so that Stop() never comes too early
  socket_ = ends[0];
  pid_ = pid;
  ++num_starts_;
  return OkStatus();
}

void GrammarChild::Forget() {
  ::close(socket_);
  socket_ = -1;
  pid_ = -1;
}

void GrammarChild::Stop() {
  stopped_ = true;
  if (pid_ > 0) ::kill(-pid_, SIGKILL);  // with a build that runs
}

StatusOr<std::shared_ptr<const Grammar>> GrammarChild::Build(const StructuredOutput& structured) {
  if (stopped_) return FailedPrecondition("the grammar cannot be built: the server is stopping");
  if (socket_ >= 0 && ::waitpid(pid_, nullptr, WNOHANG) != 0) Forget();  // somebody killed it
  if (socket_ < 0) DI_RETURN_IF_ERROR(Start());
  auto text = Ask(structured);
  if (!text.ok() && text.status().code() == StatusCode::kInternal) {
    // Gone, or it does not answer any more. The next build gets a new one.
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    Forget();
  }
  if (!text.ok()) return text.status();
  return Grammar::Deserialize(*text, vocabulary_);
}

StatusOr<std::string> GrammarChild::Ask(const StructuredOutput& structured) {
  const Status gone = Internal("the grammar cannot be built: its builder process is gone");
  const Question question{static_cast<int32_t>(structured.kind),
                          structured.trigger_token_ids.empty() ? 0 : 1,
                          static_cast<int64_t>(structured.text.size())};
  if (!SendAll(socket_, &question, sizeof question)) return gone;
  if (!SendAll(socket_, structured.text.data(), structured.text.size())) return gone;
  Answer answer{};
  constexpr int kPieceMs = 10'000;
  if (!ReceiveAll(socket_, &answer, sizeof answer, limits_.wall_s * 1000 + kPieceMs)) return gone;
  std::string text(static_cast<size_t>(answer.text_bytes), '\0');
  if (!ReceiveAll(socket_, text.data(), text.size(), kPieceMs)) return gone;
  if (answer.code != 0) return MakeStatus(static_cast<StatusCode>(answer.code), text);
  return text;
}

}  // namespace deepinfer
