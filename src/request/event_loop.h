// request/event_loop.h: the server's thread: one loop over sockets, timers, signals and what other
// threads post.
//
// Asio stays behind event_loop.cc and the two http_*.cc. Threads: everything on the one that is
// inside RunUntilStopped(), except where it says any.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "request/timers.h"

namespace boost::asio {
class io_context;
}

namespace deepinfer {

class EventLoop : public Timers, public Background {
 public:
  explicit EventLoop(Clock& clock = RealClock());
  ~EventLoop() override;  // waits for background work that has begun
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // The calling thread becomes the server's. Returns after Stop(). What was posted and did not run
  // is dropped by the destructor.
  void RunUntilStopped();
  void Stop();                                // any thread
  void Post(std::function<void()> function);  // any thread; runs in order
  // From now on these signals come here, each time.
  void OnSignals(const std::vector<int>& signals, std::function<void(int)> function);

  MonotonicTime Now() const override { return clock_.Now(); }
  std::unique_ptr<Timer> RunAfter(Duration delay, std::function<void()> function) override;
  void Run(std::function<void()> work, std::function<void()> done) override;

  boost::asio::io_context& context();  // for http_*.cc

 private:
  struct Parts;

  Clock& clock_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace deepinfer
