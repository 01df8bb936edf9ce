// base/read_queue.h: many reads at once, beside the caller's own work.
//
// Disks are fast only when they are asked several things at a time, and what is needed later can be
// read while something else is computed. Threads: one caller; the readers are the queue's own and
// sleep when there is nothing to read.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/disk.h"

namespace deepinfer {

// Bytes of a file, from `offset` on.
struct FilePlace {
  const ReadableFile* file = nullptr;
  int64_t offset = 0;
};

struct FileRead {
  const ReadableFile* file = nullptr;
  int64_t offset = 0;
  std::span<uint8_t> out;
  bool direct = false;  // ReadDirect, with its requirements; else ReadAt
  // A look at what was read, by the thread that read it; a failure is the read's. May be
  // empty; one of at most two words allocates nothing.
  std::function<Status(std::span<const uint8_t>)> check;
};

class ReadQueue;

// Reads that run together. The list of them keeps its memory, so that a batch which is used again
// allocates nothing. Its queue, and the memory that is read into, must outlive it.
class ReadBatch {
 public:
  ReadBatch() = default;
  explicit ReadBatch(std::vector<FileRead> reads) : reads_(std::move(reads)) {}
  ~ReadBatch() { Wait().IgnoreError(); }
  ReadBatch(const ReadBatch&) = delete;
  ReadBatch& operator=(const ReadBatch&) = delete;

  // What the next ReadQueue::Start runs. Requires: nothing runs since the last Wait().
  std::vector<FileRead>& reads() { return reads_; }
  const std::vector<FileRead>& reads() const { return reads_; }
  // Returns when none of the reads is running or waiting. Errors: the first failure; reads that
  // had not begun by then are left out.
  Status Wait();

 private:
  friend class ReadQueue;
  bool over() const { return next_ == end_ && num_running_ == 0; }

  std::vector<FileRead> reads_;
  ReadQueue* queue_ = nullptr;  // none: never started
  // Guarded by the queue's mutex from Start() on.
  size_t end_ = 0;          // of the reads that were started
  size_t next_ = 0;         // the first of them that has not begun
  size_t num_running_ = 0;  // begun and not ended
  Status status_;           // the first failure
  ReadBatch* behind_ = nullptr;
};

class ReadQueue {
 public:
  // Requires: num_threads >= 1, the reads that run at a time.
  explicit ReadQueue(int num_threads);
  ~ReadQueue();  // Requires: its batches are over.
  ReadQueue(const ReadQueue&) = delete;
  ReadQueue& operator=(const ReadQueue&) = delete;

  // Batches run in the order in which they were started, a batch's reads in theirs. Requires: the
  // batch does not run.
  void Start(ReadBatch& batch);

 private:
  friend class ReadBatch;
  void Run();
  void Abandon(ReadBatch& batch, const Status& status);
  void Remove(const ReadBatch& batch);

  std::mutex mutex_;  // guards everything below but the threads, and the batches
  std::condition_variable work_, done_;
  ReadBatch* first_ = nullptr;  // a list of those with reads that have not begun
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace deepinfer
