// request/testing/loop_thread.h: an event loop on a thread of its own. Tests only.
#pragma once

#include <functional>
#include <future>
#include <thread>

#include "request/event_loop.h"

namespace deepinfer::testing {

// What uses the loop is made and destroyed inside Do(), or outlives this object.
class LoopThread {
 public:
  LoopThread() : thread_([this] { loop_.RunUntilStopped(); }) {}
  ~LoopThread() { Stop(); }
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  EventLoop& loop() { return loop_; }
  // Runs it there and waits for it.
  void Do(std::function<void()> function) {
    std::promise<void> done;
    loop_.Post([&] {
      function();
      done.set_value();
    });
    done.get_future().wait();
  }
  void Stop() {
    loop_.Stop();
    if (thread_.joinable()) thread_.join();
  }

 private:
  EventLoop loop_;
  std::thread thread_;
};

// Until `ready` or the patience is over; returns the last ready().
inline bool Eventually(const std::function<bool()>& ready,
                       std::chrono::milliseconds patience = std::chrono::seconds(10)) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!ready()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace deepinfer::testing
