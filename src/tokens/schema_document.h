// tokens/schema_document.h: a JSON Schema as it was given: where its parts are, which keywords they
// may have, and what a $ref means.
//
// An allow-list: a keyword that is not in it is refused by name, with the JSON pointer of its
// schema. Draft 2020-12; also what drafts 6 and 7 spell differently.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokens/json.h"

namespace deepinfer {

// One schema in a document. Valid as long as the document.
struct SchemaRef {
  const JsonValue* node = nullptr;
  std::string pointer;  // "" is the document itself
};

// Keywords of our own begin with this character; no document may have it in a key.
inline constexpr char kOwnMark = '\x01';
inline constexpr std::string_view kAtKeyword =
    "\x01"
    "at";

class SchemaDocument {
 public:
  // Errors: kInvalidArgument for text that is no JSON, or JSON that is no schema;
  // kUnimplemented for an unknown $schema.
  static StatusOr<SchemaDocument> Parse(std::string_view text);
  static StatusOr<SchemaDocument> FromValue(JsonValue value);
  SchemaDocument(SchemaDocument&&) = default;

  SchemaRef root() const { return {root_.get(), ""}; }
  // Whether $ref hides the keywords beside it (draft 7 and before).
  bool ref_stands_alone() const { return ref_stands_alone_; }

  // The schema's keywords are known and have values of the right kind.
  // Errors: kUnimplemented for a keyword that is not supported, kInvalidArgument for a wrong value.
  Status Check(const SchemaRef& schema) const;
  // What a $ref in `from` names. Errors: kInvalidArgument if there is no such place,
  // kUnimplemented if it lies outside of the document.
  StatusOr<SchemaRef> Resolve(const SchemaRef& from, std::string_view ref) const;
  // A schema of our own making, as part of the document; `from` is where messages point. It may
  // have kAtKeyword, and kNotStringsKeyword of schema_conditions.h.
  SchemaRef Own(JsonValue value, const SchemaRef& from);
  // A schema of our own that stands for another one, and back.
  JsonValue At(const SchemaRef& schema);
  const SchemaRef& AtTarget(const JsonValue& number) const;

 private:
  explicit SchemaDocument(JsonValue value) : root_(std::make_unique<JsonValue>(std::move(value))) {}

  std::unique_ptr<JsonValue> root_;
  std::deque<std::unique_ptr<JsonValue>> own_;
  std::deque<SchemaRef> targets_;  // of kAtKeyword
  std::string id_;                 // of the document
  bool ref_stands_alone_ = false;
};

// A part of `schema`: Child(s, "properties", "a") is at <pointer>/properties/a.
SchemaRef Child(const SchemaRef& schema, const JsonValue& node, std::string_view keyword,
                std::string_view key = {});
SchemaRef Child(const SchemaRef& schema, const JsonValue& node, std::string_view keyword,
                size_t idx);

// "at /properties/a: ..." as kUnimplemented and kInvalidArgument.
template <typename... Args>
Status Refused(const SchemaRef& at, const Args&... args) {
  return Unimplemented("at ", at.pointer.empty() ? "/" : at.pointer, ": ", args...);
}
template <typename... Args>
Status Broken(const SchemaRef& at, const Args&... args) {
  return InvalidArgument("at ", at.pointer.empty() ? "/" : at.pointer, ": ", args...);
}

}  // namespace deepinfer
