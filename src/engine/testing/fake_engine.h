// engine/testing/fake_engine.h: an engine over FakeModel, and what its events say. Tests only.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "engine/engine_core.h"
#include "engine/testing/fake_model.h"

namespace deepinfer::testing {

struct FakeOptions {
  int32_t vocab_size = 16;
  int32_t num_pages = 64;
  int32_t num_host_pages = 16;
  int32_t num_saves = 4;
  int32_t num_slots = 16;
  SchedulerOptions scheduler = {.max_num_seqs = 8,
                                .max_num_batched_tokens = 64,
                                .max_model_len = 256,
                                .replay = ReplayMode::kExact};
  bool async = false;
  const Tokenizer* tokenizer = nullptr;
  FakeModel::LogitsFn logits = nullptr;  // null: FakeModel's own
  ThreadPool* threads = nullptr;  // see ExecutorBackend
  Drafter* drafter = nullptr;
  ConstraintSource* grammars = nullptr;
  // Masks are waited for, so that a test knows in which step a token comes.
  MaskOptions masks = {.wait_least = std::chrono::minutes(1)};
  uint64_t rng_seed = 1;
  Duration pass_time{0};  // what the clock says that each pass takes; without `async`
};

class FakeEngine {
 public:
  explicit FakeEngine(FakeOptions options)
      : model_(options.vocab_size, options.logits), rng_(options.rng_seed) {
    options.scheduler.shape = {.window = FakeModel::kWindow,
                               .verify_width = FakeModel::kVerifyWidth,
                               .num_layers = FakeModel::kEncoderRings + FakeModel::kDecoderRings,
                               .num_encoder_layers = FakeModel::kEncoderRings,
                               .keep = FakeModel::kKeep};
    const bool exact = options.scheduler.replay == ReplayMode::kExact;
    auto memory = KvMemory::Create(
        FakeModel::Shape(),
        {.num_pages = options.num_pages,
         .num_states = options.scheduler.max_num_seqs,
         .num_host_pages = options.num_host_pages,
         .num_saves = options.num_saves,
         .num_slots = options.num_slots,
         .num_snapshot_rings = exact ? FakeModel::Shape().num_rings : FakeModel::kEncoderRings});
    CHECK(memory.ok());
    memory_ = *std::move(memory);
    core_ = std::make_unique<EngineCore>(
        EngineBackend{.forward =
                          [this, time = options.pass_time](const ForwardBatch& b) {
                            clock_.Advance(time);
                            return model_.Forward(b);
                          },
                      .threads = options.threads,
                      .memory = memory_.get(),
                      .drafter = options.drafter,
                      .grammars = options.grammars,
                      .tokenizer = options.tokenizer,
                      .rng = &rng_,
                      .clock = &clock_,
                      .vocab_size = options.vocab_size,
                      .eos_id = FakeModel::kEos},
        EngineCoreOptions{.scheduler = options.scheduler,
                          .async = options.async,
                          .masks = options.masks,
                          .num_step_times = 64});
  }

  EngineCore& core() { return *core_; }
  const Scheduler& scheduler() const { return core_->scheduler(); }
  FakeModel& model() { return model_; }
  KvMemory& memory() { return *memory_; }
  SimulatedClock& clock() { return clock_; }
  const PagePool& pages() const { return core_->scheduler().pages(); }
  const std::vector<int32_t>& pass_rows() const { return model_.pass_rows(); }

 private:
  FakeModel model_;
  SeededRng rng_;
  SimulatedClock clock_;
  std::unique_ptr<KvMemory> memory_;
  std::unique_ptr<EngineCore> core_;
};

// What one choice gave, collected from events.
struct Answer {
  std::vector<int32_t> ids;
  std::string text;
  std::vector<PositionLogprobs> logprobs;
  std::optional<FinishEvent> finish;
  std::optional<Error> failure;
};

struct Answers {
  std::map<RequestId, ReadyEvent> ready;
  std::map<std::pair<RequestId, int32_t>, Answer> choices;
  std::vector<std::string> order_faults;  // broken promises about the order of events

  void Take(const std::vector<Event>& events) {
    for (const Event& event : events) std::visit([this](const auto& e) { TakeOne(e); }, event);
  }
  const Answer& Of(RequestId id, int32_t choice = 0) { return choices[{id, choice}]; }

 private:
  template <typename E>
  Answer& At(const E& e) {
    Answer& answer = choices[{e.request, e.choice}];
    if (answer.finish || answer.failure) order_faults.push_back("an event after the last one");
    return answer;
  }
  void TakeOne(const ReadyEvent& e) {
    if (!ready.emplace(e.request, e).second) order_faults.push_back("two Ready events");
  }
  void TakeOne(const TokensEvent& e) {
    if (!ready.contains(e.request)) order_faults.push_back("tokens before Ready");
    Answer& answer = At(e);
    if (e.first_idx != static_cast<int32_t>(answer.ids.size())) {
      order_faults.push_back("a gap between tokens");
    }
    answer.ids.insert(answer.ids.end(), e.ids.begin(), e.ids.end());
    answer.logprobs.insert(answer.logprobs.end(), e.logprobs.begin(), e.logprobs.end());
    answer.text += e.text;
  }
  void TakeOne(const FinishEvent& e) { At(e).finish = e; }
  void TakeOne(const FailureEvent& e) { At(e).failure = e.error; }
};

inline Answers RunAll(EngineCore& core) {
  Answers answers;
  while (core.HasWork()) answers.Take(core.Step());
  return answers;
}

}  // namespace deepinfer::testing
