// eval/real_tools.h: uses of tool definitions that somebody else published (Material::tools).
#pragma once

#include <optional>
#include <string_view>

#include "base/rng.h"
#include "eval/tool_catalogue.h"

namespace deepinfer {

// None if the text is not an object with a name, or if a required argument is of a kind that a
// request cannot spell (an object, an array of anything but strings).
std::optional<ToolDefinition> ReadRealTool(std::string_view json_text);
// Arguments after the schema: all required ones and a few of the others. The request names every
// argument with its value. None if there would be no argument, or more than four.
std::optional<ToolUse> DrawRealUse(Rng& rng, const ToolDefinition& tool);

}  // namespace deepinfer
