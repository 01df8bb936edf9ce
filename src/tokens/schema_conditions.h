// tokens/schema_conditions.h: not, if/then/else and dependencies, said with anyOf, allOf and plain
// keywords.
//
// What comes out allows no more than what went in, and sometimes less: the opposite of a schema is
// put together from the opposites of its keywords, and those that have none are left out.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokens/schema_document.h"

namespace deepinfer {

// Only in schemas of our own: a string that is none of these.
inline constexpr std::string_view kNotStringsKeyword =
    "\x01"
    "strings";

// One schema for each condition that `schema` has, all of which must hold.
// Errors: kUnimplemented for a `not` or `if` without an opposite; as SchemaDocument::Check.
StatusOr<std::vector<JsonValue>> PlainConditions(SchemaDocument& document, const SchemaRef& schema);

}  // namespace deepinfer
