// apps/answer_collector.h: the events of a request, gathered into whole answers, and their JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "deepinfer/request.h"
#include "tokens/answer_parser.h"
#include "tokens/json.h"
#include "tokens/tokenizer.h"

namespace deepinfer {

struct ChoiceAnswer {
  std::vector<int32_t> ids;
  std::vector<std::string> pieces;  // the text that came with each id
  std::vector<PositionLogprobs> logprobs;
  std::optional<FinishEvent> finish;

  std::string Text() const;
};

// All choices of one request. Fed with its events in order.
class AnswerCollector {
 public:
  explicit AnswerCollector(int32_t num_choices) : choices_(static_cast<size_t>(num_choices)) {}

  void Take(const Event& event);
  bool done() const { return num_ended_ == choices_.size(); }
  // The first failure of any choice.
  const std::optional<Error>& failure() const { return failure_; }
  const std::vector<ChoiceAnswer>& choices() const { return choices_; }
  const ReadyEvent& ready() const { return ready_; }
  int64_t num_output_tokens() const;

 private:
  std::vector<ChoiceAnswer> choices_;
  size_t num_ended_ = 0;
  ReadyEvent ready_;
  std::optional<Error> failure_;
};

struct AnswerJsonOptions {
  const Tokenizer* tokenizer = nullptr;  // null: no texts
  bool is_chat = false;
  bool in_thinking = false;
};

// {"seed":, "choices":[{"index":, "text":, "token_ids":, "finish_reason":, "stop_reason":,
// "logprobs":, and of a chat "reasoning_content", "content", "tool_calls"}], "prompt_logprobs":,
// "usage":}. Requires: done, no failure.
JsonValue AnswerJson(const AnswerCollector& answers, const AnswerJsonOptions& options);
// {"message":, "type":, "code":}
JsonValue ErrorJson(const Error& error);

JsonValue JsonNumber(int64_t value);
JsonValue JsonNumber(uint64_t value);
JsonValue JsonNumber(double value);  // null if not finite

}  // namespace deepinfer
