#include "base/thread_pool.h"

#include <immintrin.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/cpu_topology.h"
#include "base/log.h"
#include "base/no_wait.h"

namespace deepinfer {
namespace {

// A loop's state in one word: its number, whether pieces may still be had, how many workers are in.
constexpr uint64_t kLoop = uint64_t{1} << 32, kClosed = uint64_t{1} << 31;
uint64_t LoopOf(uint64_t state) { return state / kLoop; }
uint64_t WorkersOf(uint64_t state) { return state % kClosed; }

// Pauses of some tens of nanoseconds each: about as long as sleeping and waking takes.
constexpr int kSpins = 3000;

// Repeats `done` until it holds or the spinning time is over. Returns whether it holds.
template <typename Done>
bool Spin(const Done& done) {
  for (int i = 0; i < kSpins; ++i) {
    if (done()) return true;
    _mm_pause();
  }
  return done();
}

void PinTo(std::thread& thread, int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(cpu), &set);
  pthread_setaffinity_np(thread.native_handle(), sizeof set, &set);  // a wish
}

}  // namespace

struct ThreadPool::Shared {
  explicit Shared(int num_threads) : stretches(static_cast<size_t>(num_threads)) {}

  // Pieces [next, end) of the loop.
  struct alignas(64) Stretch {
    std::atomic<int64_t> next{0};
    int64_t end = 0;

    // take(begin, end) until none is left. A third of what is left at a time: large pieces first,
    // so that few are asked for, and small ones last, so that nobody waits long for another.
    template <typename Take>
    void TakeAll(const Take& take) {
      for (int64_t begin = next.load(std::memory_order_relaxed); begin < end;) {
        const int64_t after = begin + (end - begin + 2) / 3;
        if (!next.compare_exchange_weak(begin, after, std::memory_order_relaxed)) continue;
        take(begin, after);
        begin = next.load(std::memory_order_relaxed);
      }
    }
  };

  alignas(64) std::atomic<uint64_t> state{kClosed};
  alignas(64) std::atomic<int> num_sleeping{0};
  std::atomic<bool> stop{false};
  bool may_spin = true;
  std::mutex mutex;
  std::condition_variable wake;

  // Of the loop that is open; written while none is.
  const FunctionRef<void(int64_t, int64_t)>* body = nullptr;
  int64_t count = 0, piece = 0;
  std::vector<Stretch> stretches;  // by thread; the caller's is the first
  std::vector<std::thread> workers;

  // Own pieces first, then those of the threads after it.
  void RunPieces(size_t thread) {
    for (size_t i = 0; i < stretches.size(); ++i) {
      stretches[(thread + i) % stretches.size()].TakeAll([&](int64_t begin, int64_t end) {
        (*body)(begin* piece, std::min(count, end * piece));
      });
    }
  }

  bool HasNews(uint64_t seen) const {
    return LoopOf(state.load(std::memory_order_acquire)) != seen || stop.load();
  }

  void Sleep(uint64_t seen) {
    std::unique_lock lock(mutex);
    ++num_sleeping;  // before the last look, as the caller looks after its last write
    wake.wait(lock, [&] { return LoopOf(state.load()) != seen || stop.load(); });
    --num_sleeping;
  }

  void WorkerMain(size_t thread) {
    for (uint64_t seen = 0;;) {
      if (!may_spin || !Spin([&] { return HasNews(seen); })) Sleep(seen);
      if (stop.load()) return;
      uint64_t now = state.load(std::memory_order_acquire);
      seen = LoopOf(now);
      while ((now & kClosed) == 0 && LoopOf(now) == seen) {
        if (!state.compare_exchange_weak(now, now + 1, std::memory_order_acq_rel)) continue;
        RunPieces(thread);
        state.fetch_sub(1, std::memory_order_release);
        break;
      }
    }
  }

  void Open() {
    state.store((LoopOf(state.load(std::memory_order_relaxed)) + 1) * kLoop);
    if (num_sleeping.load() == 0) return;
    { std::lock_guard lock(mutex); }  // who is falling asleep has seen the loop or waits by now
    wake.notify_all();
  }

  // No piece is left: nobody else may come in; waits for those who are.
  void Close() {
    state.fetch_or(kClosed, std::memory_order_acq_rel);
    const auto all_out = [&] { return WorkersOf(state.load(std::memory_order_acquire)) == 0; };
    while (!Spin(all_out)) std::this_thread::yield();
  }
};

ThreadPool::ThreadPool(int num_threads, const ThreadPoolOptions& options)
    : num_threads_(num_threads), shared_(std::make_unique<Shared>(std::max(num_threads, 1))) {
  CHECK_GE(num_threads, 1);
  shared_->may_spin = num_threads <= DefaultNumThreads();
  const std::vector<Cpu> all = UsableCpus();
  const std::vector<Cpu> cpus = PlaceThreads(all, num_threads);
  const auto num_cores =
      std::count_if(all.begin(), all.end(), [](const Cpu& cpu) { return cpu.sibling == 0; });
  const bool pin = options.pin && num_threads == num_cores;
  for (int i = 1; i < num_threads; ++i) {
    const auto thread = static_cast<size_t>(i);
    try {
      shared_->workers.emplace_back([this, thread] { shared_->WorkerMain(thread); });
    } catch (const std::system_error& error) {
      LogWarning("threads: the system gives ", i, " of ", num_threads, ": ", error.what());
      break;  // those who are there do the pieces of the others
    }
    if (pin && thread < cpus.size()) PinTo(shared_->workers.back(), cpus[thread].id);
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(shared_->mutex);
    shared_->stop = true;
  }
  shared_->wake.notify_all();
  for (std::thread& worker : shared_->workers) worker.join();
}

void ThreadPool::ParallelFor(int64_t count, int64_t min_piece,
                             FunctionRef<void(int64_t, int64_t)> body) {
  if (count <= 0) return;
  CheckMayWait();
  const int64_t least = std::max<int64_t>(min_piece, 1);
  if (num_threads_ == 1 || count <= least) {
    body(0, count);
    return;
  }
  Shared& shared = *shared_;
  shared.body = &body;
  shared.count = count;
  shared.piece = least;
  const int64_t num_pieces = (count + least - 1) / least;
  for (int64_t i = 0; i < num_threads_; ++i) {
    Shared::Stretch& stretch = shared.stretches[static_cast<size_t>(i)];
    stretch.next.store(i * num_pieces / num_threads_, std::memory_order_relaxed);
    stretch.end = (i + 1) * num_pieces / num_threads_;
  }
  shared.Open();
  shared.RunPieces(0);
  shared.Close();
}

void ThreadPool::OnEveryThread(FunctionRef<void()> body) {
  const int64_t num_threads = std::ssize(shared_->workers) + 1;
  std::atomic<int64_t> arrived{0};
  // As many pieces as threads, and nobody leaves one before each has one.
  ParallelFor(num_threads, 1, [&](int64_t begin, int64_t end) {
    CHECK_EQ(end - begin, 1);
    body();
    ++arrived;
    while (arrived.load() < num_threads) std::this_thread::yield();
  });
}

}  // namespace deepinfer
