#include "request/event_loop.h"

#include <pthread.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "base/log.h"

namespace deepinfer {
namespace {

namespace asio = boost::asio;

// What a timer and its pending wait share.
struct Countdown {
  explicit Countdown(asio::io_context& context) : timer(context) {}
  asio::steady_timer timer;
  std::function<void()> function;  // empty: ran, or was cancelled
};

class AsioTimer : public Timer {
 public:
  explicit AsioTimer(std::shared_ptr<Countdown> countdown) : countdown_(std::move(countdown)) {}
  ~AsioTimer() override {
    if (!countdown_->function) return;
    countdown_->function = nullptr;
    countdown_->timer.cancel();
  }

 private:
  const std::shared_ptr<Countdown> countdown_;
};

// One thread that takes work in order. Starts with its first work.
class Worker {
 public:
  ~Worker() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

  void Add(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      work_.push_back(std::move(work));
      if (!thread_.joinable()) thread_ = std::thread([this] { Loop(); });
    }
    changed_.notify_one();
  }

 private:
  void Loop() {
    pthread_setname_np(pthread_self(), "di-background");
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stopping_ || !work_.empty(); });
      if (stopping_) return;
      const std::function<void()> work = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      work();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace

struct EventLoop::Parts {
  void WaitForSignal() {
    signals->async_wait([this](const boost::system::error_code& error, int signal) {
      if (error) return;
      WaitForSignal();
      on_signal(signal);
    });
  }

  asio::io_context context{1};  // one thread runs it
  asio::executor_work_guard<asio::io_context::executor_type> guard = asio::make_work_guard(context);
  std::unique_ptr<asio::signal_set> signals;
  std::function<void(int)> on_signal;
  Worker worker;  // last: its work may post
};

EventLoop::EventLoop(Clock& clock) : clock_(clock), parts_(std::make_unique<Parts>()) {}

EventLoop::~EventLoop() = default;

void EventLoop::RunUntilStopped() {
  pthread_setname_np(pthread_self(), "di-http");
  asio::io_context& context = parts_->context;
  const auto guarded = [&](auto run) {
    try {
      run();
    } catch (const std::exception& error) {
      LogError("server: ", error.what(), "; going on");
    }
  };
  while (!context.stopped()) guarded([&] { context.run(); });
  // What is ready still ends by itself: connections that were just closed. A coroutine that is
  // destroyed while it waits leaks.
  context.restart();
  guarded([&] { context.poll(); });
  context.stop();
}

void EventLoop::Stop() { parts_->context.stop(); }

void EventLoop::Post(std::function<void()> function) {
  asio::post(parts_->context, std::move(function));
}

void EventLoop::OnSignals(const std::vector<int>& signals, std::function<void(int)> function) {
  parts_->signals = std::make_unique<asio::signal_set>(parts_->context);
  boost::system::error_code error;
  for (const int signal : signals) parts_->signals->add(signal, error);
  if (error) LogWarning("signals cannot be caught: ", error.message());
  parts_->on_signal = std::move(function);
  parts_->WaitForSignal();
}

std::unique_ptr<Timer> EventLoop::RunAfter(Duration delay, std::function<void()> function) {
  auto countdown = std::make_shared<Countdown>(parts_->context);
  countdown->function = std::move(function);
  countdown->timer.expires_after(delay);
  countdown->timer.async_wait([countdown](const boost::system::error_code&) {
    if (const auto function = std::exchange(countdown->function, nullptr)) function();
  });
  return std::make_unique<AsioTimer>(std::move(countdown));
}

void EventLoop::Run(std::function<void()> work, std::function<void()> done) {
  parts_->worker.Add([this, work = std::move(work), done = std::move(done)]() mutable {
    work();
    Post(std::move(done));
  });
}

boost::asio::io_context& EventLoop::context() { return parts_->context; }

}  // namespace deepinfer
