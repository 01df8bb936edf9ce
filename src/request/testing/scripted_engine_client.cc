#include "request/testing/scripted_engine_client.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "tokens/control_tokens.h"
#include "tokens/detokenizer.h"

namespace deepinfer::testing {
namespace {

void SetRequest(RequestId id, Event& event) {
  std::visit([id](auto& e) { e.request = id; }, event);
}

bool EndsChoice(const Event& event) {
  return std::holds_alternative<FinishEvent>(event) || std::holds_alternative<FailureEvent>(event);
}

PositionLogprobs MadeUp(int32_t id, int32_t num_top) {
  PositionLogprobs logprobs{.token = {id, -0.25}};
  for (int32_t i = 0; i < num_top; ++i) logprobs.top.push_back({id + i, -0.25 - i});
  return logprobs;
}

// The text's tokens, none of which reaches over a cut.
std::vector<std::vector<int32_t>> CutTokens(const ScriptedAnswer& answer,
                                            const Tokenizer& tokenizer) {
  std::vector<size_t> ends = answer.cuts;
  ends.push_back(answer.text.size());
  std::sort(ends.begin(), ends.end());
  std::vector<std::vector<int32_t>> parts;
  size_t begin = 0;
  for (const size_t end : ends) {
    CHECK_LE(end, answer.text.size());
    parts.push_back(tokenizer.Encode(std::string_view(answer.text).substr(begin, end - begin)));
    begin = end;
  }
  return parts;
}

}  // namespace

RequestId ScriptedEngineClient::Submit(Request request, Handler handler) {
  const RequestId id{next_id_++};
  const std::vector<Event> events = script_(request);
  Running& running = running_[id.v];
  running.handler = std::move(handler);
  running.events.assign(events.begin(), events.end());
  for (Event& event : running.events) SetRequest(id, event);
  requests_.push_back(std::move(request));
  return id;
}

void ScriptedEngineClient::Cancel(RequestId request) {
  ++num_cancelled_;
  running_.erase(request.v);
}

bool ScriptedEngineClient::DeliverOne() {
  for (auto& [id, running] : running_) {
    if (running.events.empty()) continue;
    const Event event = std::move(running.events.front());
    running.events.pop_front();
    const Handler handler = running.handler;  // a copy: Cancel() inside forgets this request
    const bool last = running.events.empty() && EndsChoice(event);
    if (last) running_.erase(id);
    handler(event);
    return true;
  }
  return false;
}

void ScriptedEngineClient::DeliverAll() {
  while (DeliverOne()) {
  }
}

std::vector<Event> EventsOf(const ScriptedAnswer& answer, const Tokenizer& tokenizer,
                            const Request& request) {
  std::vector<Event> events;
  Detokenizer detokenizer(tokenizer);
  const int32_t eos = *tokenizer.IdOf(kEosToken);
  std::vector<std::vector<int32_t>> parts = CutTokens(answer, tokenizer);
  if (answer.reason == FinishReason::kStop) parts.back().push_back(eos);
  int32_t first = 0;
  for (size_t p = 0; p < parts.size(); ++p) {
    TokensEvent tokens{.choice = answer.choice, .first_idx = first, .ids = parts[p]};
    for (const int32_t id : parts[p]) {
      tokens.pieces.push_back(id == eos ? "" : detokenizer.Add(id));
      if (answer.logprobs) {
        tokens.logprobs.push_back(MadeUp(id, request.sampling.logprobs.value_or(0)));
      }
    }
    if (p + 1 == parts.size() && !tokens.pieces.empty()) {
      tokens.pieces.back() += detokenizer.Finish();
    }
    for (const std::string& piece : tokens.pieces) tokens.text += piece;
    first += static_cast<int32_t>(parts[p].size());
    if (!tokens.ids.empty()) events.emplace_back(std::move(tokens));
  }
  FinishEvent finish{.choice = answer.choice, .reason = answer.reason};
  if (answer.reason == FinishReason::kStop) finish.matched_token_id = eos;
  events.emplace_back(std::move(finish));
  return events;
}

Script Saying(std::string_view text, const Tokenizer& tokenizer) {
  return [text = std::string(text), &tokenizer](const Request& request) {
    std::vector<Event> events;
    events.emplace_back(
        ReadyEvent{.seed = request.seed.value_or(7),
                   .prompt_tokens = static_cast<int32_t>(request.prompt_ids.size())});
    for (int32_t choice = 0; choice < request.num_choices; ++choice) {
      const ScriptedAnswer answer{
          .text = text, .choice = choice, .logprobs = request.sampling.logprobs.has_value()};
      for (Event& event : EventsOf(answer, tokenizer, request)) events.push_back(std::move(event));
    }
    return events;
  };
}

}  // namespace deepinfer::testing
