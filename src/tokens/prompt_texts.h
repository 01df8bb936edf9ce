// tokens/prompt_texts.h: the fixed texts of a checkpoint's chat prompt, read from its encoding/
// folder.
//
// Two texts are the checkpoint's own: how tools are introduced and how a response schema is. They
// come from one of two files:
//   encoding/encoding.py          DeepSeek's own encoder. Its constants TOOLS_TEMPLATE and
//                                 response_format_template are taken; nothing is executed.
//   encoding/prompt_texts.json    for checkpoints of ours:
//     {"format": 1, "tools_template": "...", "response_format_template": "..."}
// Both hold Python format strings: "{{" and "}}" are braces, {tool_schemas} (one JSON object a
// line) and {schema} are what is filled in. tools_template may use the fields dsml_token,
// tc_block_name, tool_call_tag_name, tool_parameter_tag_name, thinking_start_token,
// thinking_end_token.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/disk.h"
#include "base/status.h"
#include "tokens/prompt_segments.h"

namespace deepinfer {

// What stands before and after the one thing that is filled in.
struct PromptTemplate {
  std::vector<PromptSegment> before;
  std::vector<PromptSegment> after;
};

struct PromptTexts {
  PromptTemplate tools;
  PromptTemplate response_format;
  // Not empty: why prompts with tools or a response schema are refused.
  std::string refusal;
};

struct PromptTextsOptions {
  // The checkpoint has DeepSeek's tokenizer, so the texts must be DeepSeek's too: those that the
  // model was trained on. Texts with another digest set PromptTexts::refusal.
  bool official = false;
  // Take them even so.
  bool unchecked = false;
};

// Errors: kNotFound without encoding/ or without either file in it, kInvalidArgument for a file
// that cannot be read as described.
StatusOr<PromptTexts> LoadPromptTexts(Disk& disk, const std::string& checkpoint_directory,
                                      const PromptTextsOptions& options = {});

// The same from the text of either file. `where` names it in messages.
StatusOr<PromptTexts> ParseEncodingPy(std::string_view python, std::string_view where);
StatusOr<PromptTexts> ParsePromptTextsJson(std::string_view json, std::string_view where);

// One line naming the text that is not DeepSeek's, empty if both are.
std::string OfficialDigestMismatch(const PromptTexts& texts);

}  // namespace deepinfer
