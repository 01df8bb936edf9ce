// apps/paced_engine_client.h: an engine that makes answers up, at a steady rate: for measuring the
// server alone.
//
// A request's token i comes at its arrival + (i + 1) / rate, so that a client can tell how late
// each one is. Only EOS-free text; ends at max_tokens. Threads: the server's.
#pragma once

#include <cstdint>
#include <memory>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "request/engine_client.h"
#include "request/timers.h"

namespace deepinfer {

class PacedEngineClient : public EngineClient {
 public:
  // `timers` and the model's tokenizer outlive the client. Requires: tokens_per_s > 0.
  PacedEngineClient(ServedModel model, Timers& timers, double tokens_per_s);

  const ServedModel& model() const override { return model_; }
  RequestId Submit(Request request, Handler handler) override;
  void Cancel(RequestId request) override;
  EngineSnapshot Snapshot() const override;

 private:
  struct Stream {
    Handler handler;
    int32_t prompt_tokens = 0, max_tokens = 0, num_tokens = 0;
    uint64_t seed = 0;
    MonotonicTime arrival;
  };
  struct Due {
    MonotonicTime time;
    int64_t id;
    bool operator>(const Due& other) const { return time > other.time; }
  };
  struct Word {
    int32_t id;
    std::string text;
  };

  void Wait();
  void Deliver();
  void Step(int64_t id);

  const ServedModel model_;
  Timers& timers_;
  const double tokens_per_s_;
  std::vector<Word> words_;
  std::unordered_map<int64_t, std::shared_ptr<Stream>> streams_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  std::unique_ptr<Timer> timer_;
  int64_t next_id_ = 1, num_tokens_ = 0, num_prompt_tokens_ = 0;
};

}  // namespace deepinfer
