#include "request/token_fields.h"

#include "request/body_fields.h"
#include "request/chat_prompt.h"
#include "tokens/conversation_json.h"

namespace deepinfer {
namespace {

Status NeedTokenizer(const ServedModel& model) {
  if (model.tokenizer != nullptr) return OkStatus();
  return FailedPrecondition("model: ", model.names.front(), " has no tokenizer");
}

}  // namespace

StatusOr<TokenizeRequest> ReadTokenize(FieldReader& reader, const ServedModel& model) {
  DI_RETURN_IF_ERROR(NeedTokenizer(model));
  std::string name;
  DI_RETURN_IF_ERROR(ReadModelName(reader, model, name));
  TokenizeRequest request;
  bool with_bos = true;
  reader.Switch("add_special_tokens", with_bos);
  reader.Switch("return_token_strs", request.with_texts);
  int num_given = 0;
  std::string text;
  for (const std::string_view key : {"prompt", "content"}) {
    if (reader.Find(key) == nullptr) continue;
    reader.Text(key, text);
    ++num_given;
  }
  const bool is_chat = reader.Find("messages") != nullptr;
  DI_RETURN_IF_ERROR(reader.status());
  if (num_given + (is_chat ? 1 : 0) != 1) {
    return InvalidArgument("prompt: expected exactly one of prompt, content and messages");
  }
  if (is_chat) {
    DI_ASSIGN_OR_RETURN(const Conversation conversation,
                        ReadConversation(reader.root(), model.thinking));
    DI_ASSIGN_OR_RETURN(ChatPrompt prompt, EncodeChatPrompt(model, conversation));
    request.ids = std::move(prompt.ids);
  } else {
    DI_ASSIGN_OR_RETURN(request.ids, EncodeTextPrompt(model, text, with_bos));
  }
  return request;
}

StatusOr<std::vector<int32_t>> ReadDetokenize(FieldReader& reader, const ServedModel& model) {
  DI_RETURN_IF_ERROR(NeedTokenizer(model));
  std::string name;
  DI_RETURN_IF_ERROR(ReadModelName(reader, model, name));
  std::vector<int32_t> ids;
  if (reader.Find("tokens") == nullptr) reader.Complain("tokens", "an array of token ids");
  reader.Ids("tokens", ids);
  DI_RETURN_IF_ERROR(reader.status());
  DI_RETURN_IF_ERROR(CheckTokenIds(model, ids, "tokens"));
  return ids;
}

}  // namespace deepinfer
