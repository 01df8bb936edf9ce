#include "request/chat_answer.h"

#include <iterator>
#include <utility>

#include "request/call_memory.h"

namespace deepinfer {
namespace {

template <typename T>
void MoveBehind(std::vector<T>& more, std::vector<T>& to) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

void ChatDelta::Append(ChatDelta more) {
  reasoning += more.reasoning;
  content += more.content;
  MoveBehind(more.calls, calls);
  MoveBehind(more.reasoning_logprobs, reasoning_logprobs);
  MoveBehind(more.content_logprobs, content_logprobs);
  MoveBehind(more.token_ids, token_ids);
}

ChatChoice::ChatChoice(const ChatRequest& request, std::function<std::string()> new_call_id)
    : request_(request),
      new_call_id_(std::move(new_call_id)),
      parser_(request.tokens, request.in_thinking) {}

ChatDelta ChatChoice::Take(const TokensEvent& event) {
  ChatDelta delta;
  for (size_t i = 0; i < event.ids.size(); ++i) {
    const bool thinking = parser_.in_thinking();
    Feed(event.ids[i], event.pieces[i], delta);
    if (i < event.logprobs.size()) AddLogprobs(event.ids[i], thinking, event.logprobs[i], delta);
  }
  if (request_.style.return_token_ids) delta.token_ids = event.ids;
  return delta;
}

void ChatChoice::Feed(int32_t id, std::string_view piece, ChatDelta& delta) {
  ++num_tokens_;
  if (parser_.in_thinking() && id != request_.tokens.think_end) ++num_reasoning_tokens_;
  if (request_.tools.calls_allowed) {
    ids_.push_back(id);
    pieces_.emplace_back(piece);
  }
  // EOS is no end then, and no text either.
  if (id == request_.tokens.eos && request_.request.sampling.ignore_eos) return;
  Add(parser_.Feed(id, piece), delta);
}

ChatDelta ChatChoice::Finish(const FinishEvent& event) {
  ChatDelta delta;
  Add(parser_.Finish(), delta);
  finish_ = event;
  if (event.reason == FinishReason::kLength) {
    finish_reason_ = "length";
  } else {
    finish_reason_ = calls_.empty() ? "stop" : "tool_calls";
  }
  return delta;
}

void ChatChoice::Add(std::vector<AnswerDelta> deltas, ChatDelta& delta) {
  for (AnswerDelta& part : deltas) {
    switch (part.kind) {
      case AnswerDelta::Kind::kReasoning:
        delta.reasoning += part.text;
        break;
      case AnswerDelta::Kind::kContent:
        delta.content += part.text;
        break;
      case AnswerDelta::Kind::kCall:
        AddCall(std::move(part.call), delta);
        break;
    }
  }
}

void ChatChoice::AddCall(ParsedCall call, ChatDelta& delta) {
  if (!request_.tools.calls_allowed) return;
  if (!request_.tools.parallel && !calls_.empty()) return;
  delta.calls.push_back({.index = static_cast<int32_t>(calls_.size()),
                         .id = new_call_id_(),
                         .name = QualifiedName(call.name_space, call.name),
                         .arguments = call.arguments});
  call_ids_.push_back(delta.calls.back().id);
  calls_.push_back(std::move(call));
}

void ChatChoice::AddLogprobs(int32_t id, bool thinking, const PositionLogprobs& logprobs,
                             ChatDelta& delta) {
  const AnswerTokens& tokens = request_.tokens;
  if (thinking && id == tokens.think_end) return;
  if (id == tokens.eos && !request_.request.sampling.ignore_eos) return;
  (thinking ? delta.reasoning_logprobs : delta.content_logprobs).push_back(logprobs);
}

std::shared_ptr<const SampledAnswer> ChatChoice::sampled() const {
  if (calls_.empty() || finish_.matched_token_id != request_.tokens.eos) return nullptr;
  std::vector<AnswerToken> tokens;
  for (size_t i = 0; i < ids_.size(); ++i) tokens.push_back({ids_[i], pieces_[i]});
  auto answer = MakeSampledAnswer(tokens, request_.tokens, request_.in_thinking);
  // Also when a call too many was left out.
  return answer != nullptr && answer->num_calls == calls_.size() ? answer : nullptr;
}

}  // namespace deepinfer
