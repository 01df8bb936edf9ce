// tokens/grammar_text.h: a StructuredOutput, checked and rewritten into the grammar library's EBNF.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "deepinfer/structured_output.h"

namespace deepinfer {

inline constexpr int64_t kMaxStructuredTextBytes = 2 << 20;

// dsml_id: what tool calls are marked with.
// Errors: kInvalidArgument for broken text, kUnimplemented for what cannot be enforced.
StatusOr<std::string> GrammarTextOf(const StructuredOutput& structured, int32_t dsml_id);

}  // namespace deepinfer
