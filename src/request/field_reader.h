// request/field_reader.h: members of one JSON object into the fields of our structs.
//
// Absent and null leave a field as it is. Remembers the first mistake, so that a list of fields
// reads as a list, and which keys were asked for. Errors name the key.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/status.h"
#include "tokens/json.h"
#include "tokens/json_fields.h"

namespace deepinfer {

// Whether the value is a number that fits; a whole one for integral T.
template <typename T>
bool ReadNumber(const JsonValue& value, T& out) {
  if (value.kind != JsonValue::Kind::kNumber) return false;
  const char* end = value.text.data() + value.text.size();
  const auto [stop, error] = std::from_chars(value.text.data(), end, out);
  return error == std::errc() && stop == end;
}

class FieldReader {
 public:
  // `root` outlives this. Requires: root.IsObject().
  explicit FieldReader(const JsonValue& root) : root_(root) {}

  const JsonValue& root() const { return root_; }
  const Status& status() const { return status_; }
  // Keys that were asked for, found or not.
  const std::set<std::string, std::less<>>& keys() const { return keys_; }

  // The member; null if it is absent or null.
  const JsonValue* Find(std::string_view key);
  JsonField Field(std::string_view key);

  // Returns whether the key is there.
  template <typename T>
  bool Number(std::string_view key, T& out) {
    const JsonValue* value = Find(key);
    if (value == nullptr) return false;
    const bool whole = std::is_integral_v<T>;
    if (!ReadNumber(*value, out)) Complain(key, whole ? "a whole number" : "a number");
    return true;
  }
  template <typename T>
  void Number(std::string_view key, std::optional<T>& out) {
    T value{};
    if (Number(key, value)) out = value;
  }
  // As Number, and the value must lie in [least, most].
  template <typename T>
  void Number(std::string_view key, T& out, T least, T most) {
    if (!Number(key, out) || !status_.ok()) return;
    if (!(out >= least && out <= most)) Refuse(key, StrCat("expected ", least, "..", most));
  }
  void Switch(std::string_view key, bool& out);
  void Text(std::string_view key, std::string& out);
  // A string, or an array of them.
  void Texts(std::string_view key, std::vector<std::string>& out);
  void Ids(std::string_view key, std::vector<int32_t>& out);
  // {"token id": bias}
  void Bias(std::string_view key, std::vector<std::pair<int32_t, double>>& out);

  // Remembers a mistake: "<key>: expected <expected>, found <what it is>".
  void Complain(std::string_view key, std::string_view expected);
  // "<key>: found <what it is>, <why>"
  void Refuse(std::string_view key, std::string_view why);
  void Fail(Status status);

 private:
  const JsonValue& root_;
  std::set<std::string, std::less<>> keys_;
  Status status_;
};

}  // namespace deepinfer
