#include "tokens/json.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "tokens/utf8.h"

namespace deepinfer {
namespace {

// repr(float): the shortest digits that read back as the same number, as a plain decimal while the
// exponent is in [-4, 16), else with an exponent of at least two digits.
std::string PythonFloat(double value) {
  char buffer[40];
  const auto [end, error] =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  const std::string_view shortest(buffer, static_cast<size_t>(end - buffer));  // -d.ddde+dd
  const size_t e = shortest.find('e');
  int exponent = 0;
  const char* exponent_text = shortest.data() + e + (shortest[e + 1] == '+' ? 2 : 1);
  std::from_chars(exponent_text, end, exponent);
  if (exponent < -4 || exponent >= 16) return std::string(shortest);

  std::string out = value < 0 || shortest[0] == '-' ? "-" : "";
  std::string digits;
  for (const char c : shortest.substr(0, e)) {
    if (c >= '0' && c <= '9') digits.push_back(c);
  }
  const int num_digits = static_cast<int>(digits.size());
  if (exponent < 0) {
    out += "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  } else if (num_digits <= exponent + 1) {
    out += digits + std::string(static_cast<size_t>(exponent + 1 - num_digits), '0') + ".0";
  } else {
    out += digits.substr(0, static_cast<size_t>(exponent) + 1) + "." +
           digits.substr(static_cast<size_t>(exponent) + 1);
  }
  return out;
}

// nlohmann's parser calls this for every value; the tree is ours, because its own keeps neither
// long integers nor is it quick with many keys.
class TreeBuilder {
 public:
  using Number = nlohmann::json;

  explicit TreeBuilder(int max_depth) : max_depth_(max_depth) {}

  bool null() { return Place({}); }
  bool boolean(bool value) { return Place({.kind = JsonValue::Kind::kBool, .boolean = value}); }
  bool number_integer(Number::number_integer_t value) { return PlaceNumber(std::to_string(value)); }
  bool number_unsigned(Number::number_unsigned_t value) {
    return PlaceNumber(std::to_string(value));
  }
  bool number_float(double value, const std::string& written) {
    const bool integer = written.find_first_of(".eE") == std::string::npos;
    return PlaceNumber(integer ? written : PythonFloat(value));
  }
  bool string(std::string& value) { return Place(JsonValue::String(std::move(value))); }
  bool binary(Number::binary_t&) { return false; }  // does not occur in text
  bool start_object(size_t) { return Open(JsonValue::Kind::kObject); }
  bool start_array(size_t) { return Open(JsonValue::Kind::kArray); }
  bool end_object() { return Close(); }
  bool end_array() { return Close(); }
  bool key(std::string& key) {
    open_.back().key = std::move(key);
    return true;
  }
  bool parse_error(size_t position, const std::string& /*last_token*/,
                   const nlohmann::json::exception& error) {
    std::string_view what = error.what();
    if (const size_t colon = what.find("syntax error "); colon != what.npos) {
      what.remove_prefix(colon);
    } else if (const size_t bracket = what.find("] "); bracket != what.npos) {
      what.remove_prefix(bracket + 2);
    }
    std::string repaired;  // the library quotes the text up to the byte that broke it
    error_ = StrCat("not JSON at byte ", position, ": ", RepairUtf8(what, repaired));
    return false;
  }

  const std::string& error() const { return error_; }
  JsonValue TakeRoot() { return std::move(root_); }

 private:
  struct OpenValue {
    JsonValue value;
    std::string key;                                  // of the member being read
    std::unordered_map<std::string, size_t> indices;  // key -> member
  };

  bool PlaceNumber(std::string text) {
    return Place({.kind = JsonValue::Kind::kNumber, .text = std::move(text)});
  }
  bool Open(JsonValue::Kind kind) {
    if (static_cast<int>(open_.size()) >= max_depth_) {
      error_ = StrCat("JSON is nested too deep: at most ", max_depth_, " levels are read");
      return false;
    }
    open_.push_back({.value = {.kind = kind}});
    return true;
  }
  bool Close() {
    JsonValue value = std::move(open_.back().value);
    open_.pop_back();
    return Place(std::move(value));
  }
  bool Place(JsonValue value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return true;
    }
    OpenValue& parent = open_.back();
    if (parent.value.IsArray()) {
      parent.value.items.push_back(std::move(value));
      return true;
    }
    auto& members = parent.value.members;
    const auto [known, is_new] = parent.indices.emplace(parent.key, members.size());
    if (is_new) {
      members.push_back({parent.key, std::move(value)});
    } else {
      members[known->second].value = std::move(value);
    }
    return true;
  }

  const int max_depth_;
  JsonValue root_;
  std::vector<OpenValue> open_;
  std::string error_;
};

void Dump(const JsonValue& value, std::string& out) {
  switch (value.kind) {
    case JsonValue::Kind::kNull:
      out += "null";
      break;
    case JsonValue::Kind::kBool:
      out += value.boolean ? "true" : "false";
      break;
    case JsonValue::Kind::kNumber:
      out += value.text;
      break;
    case JsonValue::Kind::kString:
      AppendJsonString(value.text, out);
      break;
    case JsonValue::Kind::kArray:
      out += '[';
      for (size_t i = 0; i < value.items.size(); ++i) {
        if (i > 0) out += ", ";
        Dump(value.items[i], out);
      }
      out += ']';
      break;
    case JsonValue::Kind::kObject:
      out += '{';
      for (size_t i = 0; i < value.members.size(); ++i) {
        if (i > 0) out += ", ";
        AppendJsonString(value.members[i].key, out);
        out += ": ";
        Dump(value.members[i].value, out);
      }
      out += '}';
      break;
  }
}

}  // namespace

JsonValue JsonValue::String(std::string value) {
  return {.kind = Kind::kString, .text = std::move(value)};
}

JsonValue JsonValue::Object() { return {.kind = Kind::kObject}; }

const JsonValue* JsonValue::Find(std::string_view key) const {
  const auto member = std::find_if(members.begin(), members.end(),
                                   [key](const JsonMember& m) { return m.key == key; });
  return member == members.end() ? nullptr : &member->value;
}

void JsonValue::Set(std::string_view key, JsonValue value) {
  const auto member = std::find_if(members.begin(), members.end(),
                                   [key](const JsonMember& m) { return m.key == key; });
  if (member != members.end()) {
    member->value = std::move(value);
  } else {
    members.push_back({std::string(key), std::move(value)});
  }
}

void JsonValue::Remove(std::string_view key) {
  std::erase_if(members, [key](const JsonMember& m) { return m.key == key; });
}

StatusOr<JsonValue> ParseJson(std::string_view text, int max_depth) {
  // nlohmann skips a byte order mark, Python refuses it.
  if (text.starts_with("\xEF\xBB\xBF")) return InvalidArgument("not JSON: byte order mark");
  // It takes a NUL for the end of the text, whatever follows.
  if (const size_t nul = text.find('\0'); nul != text.npos) {
    return InvalidArgument("not JSON at byte ", nul + 1, ": a NUL byte");
  }
  TreeBuilder builder(max_depth);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) {
    return InvalidArgument(builder.error());
  }
  return builder.TakeRoot();
}

std::string DumpJson(const JsonValue& value) {
  std::string out;
  Dump(value, out);
  return out;
}

void AppendJsonString(std::string_view text, std::string& out) {
  constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += {'\\', 'u', '0', '0', kHex[c >> 4], kHex[c & 15]};
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

std::string_view KindName(JsonValue::Kind kind) {
  constexpr std::string_view kNames[] = {"null",     "a boolean", "a number",
                                         "a string", "an array",  "an object"};
  return kNames[static_cast<int>(kind)];
}

}  // namespace deepinfer
