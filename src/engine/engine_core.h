// engine/engine_core.h: the joint: one step = plan -> forward -> sample -> events.
//
// Small on purpose: who runs is engine/step_planner's business, the next token model/sampler's,
// text engine/text_output's. A request's result depends on itself alone, so anything may share a
// step with anything. KV pages for a choice's whole length are reserved when it starts, so a
// running choice never lacks memory; choices start first come first served. Threads: the step loop
// only.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/rng.h"
#include "base/status.h"
#include "cache/reserved_pages.h"
#include "deepinfer/request.h"
#include "engine/sequence.h"
#include "engine/step_planner.h"
#include "model/forward_batch.h"
#include "model/sampler.h"
#include "tokens/tokenizer.h"

namespace deepinfer {

// Prompt log-probabilities need every row's logits; this bounds them in one step.
inline constexpr int32_t kMaxLogitsRows = 256;
// One prompt token and one output token.
inline constexpr int32_t kMinModelLen = 2;

struct EngineLimits {
  int32_t max_model_len = 0;           // prompt + output of a choice
  int32_t max_num_seqs = 0;            // running choices
  int32_t max_num_batched_tokens = 0;  // rows of a step
};
// Errors: kInvalidArgument naming the option, the least value that works and what was found.
Status CheckEngineLimits(const EngineLimits& limits);

// Runs the pass and returns logits [rows that asked, V]; see Model::Forward. A failure ends the
// choices that had rows in the pass, and nothing else.
using ForwardFn = std::function<StatusOr<std::span<const float>>(const ForwardBatch&)>;

// What the engine runs on. All pointers outlive it.
struct EngineBackend {
  ForwardFn forward;
  KvShape kv_shape;
  ReservedPages* pages = nullptr;
  const Tokenizer* tokenizer = nullptr;  // null: token ids only
  Rng* rng = nullptr;                    // seeds of requests that have none
  int32_t vocab_size = 0;
  int32_t eos_id = 0;
};

class EngineCore {
 public:
  // Requires: CheckEngineLimits passed.
  EngineCore(EngineBackend backend, const EngineLimits& limits);

  // As Engine::Submit of deepinfer/engine.h.
  StatusOr<RequestId> Submit(Request request);
  void Cancel(RequestId request);
  bool HasWork() const { return !waiting_.empty() || !running_.empty() || !pending_.empty(); }
  std::vector<Event> Step();

  int32_t num_running() const { return static_cast<int32_t>(running_.size()); }
  const EngineLimits& limits() const { return limits_; }

 private:
  Status CheckRequest(const Request& request) const;
  Status CheckLengths(const Request& request) const;
  int32_t MaxOutput(const Request& request) const;
  void StartWaiting(std::vector<Event>& events);
  std::vector<PlannedRows> Plan() const;
  ForwardBatch MakeBatch(const std::vector<PlannedRows>& plan) const;
  // Uses the logits of a pass.
  void AdvanceAll(const std::vector<PlannedRows>& plan, std::span<const float> logits,
                  std::vector<Event>& events);
  // Uses the logits of one sequence's planned rows and returns how many rows those were.
  int64_t Advance(Sequence& sequence, const PlannedRows& rows, std::span<const float> logits,
                  std::vector<Event>& events);
  void RecordPromptLogprobs(Sequence& sequence, int32_t position, std::span<const float> row);
  void SampleNext(Sequence& sequence, std::span<const float> row, std::vector<Event>& events);
  void SendReady(Sequence& sequence, std::vector<Event>& events);
  void Finish(Sequence& sequence, FinishEvent how, std::vector<Event>& events);
  void Fail(Sequence& sequence, const Status& status, std::vector<Event>& events);

  const EngineBackend backend_;
  const EngineLimits limits_;
  Sampler sampler_;
  int64_t next_id_ = 1;
  std::deque<std::unique_ptr<Sequence>> waiting_;
  std::vector<std::unique_ptr<Sequence>> running_;  // in order of admission
  std::vector<Event> pending_;                      // of Cancel, for the next Step
};

// The public form of a failure: unlisted codes become kInternal.
Error ToError(const Status& status);

}  // namespace deepinfer
