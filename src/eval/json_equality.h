// eval/json_equality.h: whether answers made of JSON mean the same.
#pragma once

#include <string_view>
#include <vector>

#include "tokens/answer_parser.h"
#include "tokens/conversation.h"
#include "tokens/json.h"

namespace deepinfer {

// Whether the text, white space around it apart, is one JSON value equal to the expected one.
bool IsSameJsonText(std::string_view text, std::string_view expected);
// As many calls, in the same order, each with the same name and arguments.
bool SameCalls(const std::vector<ParsedCall>& calls, const std::vector<ToolCall>& expected);

}  // namespace deepinfer
