// base/read_queue.h: many reads at once, beside the caller's own work.
//
// Disks are fast only when they are asked several things at a time, and what is needed later can be
// read while something else is computed. Threads: one caller; the readers are the queue's own and
// sleep when there is nothing to read.
#pragma once

#include <functional>
#include <memory>
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
  // A look at what was read, by the thread that read it; a failure is the read's. May be empty.
  std::function<Status(std::span<const uint8_t>)> check;
};

class ReadQueue {
  struct Shared;
  struct Batch;

 public:
  // Reads that were started together. The destructor waits for them, so their memory must outlive
  // the ticket; the queue must too.
  class Ticket {
   public:
    Ticket() = default;  // of no reads
    ~Ticket() { Wait().IgnoreError(); }
    Ticket(Ticket&&) = default;
    Ticket& operator=(Ticket&& other);

    // Returns when none of the reads is running or waiting. Errors: the first failure; reads that
    // had not begun by then are left out.
    Status Wait();

   private:
    friend class ReadQueue;
    std::shared_ptr<Shared> shared_;
    std::shared_ptr<Batch> batch_;
  };

  // Requires: num_threads >= 1, the reads that run at a time.
  explicit ReadQueue(int num_threads);
  ~ReadQueue();  // drops what has not begun
  ReadQueue(const ReadQueue&) = delete;
  ReadQueue& operator=(const ReadQueue&) = delete;

  // Batches run in the order in which they were started, a batch's reads in theirs.
  [[nodiscard]] Ticket Start(std::vector<FileRead> reads);

 private:
  std::shared_ptr<Shared> shared_;
  std::vector<std::thread> threads_;
};

}  // namespace deepinfer
