// base/thread_pool.h: a fixed set of workers that run loops in parallel.
//
// Made for loops of microseconds that follow each other closely: workers spin for a moment after a
// loop before they sleep, and a loop is over when its pieces are done, whoever ran them. Each
// thread starts with its own stretch of the indices, the same in every loop of that length, so that
// what it touched before lies in its caches and its memory; then it helps the others.
// Threads: one caller at a time (the step loop). The caller works too, so a pool of one thread
// starts none. Which thread runs which index is unspecified; results must not depend on it.
#pragma once

#include <cstdint>
#include <memory>

#include "base/function_ref.h"

namespace deepinfer {

struct ThreadPoolOptions {
  // Binds the workers to processors, one to a physical core first. Only where the pool fills the
  // cores that the process may use: else several processes would meet on the same few.
  bool pin = false;
};

class ThreadPool {
 public:
  // num_threads counts the caller. Requires: num_threads >= 1.
  explicit ThreadPool(int num_threads, const ThreadPoolOptions& options = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return num_threads_; }

  // Runs body(begin, end) over [0, count) in pieces of at least min_piece indices. Returns when all
  // are done. body must not call ParallelFor of the same pool and must not throw. Allocates
  // nothing.
  void ParallelFor(int64_t count, int64_t min_piece,
                   FunctionRef<void(int64_t begin, int64_t end)> body);
  // Runs body() once on each thread there is, the caller's included. For what belongs to a thread:
  // its scratch memory.
  void OnEveryThread(FunctionRef<void()> body);

 private:
  struct Shared;
  const int num_threads_;
  std::unique_ptr<Shared> shared_;
};

}  // namespace deepinfer
