#include "request/chat_prompt.h"

#include <optional>

#include "tokens/control_tokens.h"
#include "tokens/prompt_encoder.h"

namespace deepinfer {
namespace {

constexpr std::string_view kFimBegin = "<｜fim▁begin｜>", kFimHole = "<｜fim▁hole｜>",
                           kFimEnd = "<｜fim▁end｜>";

Status NeedTokenizer(const ServedModel& model) {
  if (model.tokenizer != nullptr) return OkStatus();
  return FailedPrecondition("prompt: ", model.names.front(),
                            " has no tokenizer; it takes token ids only");
}

std::vector<int32_t> Encode(const ServedModel& model, std::string_view text) {
  const std::optional<int32_t> image = model.tokenizer->IdOf(kImageToken);
  EncodeOptions options;
  if (image) options.plain_ids = {&*image, 1};
  return model.tokenizer->Encode(text, options);
}

void Append(const std::vector<int32_t>& more, std::vector<int32_t>& ids) {
  ids.insert(ids.end(), more.begin(), more.end());
}

}  // namespace

StatusOr<ChatPrompt> EncodeChatPrompt(const ServedModel& model, const Conversation& conversation) {
  DI_RETURN_IF_ERROR(NeedTokenizer(model));
  if (model.texts == nullptr) {
    return FailedPrecondition("messages: ", model.names.front(),
                              " has no chat format (encoding/); use /v1/completions");
  }
  DI_ASSIGN_OR_RETURN(const RenderedPrompt rendered, RenderPrompt(conversation, *model.texts));
  if (!rendered.image_urls.empty()) {
    return InvalidArgument("messages: found ", rendered.image_urls.size(),
                           " images; this version takes text only");
  }
  DI_ASSIGN_OR_RETURN(EncodedPrompt encoded, EncodePrompt(rendered, *model.tokenizer));
  return ChatPrompt{std::move(encoded.ids), rendered.Text(), rendered.in_thinking};
}

StatusOr<std::vector<int32_t>> EncodeTextPrompt(const ServedModel& model, std::string_view text,
                                                bool with_bos) {
  DI_RETURN_IF_ERROR(NeedTokenizer(model));
  std::vector<int32_t> ids;
  const std::optional<int32_t> bos = model.tokenizer->IdOf(kBosToken);
  if (with_bos && bos) ids.push_back(*bos);
  Append(Encode(model, text), ids);
  return ids;
}

StatusOr<std::vector<int32_t>> EncodeInfillPrompt(const ServedModel& model, std::string_view prefix,
                                                  std::string_view suffix) {
  DI_RETURN_IF_ERROR(NeedTokenizer(model));
  const std::optional<int32_t> begin = model.tokenizer->IdOf(kFimBegin);
  const std::optional<int32_t> hole = model.tokenizer->IdOf(kFimHole);
  const std::optional<int32_t> end = model.tokenizer->IdOf(kFimEnd);
  if (!begin || !hole || !end) {
    return InvalidArgument("suffix: not supported, ", model.names.front(),
                           " has no fill-in-the-middle tokens");
  }
  DI_ASSIGN_OR_RETURN(std::vector<int32_t> ids, EncodeTextPrompt(model, ""));
  ids.push_back(*begin);
  Append(Encode(model, prefix), ids);
  ids.push_back(*hole);
  Append(Encode(model, suffix), ids);
  ids.push_back(*end);
  return ids;
}

Status CheckTokenIds(const ServedModel& model, const std::vector<int32_t>& ids,
                     std::string_view path) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < model.vocab_size) continue;
    return InvalidArgument(path, "[", i, "]: found id ", ids[i], ", the model has 0..",
                           model.vocab_size - 1);
  }
  return OkStatus();
}

}  // namespace deepinfer
