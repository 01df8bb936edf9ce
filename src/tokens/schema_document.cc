#include "tokens/schema_document.h"

#include <algorithm>
#include <utility>

namespace deepinfer {
namespace {

// Values deeper than this are refused; also bounds our recursion over them.
constexpr int kMaxSchemaDepth = 100;

enum class Takes {
  kAnything,  // says nothing about the value
  kSchema,
  kSchemas,    // [schema, ...], at least one
  kSchemaMap,  // {name: schema}
  kItems,      // a schema, or as kSchemas
  kDependencies,
  kCount,
  kNumber,
  kMultiple,
  kBool,
  kString,
  kStrings,
  kStringsMap,
  kType,
  kEnum,
};

struct Keyword {
  std::string_view name;
  Takes takes;
};

constexpr Keyword kKeywords[] = {
    {"$anchor", Takes::kString},
    {"$comment", Takes::kAnything},
    {"$defs", Takes::kAnything},
    {"$ref", Takes::kString},
    {"$schema", Takes::kString},
    {"$vocabulary", Takes::kAnything},
    {"additionalItems", Takes::kSchema},
    {"additionalProperties", Takes::kSchema},
    {"allOf", Takes::kSchemas},
    {"anyOf", Takes::kSchemas},
    {"const", Takes::kAnything},
    {"contains", Takes::kSchema},
    {"contentEncoding", Takes::kAnything},
    {"contentMediaType", Takes::kAnything},
    {"contentSchema", Takes::kAnything},
    {"default", Takes::kAnything},
    {"definitions", Takes::kAnything},
    {"dependencies", Takes::kDependencies},
    {"dependentRequired", Takes::kStringsMap},
    {"dependentSchemas", Takes::kSchemaMap},
    {"deprecated", Takes::kAnything},
    {"description", Takes::kAnything},
    {"else", Takes::kSchema},
    {"enum", Takes::kEnum},
    {"examples", Takes::kAnything},
    {"exclusiveMaximum", Takes::kNumber},
    {"exclusiveMinimum", Takes::kNumber},
    {"format", Takes::kString},
    {"if", Takes::kSchema},
    {"items", Takes::kItems},
    {"maxContains", Takes::kCount},
    {"maxItems", Takes::kCount},
    {"maxLength", Takes::kCount},
    {"maxProperties", Takes::kCount},
    {"maximum", Takes::kNumber},
    {"minContains", Takes::kCount},
    {"minItems", Takes::kCount},
    {"minLength", Takes::kCount},
    {"minProperties", Takes::kCount},
    {"minimum", Takes::kNumber},
    {"multipleOf", Takes::kMultiple},
    {"not", Takes::kSchema},
    {"oneOf", Takes::kSchemas},
    {"pattern", Takes::kString},
    {"patternProperties", Takes::kSchemaMap},
    {"prefixItems", Takes::kSchemas},
    {"properties", Takes::kSchemaMap},
    {"propertyNames", Takes::kSchema},
    {"readOnly", Takes::kAnything},
    {"required", Takes::kStrings},
    {"then", Takes::kSchema},
    {"title", Takes::kAnything},
    {"type", Takes::kType},
    {"unevaluatedItems", Takes::kSchema},
    {"unevaluatedProperties", Takes::kSchema},
    {"uniqueItems", Takes::kBool},
    {"writeOnly", Takes::kAnything},
};

using Kind = JsonValue::Kind;

bool IsSchema(const JsonValue& value) { return value.IsObject() || value.kind == Kind::kBool; }

bool AllStrings(const JsonValue& value) {
  return value.IsArray() && std::all_of(value.items.begin(), value.items.end(),
                                        [](const JsonValue& item) { return item.IsString(); });
}

bool IsTypeName(const JsonValue& value) {
  constexpr std::string_view kNames[] = {"null",   "boolean", "integer", "number",
                                         "string", "array",   "object"};
  return value.IsString() &&
         std::find(std::begin(kNames), std::end(kNames), value.text) != std::end(kNames);
}

// A whole number >= 0, perhaps spelled 2.0.
bool IsCount(const JsonValue& value) {
  if (value.kind != Kind::kNumber) return false;
  const std::string_view text = value.text;
  const size_t dot = text.find('.');
  const std::string_view whole = text.substr(0, dot);
  const bool digits =
      std::all_of(whole.begin(), whole.end(), [](char c) { return c >= '0' && c <= '9'; });
  return digits && (dot == std::string_view::npos || text.substr(dot) == ".0");
}

template <typename Holds>
bool EveryMember(const JsonValue& value, Holds holds) {
  return value.IsObject() && std::all_of(value.members.begin(), value.members.end(),
                                         [&](const JsonMember& m) { return holds(m.value); });
}

bool AllSchemas(const JsonValue& value) {
  return value.IsArray() && !value.items.empty() &&
         std::all_of(value.items.begin(), value.items.end(), IsSchema);
}

// What is expected, if `value` is not that.
std::string_view Expected(Takes takes, const JsonValue& value) {
  const auto unless = [](bool holds, std::string_view expected) {
    return holds ? std::string_view() : expected;
  };
  switch (takes) {
    case Takes::kAnything:
      return "";
    case Takes::kSchema:
      return unless(IsSchema(value), "a schema");
    case Takes::kSchemas:
      return unless(AllSchemas(value), "an array of schemas");
    case Takes::kItems:
      return unless(IsSchema(value) || AllSchemas(value), "a schema or an array of schemas");
    case Takes::kSchemaMap:
      return unless(EveryMember(value, IsSchema), "an object of schemas");
    case Takes::kDependencies:
      return unless(
          EveryMember(value, [](const JsonValue& v) { return IsSchema(v) || AllStrings(v); }),
          "an object of schemas or arrays of names");
    case Takes::kStringsMap:
      return unless(EveryMember(value, AllStrings), "an object of arrays of names");
    case Takes::kCount:
      return unless(IsCount(value), "a whole number of at least 0");
    case Takes::kNumber:
      return unless(value.kind == Kind::kNumber, "a number");
    case Takes::kMultiple:
      return unless(value.kind == Kind::kNumber && value.text[0] != '-', "a number above 0");
    case Takes::kBool:
      return unless(value.kind == Kind::kBool, "true or false");
    case Takes::kString:
      return unless(value.IsString(), "a string");
    case Takes::kStrings:
      return unless(AllStrings(value), "an array of names");
    case Takes::kEnum:
      return unless(value.IsArray(), "an array");
    case Takes::kType:
      break;
  }
  const bool types =
      IsTypeName(value) || (value.IsArray() && !value.items.empty() &&
                            std::all_of(value.items.begin(), value.items.end(), IsTypeName));
  return unless(types, "a type of JSON or an array of them");
}

std::string EscapedKey(std::string_view key) {
  std::string out;
  for (const char c : key) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::string PercentDecoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool coded = text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 &&
                       HexDigit(text[i + 2]) >= 0;
    if (coded) {
      out += static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string UnescapedKey(std::string_view part) {
  std::string out;
  for (size_t i = 0; i < part.size(); ++i) {
    const char next = i + 1 < part.size() ? part[i + 1] : '\0';
    if (part[i] == '~' && (next == '0' || next == '1')) {
      out += next == '0' ? '~' : '/';
      ++i;
    } else {
      out += part[i];
    }
  }
  return out;
}

// The node with this $anchor.
const JsonValue* FindAnchor(const JsonValue& node, std::string_view name, std::string& pointer) {
  const JsonValue* anchor = node.Find("$anchor");
  if (anchor != nullptr && anchor->IsString() && anchor->text == name) return &node;
  const size_t length = pointer.size();
  for (const JsonMember& member : node.members) {
    if (member.key == "enum" || member.key == "const") continue;
    pointer += StrCat("/", EscapedKey(member.key));
    if (const JsonValue* found = FindAnchor(member.value, name, pointer)) return found;
    pointer.resize(length);
  }
  for (size_t i = 0; i < node.items.size(); ++i) {
    pointer += StrCat("/", i);
    if (const JsonValue* found = FindAnchor(node.items[i], name, pointer)) return found;
    pointer.resize(length);
  }
  return nullptr;
}

bool HasOwnMark(const JsonValue& value) {
  return std::any_of(value.items.begin(), value.items.end(), HasOwnMark) ||
         std::any_of(value.members.begin(), value.members.end(), [](const JsonMember& member) {
           return member.key.starts_with(kOwnMark) || HasOwnMark(member.value);
         });
}

// Whether a schema between the root and `pointer` has an $id of its own.
bool CrossesId(const JsonValue& root, std::string_view pointer) {
  const JsonValue* node = &root;
  while (!pointer.empty()) {
    const size_t end = std::min(pointer.find('/', 1), pointer.size());
    const std::string key = UnescapedKey(pointer.substr(1, end - 1));
    pointer.remove_prefix(end);
    if (node->IsArray()) {
      node = &node->items[static_cast<size_t>(std::atoi(key.c_str()))];
    } else {
      node = node->Find(key);
    }
    if (node == nullptr) return false;
    if (node->Find("$id") != nullptr) return true;
  }
  return false;
}

}  // namespace

SchemaRef Child(const SchemaRef& schema, const JsonValue& node, std::string_view keyword,
                std::string_view key) {
  std::string pointer = StrCat(schema.pointer, "/", keyword);
  if (key.data() != nullptr) pointer += StrCat("/", EscapedKey(key));
  return {&node, std::move(pointer)};
}

SchemaRef Child(const SchemaRef& schema, const JsonValue& node, std::string_view keyword,
                size_t idx) {
  return {&node, StrCat(schema.pointer, "/", keyword, "/", idx)};
}

StatusOr<SchemaDocument> SchemaDocument::Parse(std::string_view text) {
  auto value = ParseJson(text, kMaxSchemaDepth);
  if (!value.ok()) return Annotate(value.status(), "the schema is no JSON");
  return FromValue(std::move(value).value());
}

StatusOr<SchemaDocument> SchemaDocument::FromValue(JsonValue value) {
  if (!IsSchema(value)) {
    return InvalidArgument("the schema is ", KindName(value.kind), ", expected an object");
  }
  if (HasOwnMark(value)) {
    return Unimplemented("the schema has a key that begins with U+0001, which is not supported");
  }
  SchemaDocument document(std::move(value));
  if (const JsonValue* id = document.root_->Find("$id"); id != nullptr && id->IsString()) {
    document.id_ = id->text;
  }
  const JsonValue* dialect = document.root_->Find("$schema");
  if (dialect == nullptr || !dialect->IsString()) return document;
  const std::string_view name = dialect->text;
  const auto is = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  document.ref_stands_alone_ = is("draft-06") || is("draft-07");
  if (!document.ref_stands_alone_ && !is("draft/2019-09/schema") && !is("draft/2020-12/schema")) {
    return Unimplemented("at /: the dialect '", name,
                         "' in keyword '$schema' is not supported (2020-12, 2019-09, draft-07 and "
                         "draft-06 are)");
  }
  return document;
}

Status SchemaDocument::Check(const SchemaRef& schema) const {
  for (const JsonMember& member : schema.node->members) {
    if (member.key.starts_with(kOwnMark)) continue;
    if (member.key == "$id") {
      if (schema.node == root_.get()) continue;
      return Refused(schema,
                     "keyword '$id' below the root, which changes what $ref means, is not "
                     "supported");
    }
    const auto known = std::find_if(std::begin(kKeywords), std::end(kKeywords),
                                    [&](const Keyword& k) { return k.name == member.key; });
    if (known == std::end(kKeywords)) {
      return Refused(schema, "keyword '", member.key, "' is not supported");
    }
    const std::string_view expected = Expected(known->takes, member.value);
    if (!expected.empty()) {
      return Broken(schema, "keyword '", member.key, "' is ", KindName(member.value.kind),
                    ", expected ", expected);
    }
  }
  return OkStatus();
}

StatusOr<SchemaRef> SchemaDocument::Resolve(const SchemaRef& from, std::string_view ref) const {
  std::string_view fragment = ref;
  if (!id_.empty() && ref.starts_with(id_)) fragment.remove_prefix(id_.size());
  if (!fragment.empty() && fragment[0] != '#') {
    return Refused(from, "keyword '$ref' to '", ref, "', outside of the schema, is not supported");
  }
  if (!fragment.empty()) fragment.remove_prefix(1);
  const std::string path = PercentDecoded(fragment);
  const Status missing = Broken(from, "keyword '$ref': there is no '", ref, "' in the schema");
  SchemaRef at = root();
  if (!path.empty() && path[0] != '/') {
    at.node = FindAnchor(*root_, path, at.pointer);
    if (at.node == nullptr) return missing;
  } else {
    for (size_t start = 1; start <= path.size();) {
      const size_t end = std::min(path.find('/', start), path.size());
      const std::string key = UnescapedKey(std::string_view(path).substr(start, end - start));
      start = end + 1;
      if (at.node->IsArray()) {
        const bool index = !key.empty() && key.size() < 7 &&
                           key.find_first_not_of("0123456789") == std::string::npos;
        const size_t idx = index ? std::stoul(key) : at.node->items.size();
        if (idx >= at.node->items.size()) return missing;
        at.node = &at.node->items[idx];
      } else {
        at.node = at.node->Find(key);
        if (at.node == nullptr) return missing;
      }
      at.pointer += StrCat("/", EscapedKey(key));
    }
  }
  if (!IsSchema(*at.node)) {
    return Broken(from, "keyword '$ref': '", ref, "' is ", KindName(at.node->kind),
                  ", expected a schema");
  }
  if (CrossesId(*root_, at.pointer)) {
    return Refused(from, "keyword '$ref' into a schema with an $id of its own is not supported");
  }
  return at;
}

JsonValue SchemaDocument::At(const SchemaRef& schema) {
  JsonValue at = JsonValue::Object();
  JsonValue number;
  number.kind = Kind::kNumber;
  number.text = std::to_string(targets_.size());
  at.Set(kAtKeyword, std::move(number));
  targets_.push_back(schema);
  return at;
}

const SchemaRef& SchemaDocument::AtTarget(const JsonValue& number) const {
  return targets_[std::stoul(number.text)];
}

SchemaRef SchemaDocument::Own(JsonValue value, const SchemaRef& from) {
  own_.push_back(std::make_unique<JsonValue>(std::move(value)));
  return {own_.back().get(), from.pointer};
}

}  // namespace deepinfer
