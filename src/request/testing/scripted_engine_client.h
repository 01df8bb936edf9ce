// request/testing/scripted_engine_client.h: an engine that says what a script says. Tests only.
//
// Events wait until the test delivers them, one by one or all, so that it can look at what a client
// has got in between.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "request/engine_client.h"

namespace deepinfer::testing {

// The events that answer a request; their request ids are filled in.
using Script = std::function<std::vector<Event>(const Request&)>;

class ScriptedEngineClient : public EngineClient {
 public:
  ScriptedEngineClient(ServedModel model, Script script)
      : model_(std::move(model)), script_(std::move(script)) {}

  const ServedModel& model() const override { return model_; }
  ServedModel& mutable_model() { return model_; }
  RequestId Submit(Request request, Handler handler) override;
  void Cancel(RequestId request) override;
  EngineSnapshot Snapshot() const override { return {}; }

  void set_script(Script script) { script_ = std::move(script); }
  // The next event of the oldest request that has one. False: there is none.
  bool DeliverOne();
  void DeliverAll();

  const std::vector<Request>& requests() const { return requests_; }
  int num_cancelled() const { return num_cancelled_; }  // calls of Cancel()
  size_t num_running() const { return running_.size(); }

 private:
  struct Running {
    Handler handler;
    std::deque<Event> events;
  };

  ServedModel model_;
  Script script_;
  std::vector<Request> requests_;
  std::map<int64_t, Running> running_;
  int64_t next_id_ = 1;
  int num_cancelled_ = 0;
};

// An answer as the engine tells it: its tokens as `tokenizer` cuts the text (control tokens by
// their ids), in events that end where `cuts` (byte offsets of the text) say and at the end.
struct ScriptedAnswer {
  std::string text;
  std::vector<size_t> cuts;
  int32_t choice = 0;
  FinishReason reason = FinishReason::kStop;  // kStop: EOS follows the text
  bool logprobs = false;                      // made up: -0.25 for each token
};
std::vector<Event> EventsOf(const ScriptedAnswer& answer, const Tokenizer& tokenizer,
                            const Request& request);

// The script that answers every request so, in every choice.
Script Saying(std::string_view text, const Tokenizer& tokenizer);

}  // namespace deepinfer::testing
