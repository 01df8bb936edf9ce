#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "base/check.h"

namespace deepinfer {

// One loop at a time. Workers sleep between loops; pieces are claimed by an atomic counter.
struct ThreadPool::Shared {
  std::mutex mutex;
  std::condition_variable start, finish;
  uint64_t loop_id = 0;
  bool stop = false;
  int num_busy = 0;

  const std::function<void(int64_t, int64_t)>* body = nullptr;
  int64_t count = 0, piece = 0;
  std::atomic<int64_t> next{0};
  std::vector<std::thread> workers;

  void RunPieces() {
    for (;;) {
      const int64_t begin = next.fetch_add(piece, std::memory_order_relaxed);
      if (begin >= count) return;
      (*body)(begin, std::min(count, begin + piece));
    }
  }

  void WorkerMain() {
    uint64_t seen = 0;
    for (;;) {
      {
        std::unique_lock lock(mutex);
        start.wait(lock, [&] { return stop || loop_id != seen; });
        if (stop) return;
        seen = loop_id;
      }
      RunPieces();
      std::lock_guard lock(mutex);
      if (--num_busy == 0) finish.notify_one();
    }
  }
};

ThreadPool::ThreadPool(int num_threads)
    : num_threads_(num_threads), shared_(std::make_unique<Shared>()) {
  CHECK_GE(num_threads, 1);
  for (int i = 1; i < num_threads; ++i) {
    shared_->workers.emplace_back([this] { shared_->WorkerMain(); });
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(shared_->mutex);
    shared_->stop = true;
  }
  shared_->start.notify_all();
  for (std::thread& worker : shared_->workers) worker.join();
}

void ThreadPool::ParallelFor(int64_t count, int64_t min_piece,
                             const std::function<void(int64_t, int64_t)>& body) {
  if (count <= 0) return;
  const int64_t least = std::max<int64_t>(min_piece, 1);
  if (num_threads_ == 1 || count <= least) {
    body(0, count);
    return;
  }
  Shared& shared = *shared_;
  {
    std::lock_guard lock(shared.mutex);
    shared.body = &body;
    shared.count = count;
    // About four pieces a thread, so that one slow thread does not hold up the rest.
    shared.piece = std::max(least, (count + num_threads_ * 4 - 1) / (num_threads_ * 4));
    shared.next.store(0, std::memory_order_relaxed);
    shared.num_busy = num_threads_ - 1;
    ++shared.loop_id;
  }
  shared.start.notify_all();
  shared.RunPieces();
  std::unique_lock lock(shared.mutex);
  shared.finish.wait(lock, [&] { return shared.num_busy == 0; });
}

int NumUsableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace deepinfer
