// eval/tool_results.h: what made-up tools answer, and how that is told to the user.
#pragma once

#include <string>

#include "base/rng.h"

namespace deepinfer {

struct ToolResult {
  std::string json;      // what the tool returns
  std::string sentence;  // what the user is told: "The price is 12.5."
};

// asks: the tool was to find something out; otherwise it was to do something.
ToolResult DrawToolResult(Rng& rng, bool asks);

}  // namespace deepinfer
