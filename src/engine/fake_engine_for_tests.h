// engine/fake_engine_for_tests.h: an engine whose logits a test writes, without a model.
//
// The scripted model answers from the tokens alone, so tests of the joint run in microseconds and
// do not depend on what a model happens to say. Tests only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "engine/engine_core.h"

namespace deepinfer::testing {

struct FakeOptions {
  int32_t vocab_size = 16;
  int32_t num_pages = 64;
  EngineLimits limits = {.max_model_len = 256, .max_num_seqs = 8, .max_num_batched_tokens = 64};
  const Tokenizer* tokenizer = nullptr;
};

class FakeEngine {
 public:
  // logits(tokens so far) -> the row for the next one.
  using LogitsFn = std::function<std::vector<float>(std::span<const int32_t>)>;

  explicit FakeEngine(FakeOptions options, LogitsFn logits = nullptr)
      : options_(options), logits_(std::move(logits)), pages_(1, options.num_pages) {
    if (!logits_) logits_ = [this](std::span<const int32_t> tokens) { return Hashed(tokens); };
    core_ = std::make_unique<EngineCore>(
        EngineBackend{.forward = [this](const ForwardBatch& batch) { return Forward(batch); },
                      .pages = &pages_,
                      .tokenizer = options.tokenizer,
                      .rng = &rng_,
                      .vocab_size = options.vocab_size,
                      .eos_id = 1},
        options.limits);
  }

  EngineCore& core() { return *core_; }
  const ReservedPages& pages() const { return pages_; }
  // Rows of every pass so far.
  const std::vector<int32_t>& pass_rows() const { return pass_rows_; }
  // The pass with this number, counted from 1, fails.
  void FailPass(int64_t number) { failing_pass_ = number; }

 private:
  // Random-looking, and never EOS.
  std::vector<float> Hashed(std::span<const int32_t> tokens) const {
    uint64_t state = 1;
    for (const int32_t t : tokens) state = state * 6364136223846793005u + static_cast<uint64_t>(t);
    SeededRng rng(state);
    std::vector<float> row;
    for (int32_t i = 0; i < options_.vocab_size; ++i) {
      row.push_back(i == 1 ? -100.0f : static_cast<float>(4 * rng.UniformDouble()));
    }
    return row;
  }

  StatusOr<std::span<const float>> Forward(const ForwardBatch& batch) {
    out_.clear();
    pass_rows_.push_back(0);
    if (std::ssize(pass_rows_) == failing_pass_) return Internal("layer 3: cannot read");
    for (const ForwardSegment& s : batch.segments) {
      if (s.begin > 0) CHECK_EQ(computed_[s.kv], s.begin);  // every row once and in order
      computed_[s.kv] = s.end;
      pass_rows_.back() += s.end - s.begin;
      for (int32_t p = std::max(s.begin, s.logits_begin); p < s.end; ++p) {
        const std::vector<float> row = logits_({s.tokens, static_cast<size_t>(p) + 1});
        out_.insert(out_.end(), row.begin(), row.end());
      }
    }
    return out_;
  }

  const FakeOptions options_;
  LogitsFn logits_;
  ReservedPages pages_;
  SeededRng rng_{1};
  std::map<SequenceKv*, int32_t> computed_;
  std::vector<int32_t> pass_rows_;
  int64_t failing_pass_ = 0;
  std::vector<float> out_;
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
