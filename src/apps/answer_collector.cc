#include "apps/answer_collector.h"

#include <cmath>

#include "base/check.h"

namespace deepinfer {
namespace {

JsonValue Array() { return {.kind = JsonValue::Kind::kArray}; }
JsonValue Number(std::string text) {
  return {.kind = JsonValue::Kind::kNumber, .text = std::move(text)};
}

std::string_view ReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "";
}

JsonValue TokenJson(const TokenLogprob& token, const Tokenizer* tokenizer) {
  JsonValue out = JsonValue::Object();
  out.Set("id", JsonNumber(int64_t{token.id}));
  if (tokenizer != nullptr) {
    out.Set("token", JsonValue::String(tokenizer->Decode(std::vector<int32_t>{token.id})));
    JsonValue bytes = Array();  // also half characters, which `token` cannot show
    for (const char c : tokenizer->BytesOf(token.id)) {
      bytes.items.push_back(JsonNumber(int64_t{static_cast<uint8_t>(c)}));
    }
    out.Set("bytes", std::move(bytes));
  }
  out.Set("logprob", JsonNumber(token.logprob));
  return out;
}

JsonValue LogprobsJson(const std::vector<PositionLogprobs>& positions, const Tokenizer* tokenizer) {
  JsonValue out = Array();
  for (const PositionLogprobs& position : positions) {
    JsonValue entry = TokenJson(position.token, tokenizer);
    JsonValue top = Array();
    for (const TokenLogprob& token : position.top) top.items.push_back(TokenJson(token, tokenizer));
    entry.Set("top_logprobs", std::move(top));
    out.items.push_back(std::move(entry));
  }
  return out;
}

JsonValue CallsJson(const std::vector<ParsedCall>& calls) {
  JsonValue out = Array();
  for (const ParsedCall& call : calls) {
    JsonValue function = JsonValue::Object();
    const std::string name =
        call.name_space.empty() ? call.name : StrCat(call.name_space, "::", call.name);
    function.Set("name", JsonValue::String(name));
    function.Set("arguments", JsonValue::String(call.arguments));
    JsonValue entry = JsonValue::Object();
    entry.Set("type", JsonValue::String("function"));
    entry.Set("function", std::move(function));
    out.items.push_back(std::move(entry));
  }
  return out;
}

void AddChatParts(const ChoiceAnswer& choice, const AnswerJsonOptions& options, JsonValue& out) {
  const auto tokens = AnswerTokens::Of(*options.tokenizer);
  if (!tokens.ok()) return;  // a tokenizer without control tokens has no chat answers
  std::vector<AnswerToken> answer;
  for (size_t i = 0; i < choice.ids.size(); ++i) {
    answer.push_back({choice.ids[i], choice.pieces[i]});
  }
  const ParsedAnswer parsed = ParseAnswer(answer, *tokens, options.in_thinking);
  if (options.in_thinking) {
    out.Set("reasoning_content", JsonValue::String(parsed.reasoning));
  }
  out.Set("content", JsonValue::String(parsed.content));
  if (!parsed.calls.empty()) out.Set("tool_calls", CallsJson(parsed.calls));
}

JsonValue ChoiceJson(int64_t index, const ChoiceAnswer& choice, const AnswerJsonOptions& options) {
  JsonValue out = JsonValue::Object();
  out.Set("index", JsonNumber(index));
  if (options.tokenizer != nullptr) out.Set("text", JsonValue::String(choice.Text()));
  if (options.is_chat) AddChatParts(choice, options, out);
  JsonValue ids = Array();
  for (const int32_t id : choice.ids) ids.items.push_back(JsonNumber(int64_t{id}));
  out.Set("token_ids", std::move(ids));
  out.Set("finish_reason", JsonValue::String(std::string(ReasonName(choice.finish->reason))));
  JsonValue stop;
  if (!choice.finish->matched_stop.empty()) stop = JsonValue::String(choice.finish->matched_stop);
  if (choice.finish->matched_token_id) stop = JsonNumber(int64_t{*choice.finish->matched_token_id});
  out.Set("stop_reason", std::move(stop));
  if (!choice.logprobs.empty()) {
    out.Set("logprobs", LogprobsJson(choice.logprobs, options.tokenizer));
  }
  return out;
}

}  // namespace

JsonValue JsonNumber(int64_t value) { return Number(StrCat(value)); }
JsonValue JsonNumber(uint64_t value) { return Number(StrCat(value)); }
JsonValue JsonNumber(double value) {
  if (!std::isfinite(value)) return {};
  char text[32];
  return Number({text, std::to_chars(text, text + sizeof text, value).ptr});
}

std::string ChoiceAnswer::Text() const { return Join(pieces, ""); }

void AnswerCollector::Take(const Event& event) {
  if (const auto* ready = std::get_if<ReadyEvent>(&event)) {
    ready_ = *ready;
  } else if (const auto* tokens = std::get_if<TokensEvent>(&event)) {
    ChoiceAnswer& choice = choices_[static_cast<size_t>(tokens->choice)];
    choice.ids.insert(choice.ids.end(), tokens->ids.begin(), tokens->ids.end());
    choice.pieces.insert(choice.pieces.end(), tokens->pieces.begin(), tokens->pieces.end());
    choice.logprobs.insert(choice.logprobs.end(), tokens->logprobs.begin(), tokens->logprobs.end());
  } else if (const auto* finish = std::get_if<FinishEvent>(&event)) {
    choices_[static_cast<size_t>(finish->choice)].finish = *finish;
    ++num_ended_;
  } else if (const auto* failure = std::get_if<FailureEvent>(&event)) {
    if (!failure_) failure_ = failure->error;
    ++num_ended_;
  }
}

int64_t AnswerCollector::num_output_tokens() const {
  int64_t count = 0;
  for (const ChoiceAnswer& choice : choices_) count += std::ssize(choice.ids);
  return count;
}

JsonValue AnswerJson(const AnswerCollector& answers, const AnswerJsonOptions& options) {
  CHECK(answers.done() && !answers.failure());
  const ReadyEvent& ready = answers.ready();
  JsonValue out = JsonValue::Object();
  out.Set("seed", JsonNumber(ready.seed));
  JsonValue choices = Array();
  for (const ChoiceAnswer& choice : answers.choices()) {
    choices.items.push_back(ChoiceJson(std::ssize(choices.items), choice, options));
  }
  out.Set("choices", std::move(choices));
  if (!ready.prompt_logprobs.empty()) {
    JsonValue prompt = LogprobsJson(ready.prompt_logprobs, options.tokenizer);
    prompt.items.insert(prompt.items.begin(), JsonValue());  // nothing comes before the first token
    out.Set("prompt_logprobs", std::move(prompt));
  }
  JsonValue usage = JsonValue::Object();
  usage.Set("prompt_tokens", JsonNumber(int64_t{ready.prompt_tokens}));
  usage.Set("cached_tokens", JsonNumber(int64_t{ready.cached_tokens}));
  usage.Set("completion_tokens", JsonNumber(answers.num_output_tokens()));
  out.Set("usage", std::move(usage));
  return out;
}

JsonValue ErrorJson(const Error& error) {
  const bool ours = error.code == ErrorCode::kDataLoss || error.code == ErrorCode::kInternal;
  JsonValue out = JsonValue::Object();
  out.Set("message", JsonValue::String(error.message));
  out.Set("type", JsonValue::String(ours ? "server_error" : "invalid_request_error"));
  out.Set("code", JsonValue::String(std::string(ErrorCodeName(error.code))));
  return out;
}

}  // namespace deepinfer
