#include "base/clock.h"

#include <thread>

#include "base/check.h"
#include "base/no_wait.h"

namespace deepinfer {
namespace {

using Steady = std::chrono::steady_clock;

class RealClockImpl : public Clock {
 public:
  MonotonicTime Now() const override {
    return {std::chrono::duration_cast<Duration>(Steady::now().time_since_epoch()).count()};
  }
  WallTime Wall() const override {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return {std::chrono::duration_cast<Duration>(now).count()};
  }
  void SleepUntil(MonotonicTime when) override {
    CheckMayWait();
    std::this_thread::sleep_until(At(when));
  }
  bool WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                 MonotonicTime deadline, const std::function<bool()>& ready) override {
    CheckMayWait();
    return changed.wait_until(lock, At(deadline), ready);
  }

 private:
  static Steady::time_point At(MonotonicTime when) {
    return Steady::time_point(std::chrono::duration_cast<Steady::duration>(Duration(when.ns)));
  }
};

}  // namespace

Clock& RealClock() {
  static RealClockImpl clock;
  return clock;
}

void SimulatedClock::Advance(Duration d) {
  CHECK_GE(d.count(), 0);
  std::lock_guard lock(mutex_);
  now_ns_ += d.count();
  for (const Waiter& waiter : waiters_) {
    // Once its mutex was free, the waiter either sleeps (and is woken) or will read the new time.
    { std::lock_guard pass(*waiter.mutex); }
    waiter.changed->notify_all();
  }
}

int SimulatedClock::num_waiters() const {
  std::lock_guard lock(mutex_);
  return static_cast<int>(waiters_.size());
}

void SimulatedClock::SleepUntil(MonotonicTime when) {
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_lock lock(mutex);
  WaitUntil(lock, changed, when, [] { return false; });
}

bool SimulatedClock::WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                               MonotonicTime deadline, const std::function<bool()>& ready) {
  CheckMayWait();
  // Joining and leaving the list need mutex_, which must not be taken while `lock` is held.
  lock.unlock();
  std::list<Waiter>::iterator self;
  {
    std::lock_guard guard(mutex_);
    self = waiters_.insert(waiters_.end(), {lock.mutex(), &changed});
  }
  lock.lock();
  changed.wait(lock, [&] { return ready() || Now() >= deadline; });
  lock.unlock();
  {
    std::lock_guard guard(mutex_);
    waiters_.erase(self);
  }
  lock.lock();
  return ready();
}

}  // namespace deepinfer
