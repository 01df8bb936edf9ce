// request/timers.h: doing something later, or beside the server's thread.
//
// Asio stays behind event_loop.cc. Tests use testing/fake_timers.h. Threads: the server's;
// functions run there too, never inside the call that takes them.
#pragma once

#include <functional>
#include <memory>

#include "base/clock.h"

namespace deepinfer {

// Something that will run once. Dropping it cancels it; that is allowed inside its own function.
class Timer {
 public:
  virtual ~Timer() = default;
};

class Timers {
 public:
  virtual ~Timers() = default;

  virtual MonotonicTime Now() const = 0;
  [[nodiscard]] virtual std::unique_ptr<Timer> RunAfter(Duration delay,
                                                        std::function<void()> function) = 0;
};

// For work that would hold up other clients: long prompts.
class Background {
 public:
  virtual ~Background() = default;

  // `work` runs on a thread of its own kind and must not touch what the server's thread owns; then
  // `done` runs on the server's thread. In order of the calls.
  virtual void Run(std::function<void()> work, std::function<void()> done) = 0;
};

}  // namespace deepinfer
