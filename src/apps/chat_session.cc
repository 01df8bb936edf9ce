#include "apps/chat_session.h"

#include "request/structured_fields.h"

namespace deepinfer {
namespace {

Message TextMessage(Role role, const std::string& text) {
  return {.role = role, .content = {ContentPart::Text(text)}};
}

// Appends a piece to the message that the history will keep.
void Record(const AnswerDelta& delta, Message& answer, std::string& content) {
  switch (delta.kind) {
    case AnswerDelta::Kind::kReasoning:
      answer.reasoning_content += delta.text;
      break;
    case AnswerDelta::Kind::kContent:
      content += delta.text;
      break;
    case AnswerDelta::Kind::kCall:
      answer.tool_calls.push_back({.name_space = delta.call.name_space,
                                   .name = delta.call.name,
                                   .arguments = JsonValue::String(delta.call.arguments)});
      break;
  }
}

}  // namespace

StatusOr<ChatSession> ChatSession::Create(LoadedEngine& engine, const Request& request,
                                          const Thinking& thinking) {
  Conversation probe{.messages = {TextMessage(Role::kUser, "")}, .thinking = thinking};
  if (auto encoded = engine.EncodeChat(probe); !encoded.ok()) return encoded.status();
  DI_ASSIGN_OR_RETURN(const AnswerTokens tokens, AnswerTokens::Of(*engine.tokenizer()));
  ChatSession session(engine, request, tokens);
  session.conversation_.thinking = thinking;
  return session;
}

void ChatSession::Reset(const std::string& system) {
  system_ = system;
  conversation_.messages.clear();
  if (!system.empty()) conversation_.messages.push_back(TextMessage(Role::kSystem, system));
}

StatusOr<ChatSession::Outcome> ChatSession::Ask(const std::string& user,
                                                const Callbacks& callbacks) {
  conversation_.messages.push_back(TextMessage(Role::kUser, user));
  Message answer{.role = Role::kAssistant};
  auto outcome = Answer(callbacks, answer);
  if (outcome.ok()) {
    conversation_.messages.push_back(std::move(answer));
  } else {
    conversation_.messages.pop_back();
  }
  return outcome;
}

StatusOr<ChatSession::Outcome> ChatSession::Answer(const Callbacks& callbacks, Message& answer) {
  DI_ASSIGN_OR_RETURN(EncodedChat chat, engine_->EncodeChat(conversation_));
  Request request = request_;
  request.prompt_ids = std::move(chat.ids);
  if (chat.in_thinking) StartBehindThinking(tokens_, request.structured);
  EngineCore& core = engine_->core();
  DI_ASSIGN_OR_RETURN(const RequestId id, core.Submit(std::move(request)));

  AnswerParser parser(tokens_, chat.in_thinking);
  std::string content;
  Outcome outcome;
  Status failed;
  const auto show = [&](const std::vector<AnswerDelta>& deltas) {
    for (const AnswerDelta& delta : deltas) {
      Record(delta, answer, content);
      if (failed.ok()) failed = callbacks.show(delta);
    }
  };
  while (core.HasWork()) {
    if (!failed.ok() || callbacks.stop()) core.Cancel(id);
    for (const Event& event : core.Step()) {
      if (const auto* ready = std::get_if<ReadyEvent>(&event)) outcome.seed = ready->seed;
      if (const auto* tokens = std::get_if<TokensEvent>(&event)) {
        for (size_t i = 0; i < tokens->ids.size(); ++i) {
          ++outcome.num_tokens;
          show(parser.Feed(tokens->ids[i], tokens->pieces[i]));
        }
      }
      if (const auto* finish = std::get_if<FinishEvent>(&event)) outcome.reason = finish->reason;
      if (const auto* failure = std::get_if<FailureEvent>(&event)) {
        failed = DataLoss(failure->error.message);
      }
    }
  }
  show(parser.Finish());
  DI_RETURN_IF_ERROR(failed);
  if (!content.empty()) answer.content = {ContentPart::Text(content)};
  return outcome;
}

}  // namespace deepinfer
