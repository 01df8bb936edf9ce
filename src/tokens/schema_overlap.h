// tokens/schema_overlap.h: whether schemas allow a given value, and whether two of them can have a
// value in common.
#pragma once

#include <vector>

#include "base/status.h"
#include "tokens/schema_facts.h"

namespace deepinfer {

// Errors: as SchemaReader::Read.
StatusOr<bool> Allows(SchemaReader& reader, const Facts& facts, const JsonValue& value);
StatusOr<bool> Allows(SchemaReader& reader, const SchemaSet& set, SchemaView view,
                      const JsonValue& value);

// True: no value that `inside` (view kInside) allows is one that any of `around` (view kAround)
// does. If that takes it, `inside` is narrowed to the properties that it names.
StatusOr<bool> KeepApart(SchemaReader& reader, Facts& inside, const std::vector<Facts>& around);

}  // namespace deepinfer
