// tokens/prompt_encoder.h: a conversation becomes the token ids that the model was trained to
// answer.
//
// DeepSeek-V4.1's own prompt format (it has no Jinja template). In short: BOS, system text with
// effort and tools, then turns. Tool results are part of user turns, in the order of the calls;
// neighbouring user and tool messages are one turn; every turn to be answered ends with the
// assistant header and the opened or closed thinking. For text without control strings the ids are
// those of DeepSeek's encoder and tokenizer. Control strings inside text stay text; the image
// placeholder inside text is refused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "tokens/conversation.h"
#include "tokens/prompt_segments.h"
#include "tokens/prompt_texts.h"
#include "tokens/tokenizer.h"

namespace deepinfer {

struct RenderedPrompt {
  std::vector<PromptSegment> segments;
  std::vector<std::string> image_urls;  // one for each kImage segment, in that order
  bool in_thinking = false;  // the answer begins inside the thinking that the prompt opened

  std::string Text() const { return TextOf(segments); }
};

struct EncodedPrompt {
  std::vector<int32_t> ids;
  std::vector<int64_t> image_idxs;  // where each image's one placeholder id stands in `ids`
};

// Errors: kInvalidArgument starting with the field's path, kFailedPrecondition if the conversation
// has tools or a schema and texts.refusal says no.
StatusOr<RenderedPrompt> RenderPrompt(const Conversation& conversation, const PromptTexts& texts);

// Errors: kFailedPrecondition if the tokenizer lacks a control token.
StatusOr<EncodedPrompt> EncodePrompt(const RenderedPrompt& prompt, const Tokenizer& tokenizer);

}  // namespace deepinfer
