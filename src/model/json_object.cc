#include "model/json_object.h"

#include <nlohmann/json.hpp>

#include "base/log.h"

namespace deepinfer {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 256;  // printing a value takes stack for each level

// Whether brackets nest deeper than kMaxDepth. (The library's own hook for this walks an object's
// members again after every one of them: minutes for a header of a hundred thousand tensors.)
bool IsTooDeep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      i += c == '\\' ? 1 : 0;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxDepth) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

std::string RangeText(int64_t min, int64_t max) {
  return StrCat("an integer in [", min, ", ", max, "]");
}

}  // namespace

std::string ShortText(const json& value) {
  constexpr size_t kMaxChars = 60;
  // ASCII, so that it can be cut anywhere.
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > kMaxChars) text = text.substr(0, kMaxChars) + "...";
  return text;
}

std::optional<int64_t> AsInteger(const json& value) {
  if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{INT64_MAX}) return {};
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_number_float()) return {};
  const double number = value.get<double>();
  constexpr double kExactBelow = 9007199254740992.0;  // 2^53
  if (number != std::floor(number) || std::fabs(number) > kExactBelow) return {};
  return static_cast<int64_t>(number);
}

Status ParseJsonText(std::string_view text, std::string_view where, nlohmann::json* out) {
  // The library takes a NUL for the end of the text, whatever follows.
  if (const size_t nul = text.find('\0'); nul != text.npos) {
    return InvalidArgument(where, ": not JSON: broken at byte ", nul + 1, " of ", text.size());
  }
  if (IsTooDeep(text)) return InvalidArgument(where, ": nested deeper than ", kMaxDepth, " levels");
  try {
    *out = json::parse(text);
  } catch (const json::parse_error& error) {
    return InvalidArgument(where, ": not JSON: broken at byte ", error.byte, " of ", text.size());
  } catch (const json::out_of_range&) {
    return InvalidArgument(where, ": a number is too large for 64-bit floating point");
  }
  return OkStatus();
}

Status ReadJsonObject(Disk& disk, const std::string& path, nlohmann::json* out) {
  DI_ASSIGN_OR_RETURN(const std::string text, disk.ReadText(path));
  DI_RETURN_IF_ERROR(ParseJsonText(text, path, out));
  if (!out->is_object()) return InvalidArgument(path, ": an object was expected");
  return OkStatus();
}

bool JsonObject::Has(std::string_view key) const {
  const auto at = object_.find(key);
  return at != object_.end() && !at->is_null();
}

bool JsonObject::Contains(std::string_view key) const { return object_.contains(key); }

std::string JsonObject::Show(std::string_view key) const {
  const auto at = object_.find(key);
  return at == object_.end() ? "nothing" : ShortText(*at);
}

void JsonObject::Fail(std::string_view key, std::string_view expected, std::string_view found) {
  if (!ok()) return;
  *status_ = InvalidArgument(prefix_, key, ": expected ", expected, ", found ", found);
}

const json* JsonObject::Find(std::string_view key) {
  if (!ok()) return nullptr;
  asked_.insert(std::string(key));
  const auto at = object_.find(key);
  if (at != object_.end()) return &*at;
  *status_ = InvalidArgument(prefix_, key, ": missing");
  return nullptr;
}

void JsonObject::Read(std::string_view key, int64_t* out, int64_t min, int64_t max) {
  const json* value = Find(key);
  if (value == nullptr) return;
  const std::optional<int64_t> number = AsInteger(*value);
  if (!number || *number < min || *number > max) {
    return Fail(key, RangeText(min, max), ShortText(*value));
  }
  *out = *number;
}

void JsonObject::Read(std::string_view key, int32_t* out, int64_t min, int64_t max) {
  int64_t wide = *out;
  Read(key, &wide, min, std::min<int64_t>(max, INT32_MAX));
  *out = static_cast<int32_t>(wide);
}

void JsonObject::Read(std::string_view key, double* out, double min, double max) {
  const json* value = Find(key);
  if (value == nullptr) return;
  const double number = value->is_number() ? value->get<double>() : NAN;
  if (!(number >= min && number <= max)) {
    return Fail(key, StrCat("a number in [", min, ", ", max, "]"), ShortText(*value));
  }
  *out = number;
}

void JsonObject::Read(std::string_view key, bool* out) {
  const json* value = Find(key);
  if (value == nullptr) return;
  if (!value->is_boolean()) return Fail(key, "true or false", ShortText(*value));
  *out = value->get<bool>();
}

void JsonObject::Read(std::string_view key, std::string* out) {
  const json* value = Find(key);
  if (value == nullptr) return;
  if (!value->is_string()) return Fail(key, "a text", ShortText(*value));
  *out = value->get<std::string>();
}

template <typename Int>
void JsonObject::ReadList(std::string_view key, std::vector<Int>* out, int64_t min, int64_t max) {
  const json* value = Find(key);
  if (value == nullptr) return;
  if (!value->is_array()) return Fail(key, "a list of integers", ShortText(*value));
  out->clear();
  for (const json& item : *value) {
    const std::optional<int64_t> number = AsInteger(item);
    if (!number || *number < min || *number > max) {
      return Fail(StrCat(key, "[", out->size(), "]"), RangeText(min, max), ShortText(item));
    }
    out->push_back(static_cast<Int>(*number));
  }
}

void JsonObject::Read(std::string_view key, std::vector<int32_t>* out, int64_t min, int64_t max) {
  ReadList(key, out, min, std::min<int64_t>(max, INT32_MAX));
}

void JsonObject::Read(std::string_view key, std::vector<int64_t>* out, int64_t min, int64_t max) {
  ReadList(key, out, min, max);
}

void JsonObject::Read(std::string_view key, std::vector<double>* out, double min, double max) {
  const json* value = Find(key);
  if (value == nullptr) return;
  if (!value->is_array()) return Fail(key, "a list of numbers", ShortText(*value));
  out->clear();
  for (const json& item : *value) {
    const double number = item.is_number() ? item.get<double>() : NAN;
    if (!(number >= min && number <= max)) {
      return Fail(StrCat(key, "[", out->size(), "]"), StrCat("a number in [", min, ", ", max, "]"),
                  ShortText(item));
    }
    out->push_back(number);
  }
}

void JsonObject::Expect(std::string_view key, const json& expected) {
  const json* value = Find(key);
  if (value == nullptr || *value == expected) return;
  Fail(key, StrCat(ShortText(expected), " (the only value supported)"), ShortText(*value));
}

void JsonObject::ExpectIfPresent(std::string_view key, const json& expected) {
  if (Contains(key)) Expect(key, expected);
}

void JsonObject::Ignore(std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) asked_.insert(std::string(key));
}

std::optional<JsonObject> JsonObject::Child(std::string_view key) {
  const json* value = Find(key);
  if (value == nullptr) return {};
  if (!value->is_object()) {
    Fail(key, "an object", ShortText(*value));
    return {};
  }
  return JsonObject(*value, status_, StrCat(prefix_, key, "."));
}

void JsonObject::Finish(bool strict) {
  if (!ok()) return;
  std::vector<std::string> unknown;
  for (const auto& item : object_.items()) {
    if (!asked_.contains(item.key())) unknown.push_back(item.key());
  }
  if (unknown.empty()) return;
  std::string line =
      StrCat(prefix_, unknown.front(), ": unknown key, whose effect on the model is not known");
  if (unknown.size() > 1) line += StrCat(" (and ", unknown.size() - 1, " more unknown keys)");
  if (strict) {
    *status_ = InvalidArgument(line);
  } else {
    LogWarning(line, "; ignored");
  }
}

}  // namespace deepinfer
