// request/tool_policy.h: which calls an answer may hold: tools, tool_choice, parallel_tool_calls.
//
//   tool_choice  none      no call; the marker of tool-call markup is never sampled
//                auto      calls or text. From the marker on the output must be a block of calls
//                required  at least one call, and nothing but calls
//                a name    {"type": "function", "function": {"name"}}: as required, of this tool
//                allowed   {"type": "allowed_tools", "allowed_tools": {"mode", "tools"}}: auto or
//                          required, of these tools
// Absent: auto if the conversation has tools, else none. parallel_tool_calls: false allows one
// call at most. The prompt shows all tools in every case, so that a choice changes no cached
// prefix.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "request/field_reader.h"
#include "request/structured_fields.h"
#include "tokens/conversation.h"

namespace deepinfer {

struct ToolPolicy {
  bool calls_allowed = false;
  bool required = false;
  bool parallel = true;
  std::vector<const ToolDefinition*> callable;  // of the conversation, in its order
};

// `conversation` outlives the result. Errors: kInvalidArgument starting with the key.
StatusOr<ToolPolicy> ReadToolPolicy(FieldReader& reader, const Conversation& conversation);

// What the output must match, from both wishes. in_thinking: the prompt ends inside thinking.
// Errors: kInvalidArgument if calls and the wish cannot both be had; as CheckStructure.
StatusOr<StructuredOutput> CombineStructure(const ToolPolicy& policy, const StructuredWish& wish,
                                            bool in_thinking, const AnswerTokens& tokens);

}  // namespace deepinfer
