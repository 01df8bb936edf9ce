#include "base/read_queue.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>

#include "base/check.h"

namespace deepinfer {

struct ReadQueue::Batch {
  std::vector<FileRead> reads;
  size_t next = 0;     // the first read that has not begun
  size_t running = 0;  // begun and not ended
  Status status;       // the first failure

  bool over() const { return next == reads.size() && running == 0; }
};

// Everything here is guarded by `mutex`, the batches' contents included.
struct ReadQueue::Shared {
  std::mutex mutex;
  std::condition_variable work, done;
  std::deque<std::shared_ptr<Batch>> waiting;  // those with reads that have not begun
  bool stopping = false;

  void Run() {
    std::unique_lock lock(mutex);
    while (true) {
      work.wait(lock, [&] { return stopping || !waiting.empty(); });
      if (stopping) return;
      const std::shared_ptr<Batch> batch = waiting.front();
      const FileRead read = batch->reads[batch->next++];
      if (batch->next == batch->reads.size()) waiting.pop_front();
      ++batch->running;
      lock.unlock();
      Status status = read.direct ? read.file->ReadDirect(read.offset, read.out)
                                  : read.file->ReadAt(read.offset, read.out);
      if (status.ok() && read.check) status = read.check(read.out);
      lock.lock();
      --batch->running;
      if (!status.ok()) Abandon(*batch, status);
      if (batch->over()) done.notify_all();
    }
  }

  void Abandon(Batch& batch, const Status& status) {
    if (batch.status.ok()) batch.status = status;
    batch.next = batch.reads.size();
    std::erase_if(waiting, [&](const auto& b) { return b.get() == &batch; });
  }
};

ReadQueue::ReadQueue(int num_threads) : shared_(std::make_shared<Shared>()) {
  CHECK_GE(num_threads, 1);
  // Fewer than asked for, but one, are as right: a system short of memory refuses threads.
  try {
    while (std::ssize(threads_) < num_threads) {
      threads_.emplace_back([shared = shared_.get()] { shared->Run(); });
    }
  } catch (const std::system_error&) {
    CHECK(!threads_.empty());
  }
}

ReadQueue::~ReadQueue() {
  {
    std::lock_guard lock(shared_->mutex);
    shared_->stopping = true;
    for (const auto& batch : shared_->waiting) batch->next = batch->reads.size();
    shared_->waiting.clear();
  }
  shared_->work.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

ReadQueue::Ticket ReadQueue::Start(std::vector<FileRead> reads) {
  Ticket ticket;
  if (reads.empty()) return ticket;
  ticket.shared_ = shared_;
  ticket.batch_ = std::make_shared<Batch>();
  ticket.batch_->reads = std::move(reads);
  {
    std::lock_guard lock(shared_->mutex);
    shared_->waiting.push_back(ticket.batch_);
  }
  shared_->work.notify_all();
  return ticket;
}

ReadQueue::Ticket& ReadQueue::Ticket::operator=(Ticket&& other) {
  Wait().IgnoreError();
  shared_ = std::move(other.shared_);
  batch_ = std::move(other.batch_);
  return *this;
}

Status ReadQueue::Ticket::Wait() {
  if (batch_ == nullptr) return OkStatus();
  std::unique_lock lock(shared_->mutex);
  shared_->done.wait(lock, [&] { return batch_->over(); });
  return batch_->status;
}

}  // namespace deepinfer
