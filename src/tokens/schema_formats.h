// tokens/schema_formats.h: the `format`s of JSON Schema that are enforced, each as an expression.
//
// Bounded, and without large counted repetitions over wide classes, so that masks stay quick. Each
// takes no more than its RFC does, and less where that costs nobody: docs/structured_output.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace deepinfer {

// Of the whole string, in the syntax of ParseRegex. nullopt: not enforced, so it is refused.
std::optional<std::string> FormatRegex(std::string_view name);
// "date, date-time, ..." for messages.
std::string FormatNames();

}  // namespace deepinfer
