// request/testing/fake_timers.h: time that a test moves, and work beside that a test runs. Tests
// only.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "request/timers.h"

namespace deepinfer::testing {

class FakeTimers : public Timers {
 public:
  MonotonicTime Now() const override { return now_; }

  std::unique_ptr<Timer> RunAfter(Duration delay, std::function<void()> function) override {
    const Key key{(now_ + delay).ns, next_id_++};
    functions_[key] = std::move(function);
    return std::make_unique<Entry>(*this, key);
  }

  // Runs what is due by then, in order.
  void Advance(Duration d) {
    const MonotonicTime end = now_ + d;
    while (!functions_.empty() && functions_.begin()->first.first <= end.ns) {
      const auto due = functions_.extract(functions_.begin());
      now_ = {due.key().first};
      due.mapped()();
    }
    now_ = end;
  }
  size_t num_waiting() const { return functions_.size(); }

 private:
  using Key = std::pair<int64_t, int64_t>;  // when, and in which order they were asked for

  class Entry : public Timer {
   public:
    Entry(FakeTimers& owner, Key key) : owner_(owner), key_(key) {}
    ~Entry() override { owner_.functions_.erase(key_); }

   private:
    FakeTimers& owner_;
    const Key key_;
  };

  MonotonicTime now_;
  int64_t next_id_ = 0;
  std::map<Key, std::function<void()>> functions_;
};

// Runs nothing until it is told to.
class FakeBackground : public Background {
 public:
  void Run(std::function<void()> work, std::function<void()> done) override {
    jobs_.emplace_back(std::move(work), std::move(done));
  }
  size_t num_waiting() const { return jobs_.size(); }
  // False: nothing waits.
  bool RunOne() {
    if (jobs_.empty()) return false;
    const auto job = std::move(jobs_.front());
    jobs_.pop_front();
    job.first();
    job.second();
    return true;
  }

 private:
  std::deque<std::pair<std::function<void()>, std::function<void()>>> jobs_;
};

}  // namespace deepinfer::testing
