#include "base/read_queue.h"

#include <system_error>

#include "base/check.h"
#include "base/no_wait.h"

namespace deepinfer {

ReadQueue::ReadQueue(int num_threads) {
  CHECK_GE(num_threads, 1);
  // Fewer than asked for, but one, are as right: a system short of memory refuses threads.
  try {
    while (std::ssize(threads_) < num_threads) {
      threads_.emplace_back([this] { Run(); });
    }
  } catch (const std::system_error&) {
    CHECK(!threads_.empty());
  }
}

ReadQueue::~ReadQueue() {
  {
    std::lock_guard lock(mutex_);
    CHECK(first_ == nullptr);
    stopping_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ReadQueue::Start(ReadBatch& batch) {
  if (batch.queue_ == nullptr) batch.queue_ = this;
  CHECK(batch.queue_ == this);
  {
    std::lock_guard lock(mutex_);
    CHECK(batch.over());
    batch.next_ = 0;
    batch.end_ = batch.reads_.size();
    batch.status_ = OkStatus();
    batch.behind_ = nullptr;
    if (batch.reads_.empty()) return;
    ReadBatch** end = &first_;
    while (*end != nullptr) end = &(*end)->behind_;
    *end = &batch;
  }
  work_.notify_all();
}

void ReadQueue::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [&] { return stopping_ || first_ != nullptr; });
    if (stopping_) return;
    ReadBatch& batch = *first_;
    const FileRead& read = batch.reads_[batch.next_++];
    if (batch.next_ == batch.end_) Remove(batch);
    ++batch.num_running_;
    lock.unlock();
    Status status = read.direct ? read.file->ReadDirect(read.offset, read.out)
                                : read.file->ReadAt(read.offset, read.out);
    if (status.ok() && read.check) status = read.check(read.out);
    lock.lock();
    --batch.num_running_;
    if (!status.ok()) Abandon(batch, status);
    if (batch.over()) done_.notify_all();
  }
}

void ReadQueue::Abandon(ReadBatch& batch, const Status& status) {
  if (batch.status_.ok()) batch.status_ = status;
  batch.next_ = batch.end_;
  Remove(batch);
}

void ReadQueue::Remove(const ReadBatch& batch) {
  ReadBatch** at = &first_;
  while (*at != nullptr && *at != &batch) at = &(*at)->behind_;
  if (*at != nullptr) *at = batch.behind_;
}

Status ReadBatch::Wait() {
  if (queue_ == nullptr) return OkStatus();
  CheckMayWait();
  std::unique_lock lock(queue_->mutex_);
  queue_->done_.wait(lock, [&] { return over(); });
  return status_;
}

}  // namespace deepinfer
