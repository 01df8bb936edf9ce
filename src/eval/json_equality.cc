#include "eval/json_equality.h"

#include <algorithm>

#include "base/check.h"

namespace deepinfer {
namespace {

bool SameCall(const ParsedCall& call, const ToolCall& expected) {
  if (call.name_space != expected.name_space || call.name != expected.name) return false;
  const StatusOr<JsonValue> arguments = ParseJson(call.arguments);
  return arguments.ok() && SameJson(*arguments, expected.arguments);
}

}  // namespace

bool IsSameJsonText(std::string_view text, std::string_view expected) {
  const StatusOr<JsonValue> value = ParseJson(text);
  const StatusOr<JsonValue> wanted = ParseJson(expected);
  CHECK(wanted.ok());
  return value.ok() && SameJson(*value, *wanted);
}

bool SameCalls(const std::vector<ParsedCall>& calls, const std::vector<ToolCall>& expected) {
  return std::equal(calls.begin(), calls.end(), expected.begin(), expected.end(), SameCall);
}

}  // namespace deepinfer
