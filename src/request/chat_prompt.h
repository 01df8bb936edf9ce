// request/chat_prompt.h: conversations and texts to token ids, with the served model's tokenizer.
//
// Threads: any; everything used is immutable.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "request/engine_client.h"
#include "tokens/conversation.h"

namespace deepinfer {

struct ChatPrompt {
  std::vector<int32_t> ids;
  std::string text;          // what the ids stand for
  bool in_thinking = false;  // the answer begins inside the thinking that the prompt opened
};

// Errors: kFailedPrecondition if the model has no tokenizer or no chat format; kInvalidArgument for
// images, which are not taken yet; as RenderPrompt.
StatusOr<ChatPrompt> EncodeChatPrompt(const ServedModel& model, const Conversation& conversation);

// BOS, where the model has one, and the text as it stands; control tokens spelled in it are control
// tokens, but for the image placeholder. Errors: kFailedPrecondition without a tokenizer.
StatusOr<std::vector<int32_t>> EncodeTextPrompt(const ServedModel& model, std::string_view text,
                                                bool with_bos = true);
// The text to be written between prefix and suffix. Errors: kInvalidArgument if the model has no
// tokens for that.
StatusOr<std::vector<int32_t>> EncodeInfillPrompt(const ServedModel& model, std::string_view prefix,
                                                  std::string_view suffix);
// Errors: kInvalidArgument naming the first id that is none of the model's, after `path`.
Status CheckTokenIds(const ServedModel& model, const std::vector<int32_t>& ids,
                     std::string_view path);

}  // namespace deepinfer
