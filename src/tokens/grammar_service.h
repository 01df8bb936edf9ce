// tokens/grammar_service.h: grammars of strangers, compiled where they can do no harm, and kept.
//
// A build cannot be interrupted, so each runs in a process of its own, with limits on processor
// time, wall time and memory (grammar_child.h). A build that breaks them, or crashes, fails its own
// requests with one line and nothing else. Grammars are kept up to a number of bytes, the least
// recently used one goes first; requests for the same grammar share one build; so do refusals.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "tokens/grammar_child.h"
#include "tokens/grammar_source.h"

namespace deepinfer {

struct GrammarServiceOptions {
  int32_t workers = 2;  // builds at the same time
  GrammarBuildLimits limits;
  int64_t cache_bytes = int64_t{512} << 20;
  int32_t max_waiting = 32;  // builds that wait for a worker; further ones are refused
};

struct GrammarServiceStats {
  int64_t hits = 0;    // found, also a refusal
  int64_t joined = 0;  // waited for a build that another request had asked for
  int64_t built = 0;
  int64_t failed = 0;        // refused, broken, past the limits
  double build_seconds = 0;  // of both
  int64_t rejected = 0;      // too many waited
  int64_t restarts = 0;      // of builder processes
  int64_t evicted = 0;
  int64_t cached_bytes = 0;
};

// Threads: any. Owns one thread and one process for each worker.
class GrammarService : public GrammarSource {
 public:
  // Forks: call it early, before large memory is taken and many threads run.
  // Errors: kInternal if the system gives no process.
  static StatusOr<std::unique_ptr<GrammarService>> Start(
      std::shared_ptr<const GrammarVocabulary> vocabulary, GrammarServiceOptions options = {});
  // Whoever still waits gets kFailedPrecondition.
  ~GrammarService() override;

  void Get(const StructuredOutput& structured, Done done) override;
  GrammarServiceStats stats() const;
  // For tests: the processes that the builds are children of.
  std::vector<int> builder_pids() const;

 private:
  using Result = StatusOr<std::shared_ptr<const Grammar>>;
  struct Entry {
    std::string key;
    Result result;
    int64_t bytes;
  };
  struct Build {
    StructuredOutput structured;
    std::vector<Done> waiting;
  };

  GrammarService(std::shared_ptr<const GrammarVocabulary> vocabulary,
                 GrammarServiceOptions options);
  void Work(GrammarChild& child);
  void Finish(const std::string& key, const Result& result);
  void Keep(const std::string& key, const Result& result);

  const std::shared_ptr<const GrammarVocabulary> vocabulary_;
  const GrammarServiceOptions options_;
  std::vector<std::unique_ptr<GrammarChild>> children_;

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable wake_;
  bool stopping_ = false;
  std::deque<std::string> queue_;                  // keys of builds_ that no worker has taken
  std::unordered_map<std::string, Build> builds_;  // asked for and not finished
  std::list<Entry> entries_;                       // the most recently used first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
  GrammarServiceStats stats_;

  std::vector<std::thread> threads_;
};

}  // namespace deepinfer
