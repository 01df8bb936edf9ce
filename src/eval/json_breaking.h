// eval/json_breaking.h: JSON with one mistake in it, for exercises that repair it.
#pragma once

#include <string>
#include <string_view>

#include "base/rng.h"

namespace deepinfer {

// One bracket, quote, comma or colon is missing, or one comma or wrong quote too many, such that
// only one repair is sensible. Requires: `json` is an object or an array as DumpJson writes it.
std::string BreakJson(Rng& rng, std::string_view json);

}  // namespace deepinfer
