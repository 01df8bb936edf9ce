// apps/local_engine_client.h: the engine of this process, for the HTTP server: a thread that steps,
// and the way between it and the server's thread.
//
//   server's thread                            engine's thread
//   Submit, Cancel -> [bounded inbox] ->       takes all of it before each step
//   handlers       <- one post a step <-       the step's events
// The server's thread waits for nothing. The engine's thread sleeps while nothing is to be done,
// and waits for the server when kMaxBatches of events lie there untaken.
// Threads: the server's, except construction and destruction, around the life of both.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "engine/engine_core.h"
#include "request/engine_client.h"
#include "request/event_loop.h"

namespace deepinfer {

struct LocalEngineOptions {
  // No step ended for so long although requests run: those that wait fail, see FailWaiting.
  Duration stall_timeout = std::chrono::seconds(10);
  int32_t max_inbox = 4096;  // requests that the engine's thread has not seen yet
  // Adds what the core does not know to each snapshot; on the engine's thread. May be empty.
  std::function<void(EngineSnapshot&)> fill_snapshot;
  // For tests: runs on the engine's thread before each step.
  std::function<void()> before_step;
};

class LocalEngineClient : public EngineClient {
 public:
  // Starts the engine's thread, which owns `core` from now on. All of it outlives the client;
  // `loop` does not run any more when the client is destroyed.
  LocalEngineClient(EngineCore& core, ServedModel model, EventLoop& loop, Clock& clock,
                    LocalEngineOptions options);
  ~LocalEngineClient() override;  // ends what runs, waits for the step in flight

  const ServedModel& model() const override { return model_; }
  RequestId Submit(Request request, Handler handler) override;
  void Cancel(RequestId request) override;
  EngineSnapshot Snapshot() const override;

 private:
  static constexpr int kMaxBatches = 64;

  struct Submission {
    RequestId id;
    Request request;
  };
  using Order = std::variant<Submission, RequestId>;  // a request, or the id of one to cancel

  // A request as the server's thread knows it, until its last event.
  struct Live {
    Handler handler;
    int32_t num_unfinished = 1;  // choices
    bool ready = false;          // Ready has come
    bool structured = false;
  };
  // As the engine's thread does.
  struct Running {
    RequestId client_id;
    int32_t num_unfinished = 1;
  };

  // ---- server's thread
  void Deliver(const std::vector<Event>& events);
  void DeliverOne(const Event& event);
  void SendOrder(Order order);
  void FailSoon(RequestId request, Error error);
  void WatchSteps();
  void FailWaiting();
  bool OnlyGrammarsWait() const;

  // ---- engine's thread
  void Loop();
  bool TakeOrders(std::vector<Order>& orders);  // false: to end
  void Obey(Order& order, std::vector<Event>& events);
  void Translate(std::vector<Event>& events);
  void Send(std::vector<Event> events);
  void Publish(int32_t num_taken = 0);
  void EndAll();

  EngineCore& core_;
  const ServedModel model_;
  EventLoop& loop_;
  Clock& clock_;
  const LocalEngineOptions options_;

  std::unordered_map<int64_t, std::shared_ptr<Live>> live_;
  int64_t next_id_ = 1;
  MonotonicTime live_since_ = {};  // live_ is not empty since
  int32_t num_sent_ = 0;           // submissions that the engine's thread has not taken, at most
  std::unique_ptr<Timer> watch_;

  std::unordered_map<int64_t, Running> running_;      // by the engine's id
  std::unordered_map<int64_t, RequestId> engine_id_;  // by the client's

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<Order> inbox_;
  int32_t num_submissions_ = 0;  // in inbox_, or taken and not in snapshot_ yet
  bool stopping_ = false;
  int num_batches_ = 0;  // posted, not delivered yet
  EngineSnapshot snapshot_;

  std::atomic<int64_t> last_step_ns_{0};   // when a step ended
  std::atomic<int64_t> last_round_ns_{0};  // when the engine's thread was last seen to go on
  std::thread thread_;
};

}  // namespace deepinfer
