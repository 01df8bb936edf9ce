// tokens/json_fields.h: a JSON value together with its path, so that every complaint names the
// field.
//
// Absent and null are the same: clients send both for "nothing here".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokens/json.h"

namespace deepinfer {

class JsonField {
 public:
  // `value` may be null (absent) and must outlive this; `path` is empty for the root.
  JsonField(const JsonValue* value, std::string path) : value_(value), path_(std::move(path)) {}

  const JsonValue* value() const { return value_; }
  bool absent() const { return value_ == nullptr || value_->IsNull(); }
  JsonField Member(std::string_view key) const;  // absent if there is none, or if this is no object
  JsonField Item(size_t idx) const;              // Requires: this is an array with that item

  // All errors are kInvalidArgument.
  Status ExpectObject() const;
  StatusOr<std::string> AsString() const;
  StatusOr<std::string> RequiredString(std::string_view key) const;
  StatusOr<std::string> OptionalString(std::string_view key) const;  // "" if absent
  StatusOr<std::optional<bool>> OptionalBool(std::string_view key) const;
  StatusOr<std::vector<JsonField>> OptionalArray(std::string_view key) const;  // {} if absent

  Status Error(std::string_view what) const;
  // "<path>: expected <expected>, found <what it is>"
  Status Unexpected(std::string_view expected) const;
  std::string Found() const;

 private:
  const JsonValue* value_;
  std::string path_;
};

}  // namespace deepinfer
