#include "engine/step_runner.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/check.h"
#include "base/no_wait.h"

namespace deepinfer {
namespace {

class SyncRunner : public StepRunner {
 public:
  explicit SyncRunner(StepExecutor* executor) : executor_(executor) { executor->Prepare(); }

  void Submit(StepJob* job) override {
    CHECK(job_ == nullptr);
    executor_->Run(*job);
    job_ = job;
  }
  StepJob* Wait() override {
    CHECK(job_ != nullptr);
    return std::exchange(job_, nullptr);
  }
  int num_inside() const override { return job_ != nullptr ? 1 : 0; }
  bool busy() const override { return false; }
  int depth() const override { return 1; }

 private:
  StepExecutor* const executor_;
  StepJob* job_ = nullptr;
};

class AsyncRunner : public StepRunner {
 public:
  // Returns when the thread is prepared: what it prepared with is then free for others.
  explicit AsyncRunner(StepExecutor* executor)
      : executor_(executor), thread_([this] { Loop(); }) {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return prepared_; });
  }

  ~AsyncRunner() override {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    submitted_.notify_one();
    thread_.join();
  }

  void Submit(StepJob* job) override {
    {
      const std::lock_guard lock(mutex_);
      CHECK_LT(num_submitted_ - num_taken_, kDepth);
      jobs_[num_submitted_++ % kDepth] = job;
    }
    submitted_.notify_one();
  }

  StepJob* Wait() override {
    CheckMayWait();
    std::unique_lock lock(mutex_);
    CHECK_GT(num_submitted_, num_taken_);
    done_.wait(lock, [this] { return num_done_ > num_taken_; });
    return jobs_[num_taken_++ % kDepth];
  }

  int num_inside() const override {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(num_submitted_ - num_taken_);
  }
  bool busy() const override {
    const std::lock_guard lock(mutex_);
    return num_done_ < num_submitted_;
  }
  int depth() const override { return kDepth; }

 private:
  static constexpr int kDepth = 2;

  // Runs what was submitted before closing, too.
  void Loop() {
    executor_->Prepare();
    std::unique_lock lock(mutex_);
    prepared_ = true;
    done_.notify_one();
    while (true) {
      submitted_.wait(lock, [this] { return closing_ || num_done_ < num_submitted_; });
      if (num_done_ == num_submitted_) return;
      StepJob* const job = jobs_[num_done_ % kDepth];
      lock.unlock();
      executor_->Run(*job);
      lock.lock();
      ++num_done_;
      done_.notify_one();
      // Where all cores are busy, who waits for this result would get one only when the next step,
      // planned already, is over: its tokens and the plan after would come a step late.
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
  }

  StepExecutor* const executor_;
  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable submitted_, done_;
  StepJob* jobs_[kDepth] = {};
  int64_t num_submitted_ = 0, num_done_ = 0, num_taken_ = 0;
  bool prepared_ = false, closing_ = false;
  std::thread thread_;  // last: starts when the rest is there
};

}  // namespace

std::unique_ptr<StepRunner> MakeSyncRunner(StepExecutor* executor) {
  return std::make_unique<SyncRunner>(executor);
}

std::unique_ptr<StepRunner> MakeAsyncRunner(StepExecutor* executor) {
  return std::make_unique<AsyncRunner>(executor);
}

}  // namespace deepinfer
