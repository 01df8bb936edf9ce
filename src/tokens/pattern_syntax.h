// tokens/pattern_syntax.h: a split pattern of tokenizer.json, rewritten for PCRE2.
//
// The patterns are written for Oniguruma. What means the same to both is passed on; what means
// something else is rewritten (\s and \w have other members, \h is a hexadecimal digit, \p{Han} a
// script, ...); whatever is not known to be the same is refused.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace deepinfer {

// Errors: kUnimplemented naming the construct and its byte offset.
StatusOr<std::string> ToPcre2(std::string_view pattern);

}  // namespace deepinfer
