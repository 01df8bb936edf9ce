// tokens/python_constants.h: a string constant out of Python source text, without running it.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace deepinfer {

// The value of `name = "..."` at the beginning of a line: one string, or several next to each other
// in parentheses, of any quotes, with an optional annotation after the name. Of several such lines
// the last one counts, as in Python. Errors: kInvalidArgument if there is none, or if the value is
// anything else (a prefix as in r"...", an escape other than \n \t \\ \' \" and the end of a line,
// a comment inside, an expression).
StatusOr<std::string> PythonStringConstant(std::string_view source, std::string_view name);

}  // namespace deepinfer
