#include "request/chat_request.h"

#include "tokens/conversation_json.h"

namespace deepinfer {
namespace {

// The hosted API wants the reasoning of an answer with calls back.
Status CheckReasoningCameBack(const Conversation& conversation) {
  if (!conversation.thinking.enabled) return OkStatus();
  for (size_t i = 0; i < conversation.messages.size(); ++i) {
    const Message& message = conversation.messages[i];
    if (!message.tool_calls.empty() && message.reasoning_content.empty()) {
      return InvalidArgument("messages[", i,
                             "].reasoning_content: found nothing, but this message has tool_calls; "
                             "send it back as it came");
    }
  }
  return OkStatus();
}

// The hosted API has these without effect while the model thinks.
void DropSampling(SamplingParams& sampling) {
  const SamplingParams defaults;
  sampling.temperature = defaults.temperature;
  sampling.top_p = defaults.top_p;
  sampling.presence_penalty = defaults.presence_penalty;
  sampling.frequency_penalty = defaults.frequency_penalty;
}

}  // namespace

Status ChatRequest::Read(FieldReader& reader, const ServedModel& model, const ApiOptions& options,
                         std::string_view tenant) {
  DI_RETURN_IF_ERROR(ReadAnswerStyle(reader, model, style));
  DI_RETURN_IF_ERROR(ReadRequestFields(reader, options, tenant, request));
  if (const JsonValue* logprobs = reader.Find("logprobs");
      logprobs != nullptr && logprobs->kind != JsonValue::Kind::kBool) {
    reader.Complain("logprobs", "true or false");
    return reader.status();
  }
  DI_ASSIGN_OR_RETURN(wish, ReadStructuredFields(reader));
  DI_ASSIGN_OR_RETURN(conversation, ReadConversation(reader.root(), model.thinking));
  DI_ASSIGN_OR_RETURN(tools, ReadToolPolicy(reader, conversation));
  if (request.max_tokens == 0 && !style.echo && !request.prompt_logprobs) {
    return InvalidArgument(
        "max_tokens: found 0, which needs echo or prompt_logprobs; expected at least 1");
  }
  if (options.deepseek_api) DI_RETURN_IF_ERROR(CheckReasoningCameBack(conversation));
  return OkStatus();
}

Status ChatRequest::Encode(const ServedModel& model, const ApiOptions& options) {
  DI_ASSIGN_OR_RETURN(ChatPrompt prompt, EncodeChatPrompt(model, conversation));
  DI_ASSIGN_OR_RETURN(tokens, AnswerTokens::Of(*model.tokenizer));
  request.prompt_ids = std::move(prompt.ids);
  prompt_text = std::move(prompt.text);
  in_thinking = prompt.in_thinking;
  ReadEcho();
  DI_RETURN_IF_ERROR(FitLength(model, "messages", request));
  if (request.max_tokens == 0 && !request.prompt_logprobs) request.prompt_logprobs = 0;
  DI_ASSIGN_OR_RETURN(request.structured, CombineStructure(tools, wish, in_thinking, tokens));
  if (!tools.calls_allowed) request.sampling.banned_token_ids.push_back(tokens.dsml);
  if (options.deepseek_api && in_thinking) DropSampling(request.sampling);
  return OkStatus();
}

void ChatRequest::ReadEcho() {
  const Message& last = conversation.messages.back();
  if (!style.echo || !last.prefix) return;
  for (const ContentPart& part : last.content) echo_content += part.text;
  if (in_thinking) echo_reasoning = last.reasoning_content;
}

Request ChatRequest::TakeRequest() {
  Request taken = request;
  if (!style.return_token_ids) request.prompt_ids = {};
  request.structured = {};
  prompt_text = {};
  tools.callable.clear();
  conversation = {};
  return taken;
}

}  // namespace deepinfer
