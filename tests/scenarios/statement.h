// tests/scenarios/statement.h: the lines of a scenario, taken apart. What they mean is
// scenario.cc's business.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace deepinfer::scenarios {

// "add a prompt=24 output=3": verb, names, values. "step => a[0:16)": verb, expected.
struct Statement {
  int line = 0;  // from 1
  std::string verb;
  std::vector<std::string> names;
  std::map<std::string, std::string> values;
  std::optional<std::string> expected;  // words with one space between them
};

// Statements end at ';' or with their line; '#' begins a comment.
std::vector<Statement> ParseStatements(std::string_view text);

// Takes a value out of the statement; `fallback` if it is not there.
// Errors: kInvalidArgument if it is no whole number.
StatusOr<int32_t> TakeNumber(Statement& statement, const std::string& key, int32_t fallback);
std::string TakeText(Statement& statement, const std::string& key, std::string_view fallback);
// Errors: kInvalidArgument naming what was not taken, or if there are not `num_names` names.
Status CheckAllTaken(const Statement& statement, size_t num_names);

}  // namespace deepinfer::scenarios
