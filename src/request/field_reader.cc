#include "request/field_reader.h"

namespace deepinfer {

const JsonValue* FieldReader::Find(std::string_view key) {
  if (keys_.find(key) == keys_.end()) keys_.emplace(key);
  const JsonValue* value = root_.Find(key);
  return value == nullptr || value->IsNull() ? nullptr : value;
}

JsonField FieldReader::Field(std::string_view key) { return {Find(key), std::string(key)}; }

void FieldReader::Switch(std::string_view key, bool& out) {
  const JsonValue* value = Find(key);
  if (value == nullptr) return;
  if (value->kind != JsonValue::Kind::kBool) return Complain(key, "true or false");
  out = value->boolean;
}

void FieldReader::Text(std::string_view key, std::string& out) {
  const JsonValue* value = Find(key);
  if (value == nullptr) return;
  if (!value->IsString()) return Complain(key, "a string");
  out = value->text;
}

void FieldReader::Texts(std::string_view key, std::vector<std::string>& out) {
  const JsonValue* value = Find(key);
  if (value == nullptr) return;
  out.clear();
  if (value->IsString()) return out.push_back(value->text);
  bool good = value->IsArray();
  for (const JsonValue& item : value->items) {
    good &= item.IsString();
    out.push_back(item.text);
  }
  if (!good) Complain(key, "a string or an array of strings");
}

void FieldReader::Ids(std::string_view key, std::vector<int32_t>& out) {
  const JsonValue* value = Find(key);
  if (value == nullptr) return;
  out.clear();
  bool good = value->IsArray();
  for (const JsonValue& item : value->items) good &= ReadNumber(item, out.emplace_back());
  if (!good) Complain(key, "an array of token ids");
}

void FieldReader::Bias(std::string_view key, std::vector<std::pair<int32_t, double>>& out) {
  const JsonValue* value = Find(key);
  if (value == nullptr) return;
  out.clear();
  bool good = value->IsObject();
  for (const JsonMember& member : value->members) {
    auto& [id, bias] = out.emplace_back();
    good &= ReadNumber({.kind = JsonValue::Kind::kNumber, .text = member.key}, id);
    good &= ReadNumber(member.value, bias);
  }
  if (!good) Complain(key, "an object of token id: bias");
}

void FieldReader::Complain(std::string_view key, std::string_view expected) {
  Fail(Field(key).Unexpected(expected));
}

void FieldReader::Refuse(std::string_view key, std::string_view why) {
  const JsonField field = Field(key);
  Fail(field.Error(StrCat("found ", field.Found(), ", ", why)));
}

void FieldReader::Fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

}  // namespace deepinfer
