#include "tokens/json_fields.h"

#include <algorithm>

#include "base/check.h"

namespace deepinfer {
namespace {

constexpr size_t kMaxShownBytes = 60;

}  // namespace

JsonField JsonField::Member(std::string_view key) const {
  const JsonValue* member = value_ != nullptr && value_->IsObject() ? value_->Find(key) : nullptr;
  return {member, path_.empty() ? std::string(key) : StrCat(path_, ".", key)};
}

JsonField JsonField::Item(size_t idx) const {
  CHECK(value_ != nullptr);
  CHECK_LT(idx, value_->items.size());
  return {&value_->items[idx], StrCat(path_, "[", idx, "]")};
}

Status JsonField::ExpectObject() const {
  if (value_ != nullptr && value_->IsObject()) return OkStatus();
  return Unexpected("an object");
}

StatusOr<std::string> JsonField::AsString() const {
  if (value_ != nullptr && value_->IsString()) return value_->text;
  return Unexpected("a string");
}

StatusOr<std::string> JsonField::RequiredString(std::string_view key) const {
  DI_RETURN_IF_ERROR(ExpectObject());
  return Member(key).AsString();
}

StatusOr<std::string> JsonField::OptionalString(std::string_view key) const {
  const JsonField member = Member(key);
  if (member.absent()) return std::string();
  return member.AsString();
}

StatusOr<std::optional<bool>> JsonField::OptionalBool(std::string_view key) const {
  const JsonField member = Member(key);
  if (member.absent()) return std::optional<bool>();
  if (member.value_->kind != JsonValue::Kind::kBool) return member.Unexpected("true or false");
  return std::optional(member.value_->boolean);
}

StatusOr<std::vector<JsonField>> JsonField::OptionalArray(std::string_view key) const {
  std::vector<JsonField> items;
  const JsonField member = Member(key);
  if (member.absent()) return items;
  if (!member.value_->IsArray()) return member.Unexpected("an array");
  for (size_t i = 0; i < member.value_->items.size(); ++i) items.push_back(member.Item(i));
  return items;
}

Status JsonField::Error(std::string_view what) const {
  return path_.empty() ? InvalidArgument(what) : InvalidArgument(path_, ": ", what);
}

Status JsonField::Unexpected(std::string_view expected) const {
  return Error(StrCat("expected ", expected, ", found ", Found()));
}

std::string JsonField::Found() const {
  if (absent()) return value_ == nullptr ? "nothing" : "null";
  if (!value_->IsString() && value_->kind != JsonValue::Kind::kNumber) {
    return std::string(KindName(value_->kind));
  }
  // Quoted as JSON, so that a message stays one line; cut only between characters.
  std::string_view text = value_->text;
  size_t size = std::min(text.size(), kMaxShownBytes);
  while (size < text.size() && size > 0 && (text[size] & 0xC0) == 0x80) --size;
  std::string shown;
  AppendJsonString(text.substr(0, size), shown);
  return size < text.size() ? shown + "..." : shown;
}

}  // namespace deepinfer
