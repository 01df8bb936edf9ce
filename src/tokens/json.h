// tokens/json.h: JSON values read and printed the way Python's json module does.
//
// Prompts carry JSON (tool schemas, call arguments), and the model was trained on Python's
// spelling: ", " and ": " between, characters as they are, floats as repr() writes them, whole
// numbers digit for digit, members in their order. Of a repeated key the last value stays, at the
// place of the first. Unlike Python this refuses NaN, Infinity, numbers beyond F64's range and half
// surrogate pairs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace deepinfer {

struct JsonMember;

struct JsonValue {
  enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  bool boolean = false;
  std::string text;                 // kString: the value. kNumber: as Python prints it
  std::vector<JsonValue> items;     // kArray
  std::vector<JsonMember> members;  // kObject, keys are unique

  static JsonValue String(std::string value);
  static JsonValue Object();

  bool IsNull() const { return kind == Kind::kNull; }
  bool IsString() const { return kind == Kind::kString; }
  bool IsArray() const { return kind == Kind::kArray; }
  bool IsObject() const { return kind == Kind::kObject; }
  // The member's value, null if there is none or this is no object.
  const JsonValue* Find(std::string_view key) const;
  // Replaces a member's value, or appends the member. Requires: IsObject().
  void Set(std::string_view key, JsonValue value);
  void Remove(std::string_view key);
};

struct JsonMember {
  std::string key;
  JsonValue value;
};

// Nesting beyond this is refused, so that recursion over values stays shallow.
inline constexpr int kMaxJsonDepth = 256;

// Errors: kInvalidArgument with the position and what was expected there, or if values are nested
// deeper than max_depth.
StatusOr<JsonValue> ParseJson(std::string_view text, int max_depth = kMaxJsonDepth);

// Equal as JSON: numbers by their exact value (12 = 12.0), members in any order, items in theirs.
bool SameJson(const JsonValue& a, const JsonValue& b);

// json.dumps(value, ensure_ascii=False)
std::string DumpJson(const JsonValue& value);
// Appends a quoted JSON string, without escaping what is not ASCII.
void AppendJsonString(std::string_view text, std::string& out);
// "null", "a boolean", "a number", ... for messages.
std::string_view KindName(JsonValue::Kind kind);

}  // namespace deepinfer
