#include "apps/request_json.h"

#include <algorithm>
#include <array>
#include <utility>

#include "request/field_reader.h"
#include "request/sampling_fields.h"
#include "request/structured_fields.h"
#include "tokens/answer_parser.h"
#include "tokens/conversation_json.h"
#include "tokens/json_fields.h"

namespace deepinfer {
namespace {

// Keys read elsewhere: by ReadConversation, or that only say how an API answers.
constexpr std::array kOtherKeys = std::to_array<std::string_view>(
    {"add_generation_prompt", "best_of", "chat_template_kwargs", "continue_final_message",
     "custom_id", "id", "messages", "model", "prompt", "prompt_token_ids", "reasoning_effort",
     "response_format", "stream", "stream_options", "thinking", "tools", "user"});

// Keys that nobody reads.
std::vector<std::string> IgnoredKeys(const FieldReader& reader) {
  std::vector<std::string> keys;
  for (const JsonMember& member : reader.root().members) {
    const bool known =
        std::find(kOtherKeys.begin(), kOtherKeys.end(), member.key) != kOtherKeys.end() ||
        reader.keys().contains(member.key);
    if (!known) keys.push_back(member.key);
  }
  return keys;
}

Status ReadPrompt(const JsonValue& root, const Thinking& thinking, const LoadedEngine& engine,
                  FieldReader& reader, ParsedRequest& out) {
  const auto has = [&](std::string_view key) {
    const JsonValue* value = root.Find(key);
    return value != nullptr && !value->IsNull();
  };
  if (has("prompt") + has("prompt_token_ids") + has("messages") != 1) {
    return InvalidArgument("expected exactly one of prompt, prompt_token_ids and messages");
  }
  if (has("prompt_token_ids")) {
    reader.Ids("prompt_token_ids", out.request.prompt_ids);
    return reader.status();
  }
  if (has("prompt")) {
    DI_ASSIGN_OR_RETURN(const std::string text,
                        JsonField(root.Find("prompt"), "prompt").AsString());
    DI_ASSIGN_OR_RETURN(out.request.prompt_ids, engine.EncodeText(text));
    return OkStatus();
  }
  DI_ASSIGN_OR_RETURN(const Conversation conversation, ReadConversation(root, thinking));
  DI_ASSIGN_OR_RETURN(EncodedChat chat, engine.EncodeChat(conversation));
  out.request.prompt_ids = std::move(chat.ids);
  out.is_chat = true;
  out.in_thinking = chat.in_thinking;
  return OkStatus();
}

// In a chat that thinks the output is free until the end of thinking.
Status ReadStructure(FieldReader& reader, const LoadedEngine& engine, ParsedRequest& out) {
  DI_ASSIGN_OR_RETURN(StructuredWish wish, ReadStructuredFields(reader));
  if (!wish.field.empty()) out.request.structured = std::move(wish.output);
  if (!out.in_thinking) return OkStatus();
  DI_ASSIGN_OR_RETURN(const AnswerTokens tokens, AnswerTokens::Of(*engine.tokenizer()));
  StartBehindThinking(tokens, out.request.structured);
  return OkStatus();
}

}  // namespace

StatusOr<ParsedRequest> ReadRequest(const JsonValue& root, const Request& defaults,
                                    const Thinking& thinking, const LoadedEngine& engine) {
  if (!root.IsObject()) {
    return InvalidArgument("expected an object, found ", KindName(root.kind));
  }
  ParsedRequest result{.request = defaults};
  FieldReader reader(root);
  DI_RETURN_IF_ERROR(ReadSamplingFields(reader, {}, result.request));
  DI_RETURN_IF_ERROR(ReadPrompt(root, thinking, engine, reader, result));
  DI_RETURN_IF_ERROR(ReadStructure(reader, engine, result));
  result.ignored_keys = IgnoredKeys(reader);
  return result;
}

}  // namespace deepinfer
