#include "eval/json_equality.h"

#include <algorithm>
#include <charconv>

#include "base/check.h"

namespace deepinfer {
namespace {

double NumberOf(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  CHECK(error == std::errc());  // JsonValue holds what Python prints, within F64's range
  return value;
}

// Whole numbers beyond F64's precision are the same only as texts.
bool SameNumber(const std::string& a, const std::string& b) {
  constexpr double kExactMax = 9007199254740992;
  if (a == b) return true;
  const double value = NumberOf(a);
  return value == NumberOf(b) && value < kExactMax && value > -kExactMax;
}

bool SameMembers(const JsonValue& a, const JsonValue& b) {
  return a.members.size() == b.members.size() &&
         std::all_of(a.members.begin(), a.members.end(), [&](const JsonMember& member) {
           const JsonValue* const other = b.Find(member.key);
           return other != nullptr && SameJson(member.value, *other);
         });
}

bool SameCall(const ParsedCall& call, const ToolCall& expected) {
  if (call.name_space != expected.name_space || call.name != expected.name) return false;
  const StatusOr<JsonValue> arguments = ParseJson(call.arguments);
  return arguments.ok() && SameJson(*arguments, expected.arguments);
}

}  // namespace

bool SameJson(const JsonValue& a, const JsonValue& b) {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case JsonValue::Kind::kNull:
      return true;
    case JsonValue::Kind::kBool:
      return a.boolean == b.boolean;
    case JsonValue::Kind::kNumber:
      return SameNumber(a.text, b.text);
    case JsonValue::Kind::kString:
      return a.text == b.text;
    case JsonValue::Kind::kArray:
      return std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), SameJson);
    case JsonValue::Kind::kObject:
      return SameMembers(a, b);
  }
  return false;
}

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
