// tokens/grammar_child.h: a process that compiles grammars, one at a time, each in a child of its
// own with limits.
//
// The process is forked from this one and shares the vocabulary's memory. It does nothing but
// fork, wait and pass results on, so a build that dies takes nobody along; should it die itself, a
// new one is forked for the next build. It ends when this process does, for its socket closes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "tokens/grammar.h"

namespace deepinfer {

struct GrammarBuildLimits {
  int32_t cpu_s = 20;
  int32_t wall_s = 60;
  int64_t memory_bytes = int64_t{4} << 30;
  int64_t result_bytes = int64_t{1} << 30;  // of the compiled grammar's text
};

// Threads: one at a time, but Stop(), pid() and num_restarts().
class GrammarChild {
 public:
  GrammarChild(std::shared_ptr<const GrammarVocabulary> vocabulary, GrammarBuildLimits limits);
  ~GrammarChild();

  // Errors: kInternal if the system gives no process or socket.
  Status Start();
  // Compiles in the child. Errors: as Grammar::Compile; kUnimplemented past the limits or if the
  // build crashes; kInternal if the process is gone.
  StatusOr<std::shared_ptr<const Grammar>> Build(const StructuredOutput& structured);
  // Ends the process; a Build that waits for it fails. Any thread.
  void Stop();
  int pid() const { return pid_; }
  int num_restarts() const { return num_starts_ - 1; }

 private:
  StatusOr<std::string> Ask(const StructuredOutput& structured);
  void Forget();

  const std::shared_ptr<const GrammarVocabulary> vocabulary_;
  const GrammarBuildLimits limits_;
  std::atomic<bool> stopped_ = false;
  std::atomic<int> pid_ = -1;
  std::atomic<int> num_starts_ = 0;
  int socket_ = -1;
};

}  // namespace deepinfer
