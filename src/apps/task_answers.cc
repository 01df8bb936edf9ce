#include "apps/task_answers.h"

#include <map>

#include "apps/answer_collector.h"

namespace deepinfer {
namespace {

Request GreedyRequest(const TaskItem& item, int32_t max_answer_tokens) {
  Request request{.max_tokens = max_answer_tokens};
  request.prompt_ids = item.prompt.ids;
  request.sampling.temperature = 0;
  return request;
}

TaskAnswer Parse(const ChoiceAnswer& choice, const TaskItem& item, const AnswerTokens& tokens) {
  std::vector<AnswerToken> pieces;
  for (size_t i = 0; i < choice.ids.size(); ++i) {
    pieces.push_back({choice.ids[i], choice.pieces[i]});
  }
  return {choice.ids, ParseAnswer(pieces, tokens, item.prompt.in_thinking)};
}

}  // namespace

StatusOr<std::vector<TaskAnswer>> AnswerItems(EngineCore& core, std::span<const TaskItem> items,
                                              const AnswerOptions& options) {
  std::vector<AnswerCollector> collectors(items.size(), AnswerCollector(1));
  std::map<RequestId, size_t> item_of;
  for (size_t next = 0; next < items.size() || core.HasWork();) {
    for (; next < items.size() && core.queue_room() > 0; ++next) {
      DI_ASSIGN_OR_RETURN(const RequestId id,
                          core.Submit(GreedyRequest(items[next], options.max_answer_tokens)));
      item_of[id] = next;
    }
    for (const Event& event : core.Step()) {
      const size_t at = item_of.at(std::visit([](const auto& e) { return e.request; }, event));
      collectors[at].Take(event);
      if (const auto& failure = collectors[at].failure()) return Internal(failure->message);
      if (collectors[at].done() && options.progress) {
        options.progress(std::ssize(items[at].prompt.ids));
      }
    }
  }
  std::vector<TaskAnswer> answers;
  for (size_t i = 0; i < items.size(); ++i) {
    answers.push_back(Parse(collectors[i].choices()[0], items[i], options.tokens));
  }
  return answers;
}

std::string WrongAnswerJson(std::string_view task, const TaskItem& item, const TaskAnswer& answer,
                            const Tokenizer& tokenizer) {
  const Message& expected = item.exercise.answer();
  JsonValue out = JsonValue::Object();
  out.Set("task", JsonValue::String(std::string(task)));
  out.Set("key", JsonValue::String(item.exercise.key));
  out.Set("prompt", JsonValue::String(tokenizer.Decode(item.prompt.ids)));
  out.Set("expected", JsonValue::String(TextOfMessage(expected)));
  if (!expected.tool_calls.empty()) {
    JsonValue calls;
    calls.kind = JsonValue::Kind::kArray;
    for (const ToolCall& call : expected.tool_calls) {
      JsonValue one = JsonValue::Object();
      one.Set("name", JsonValue::String(call.name));
      one.Set("arguments", call.arguments);
      calls.items.push_back(std::move(one));
    }
    out.Set("expected_calls", std::move(calls));
  }
  out.Set("answer", JsonValue::String(tokenizer.Decode(answer.ids)));
  return DumpJson(out) + "\n";
}

}  // namespace deepinfer
