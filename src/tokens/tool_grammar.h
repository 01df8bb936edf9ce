// tokens/tool_grammar.h: calls of given tools as a grammar, in the markup of model.md 5.3.
//
// The text of StructuredOutput::Kind::kToolCalls is JSON:
//   {"tools": [{"name": "ns::f", "parameters": SCHEMA or null, "strict": bool}, ...],
//    "required": bool,   the output is a block of calls
//    "parallel": bool,   false: one call at most; absent: true
//    "content": null, {"schema": SCHEMA} or {"json_object": true}}   what else the output may be
// With trigger_token_ids (the marker of calls) the grammar starts right behind the marker of the
// block's opening tag; "required" and "content" then say nothing. Without, it starts with the
// output: a block, or content.
//
// The marker counts only as its own token: text that spells it is text. Up to five parameters come
// in any order, more of them, or counted ones, in the schema's. A schema that cannot be enforced:
// with "strict" the tool is refused, else any parameters are allowed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace deepinfer {

// dsml_id: the marker. Errors: kInvalidArgument for broken JSON or a name that the markup cannot
// carry, kUnimplemented for a strict schema or content that cannot be enforced, naming the tool.
StatusOr<std::string> ToolCallGrammar(std::string_view text, bool behind_marker, int32_t dsml_id);

}  // namespace deepinfer
