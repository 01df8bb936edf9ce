// base/clock.h: time, as an interface, so that a test or a simulator decides when it passes.
//
// Everything that waits or measures takes a Clock; nothing else calls the system's clocks.
// Threads: any, unless a class says otherwise.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>

namespace deepinfer {

using Duration = std::chrono::nanoseconds;

// Time since an unspecified start; never runs backwards. For deadlines and measurements.
struct MonotonicTime {
  int64_t ns = 0;

  auto operator<=>(const MonotonicTime&) const = default;
  MonotonicTime operator+(Duration d) const { return {ns + d.count()}; }
  MonotonicTime operator-(Duration d) const { return {ns - d.count()}; }
  Duration operator-(MonotonicTime other) const { return Duration(ns - other.ns); }
};

// Time since 1970-01-01 UTC; may jump. For what people and other machines read.
struct WallTime {
  int64_t ns = 0;

  auto operator<=>(const WallTime&) const = default;
};

inline double Seconds(Duration d) { return std::chrono::duration<double>(d).count(); }
inline Duration FromSeconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

class Clock {
 public:
  virtual ~Clock() = default;
  virtual MonotonicTime Now() const = 0;
  virtual WallTime Wall() const = 0;
  virtual void SleepUntil(MonotonicTime when) = 0;
  // Waits until ready() or until the deadline has passed; returns the last ready().
  // `lock` holds the mutex that guards what ready() reads and that notifiers of `changed` take.
  virtual bool WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                         MonotonicTime deadline, const std::function<bool()>& ready) = 0;
};

// The machine's clocks.
Clock& RealClock();

// Stands still until told. Starts at 0 ns, wall time `start`.
class SimulatedClock : public Clock {
 public:
  explicit SimulatedClock(WallTime start = {}) : start_(start) {}

  // Wakes the sleepers and waiters whose time has come. Requires: d >= 0; the caller holds no mutex
  // that a waiter gave to WaitUntil().
  void Advance(Duration d);
  // Threads now inside SleepUntil() or WaitUntil().
  int num_waiters() const;

  MonotonicTime Now() const override { return {now_ns_.load()}; }
  WallTime Wall() const override { return {start_.ns + now_ns_.load()}; }
  void SleepUntil(MonotonicTime when) override;
  bool WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                 MonotonicTime deadline, const std::function<bool()>& ready) override;

 private:
  struct Waiter {
    std::mutex* mutex;
    std::condition_variable* changed;
  };

  const WallTime start_;
  std::atomic<int64_t> now_ns_{0};
  mutable std::mutex mutex_;  // guards waiters_; taken before a waiter's mutex, never after
  std::list<Waiter> waiters_;
};

}  // namespace deepinfer
