#include "tokens/schema_conditions.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace deepinfer {
namespace {

using Kind = JsonValue::Kind;

JsonValue Array(std::vector<JsonValue> items) {
  JsonValue array;
  array.kind = Kind::kArray;
  array.items = std::move(items);
  return array;
}

JsonValue Bool(bool value) {
  JsonValue out;
  out.kind = Kind::kBool;
  out.boolean = value;
  return out;
}

JsonValue Number(int64_t value) {
  JsonValue out;
  out.kind = Kind::kNumber;
  out.text = std::to_string(value);
  return out;
}

JsonValue Object(std::vector<JsonMember> members) {
  JsonValue object = JsonValue::Object();
  object.members = std::move(members);
  return object;
}

JsonValue OfType(std::string_view type, std::vector<JsonMember> members) {
  members.insert(members.begin(), {"type", JsonValue::String(std::string(type))});
  return Object(std::move(members));
}

JsonValue Strings(const std::vector<std::string>& texts) {
  std::vector<JsonValue> items;
  for (const std::string& text : texts) items.push_back(JsonValue::String(text));
  return Array(std::move(items));
}

JsonValue AnyOf(std::vector<JsonValue> some) {
  if (some.empty()) return Bool(false);
  return Object({{"anyOf", Array(std::move(some))}});
}
JsonValue AllOf(std::vector<JsonValue> all) { return Object({{"allOf", Array(std::move(all))}}); }

JsonValue Lacks(const std::string& name) {
  return OfType("object", {{"properties", Object({{name, Bool(false)}})}});
}

// All types but these; "integer" takes "number" along.
std::optional<JsonValue> TypesBut(const std::vector<std::string>& types) {
  std::vector<std::string> rest;
  for (const std::string name : {"null", "boolean", "number", "string", "array", "object"}) {
    const bool without = std::any_of(types.begin(), types.end(), [&](const std::string& type) {
      return type == name || (type == "integer" && name == "number");
    });
    if (!without) rest.push_back(name);
  }
  if (rest.empty()) return std::nullopt;
  return Object({{"type", Strings(rest)}});
}

// Schemas of values other than this one, any of which may hold.
std::vector<JsonValue> OtherThan(const JsonValue& value) {
  std::vector<JsonValue> ways;
  std::string type(value.IsNull() ? "null" : "object");
  switch (value.kind) {
    case Kind::kBool:
      type = "boolean";
      ways.push_back(Object({{"const", Bool(!value.boolean)}}));
      break;
    case Kind::kNumber:
      type = "number";
      ways.push_back(OfType("number", {{"exclusiveMaximum", value}}));
      ways.push_back(OfType("number", {{"exclusiveMinimum", value}}));
      break;
    case Kind::kString:
      type = "string";
      ways.push_back(OfType("string", {{std::string(kNotStringsKeyword), Array({value})}}));
      break;
    case Kind::kArray:
      type = "array";
      ways.push_back(OfType("array", {{"maxItems", Number(0)}}));
      if (value.items.empty()) ways.back() = OfType("array", {{"minItems", Number(1)}});
      break;
    case Kind::kObject:
      ways.push_back(OfType("object", {{"maxProperties", Number(0)}}));
      if (value.members.empty()) ways.back() = OfType("object", {{"minProperties", Number(1)}});
      break;
    case Kind::kNull:
      break;
  }
  if (auto others = TypesBut({type})) ways.push_back(*std::move(others));
  return ways;
}

class Opposite {
 public:
  explicit Opposite(SchemaDocument& document) : document_(document) {}

  // Schemas any of which may hold where `schema` does not. Some may be missing.
  StatusOr<std::vector<JsonValue>> Of(const SchemaRef& schema, int depth = 0);

 private:
  StatusOr<std::vector<JsonValue>> OfParts(const SchemaRef& schema, std::string_view keyword,
                                           int depth);
  StatusOr<std::vector<JsonValue>> OfObjects(const SchemaRef& schema, int depth);
  static std::vector<JsonValue> OfLimits(const JsonValue& node);

  SchemaDocument& document_;
};

StatusOr<std::vector<JsonValue>> Opposite::Of(const SchemaRef& schema, int depth) {
  if (depth > 20) return Refused(schema, "keyword 'not' nested this deep is not supported");
  const JsonValue& node = *schema.node;
  std::vector<JsonValue> ways;
  if (node.kind == Kind::kBool) {
    if (!node.boolean) ways.push_back(Bool(true));
    return ways;
  }
  DI_RETURN_IF_ERROR(document_.Check(schema));
  const auto add = [&](std::vector<JsonValue> more) {
    ways.insert(ways.end(), std::make_move_iterator(more.begin()),
                std::make_move_iterator(more.end()));
  };
  if (const JsonValue* ref = node.Find("$ref")) {
    DI_ASSIGN_OR_RETURN(const SchemaRef target, document_.Resolve(schema, ref->text));
    DI_ASSIGN_OR_RETURN(auto of_target, Of(target, depth + 1));
    add(std::move(of_target));
    if (document_.ref_stands_alone()) return ways;
  }
  if (const JsonValue* type = node.Find("type")) {
    std::vector<std::string> names{type->text};
    for (const JsonValue& name : type->items) names.push_back(name.text);
    if (auto others = TypesBut(names)) ways.push_back(*std::move(others));
  }
  if (const JsonValue* value = node.Find("const")) add(OtherThan(*value));
  if (const JsonValue* values = node.Find("enum")) {
    std::vector<JsonValue> all;
    for (const JsonValue& value : values->items) all.push_back(AnyOf(OtherThan(value)));
    ways.push_back(all.empty() ? Bool(true) : AllOf(std::move(all)));
  }
  add(OfLimits(node));
  if (const JsonValue* inner = node.Find("not")) {
    ways.push_back(document_.At(Child(schema, *inner, "not")));
  }
  if (const JsonValue* parts = node.Find("allOf")) {
    for (size_t i = 0; i < parts->items.size(); ++i) {
      DI_ASSIGN_OR_RETURN(auto part, Of(Child(schema, parts->items[i], "allOf", i), depth + 1));
      add(std::move(part));
    }
  }
  DI_ASSIGN_OR_RETURN(auto any, OfParts(schema, "anyOf", depth));
  add(std::move(any));
  DI_ASSIGN_OR_RETURN(auto one, OfParts(schema, "oneOf", depth));
  add(std::move(one));
  DI_ASSIGN_OR_RETURN(auto objects, OfObjects(schema, depth));
  add(std::move(objects));
  return ways;
}

// None of the branches holds. Of oneOf that is one way not to hold.
StatusOr<std::vector<JsonValue>> Opposite::OfParts(const SchemaRef& schema,
                                                   std::string_view keyword, int depth) {
  std::vector<JsonValue> ways;
  const JsonValue* parts = schema.node->Find(keyword);
  if (parts == nullptr) return ways;
  std::vector<JsonValue> all;
  for (size_t i = 0; i < parts->items.size(); ++i) {
    DI_ASSIGN_OR_RETURN(auto part, Of(Child(schema, parts->items[i], keyword, i), depth + 1));
    all.push_back(AnyOf(std::move(part)));
  }
  ways.push_back(AllOf(std::move(all)));
  return ways;
}

std::vector<JsonValue> Opposite::OfLimits(const JsonValue& node) {
  struct Limit {
    std::string_view keyword, type, opposite;
    int step;  // what the opposite's count is above it
  };
  constexpr Limit kLimits[] = {{"minimum", "number", "exclusiveMaximum", 0},
                               {"maximum", "number", "exclusiveMinimum", 0},
                               {"exclusiveMinimum", "number", "maximum", 0},
                               {"exclusiveMaximum", "number", "minimum", 0},
                               {"minLength", "string", "maxLength", -1},
                               {"maxLength", "string", "minLength", 1},
                               {"minItems", "array", "maxItems", -1},
                               {"maxItems", "array", "minItems", 1},
                               {"minProperties", "object", "maxProperties", -1},
                               {"maxProperties", "object", "minProperties", 1}};
  std::vector<JsonValue> ways;
  for (const Limit& limit : kLimits) {
    const JsonValue* value = node.Find(limit.keyword);
    if (value == nullptr) continue;
    JsonValue bound = *value;
    if (limit.step != 0) {
      if (bound.text.size() > 9) continue;
      const int64_t count = std::atoll(bound.text.c_str()) + limit.step;
      if (count < 0) continue;
      bound = Number(count);
    }
    ways.push_back(OfType(limit.type, {{std::string(limit.opposite), std::move(bound)}}));
  }
  return ways;
}

StatusOr<std::vector<JsonValue>> Opposite::OfObjects(const SchemaRef& schema, int depth) {
  const JsonValue& node = *schema.node;
  std::vector<JsonValue> ways;
  if (const JsonValue* required = node.Find("required")) {
    for (const JsonValue& name : required->items) ways.push_back(Lacks(name.text));
  }
  const JsonValue* properties = node.Find("properties");
  if (properties == nullptr) return ways;
  for (const auto& [name, value] : properties->members) {
    DI_ASSIGN_OR_RETURN(auto opposite, Of(Child(schema, value, "properties", name), depth + 1));
    if (opposite.empty()) continue;
    ways.push_back(
        OfType("object", {{"required", Strings({name})},
                          {"properties", Object({{name, AnyOf(std::move(opposite))}})}}));
  }
  return ways;
}

// {name: [names]} and {name: schema}: the name is missing, or what depends on it holds.
void AddDependencies(SchemaDocument& document, const SchemaRef& schema, std::string_view keyword,
                     std::vector<JsonValue>& conditions) {
  const JsonValue* dependencies = schema.node->Find(keyword);
  if (dependencies == nullptr) return;
  for (const auto& [name, needs] : dependencies->members) {
    const auto others = [] { return *TypesBut({"object"}); };
    JsonValue has = OfType("object", {{"required", Strings({name})}});
    if (needs.IsArray()) {
      for (const JsonValue& other : needs.items) {
        has.members[1].value.items.push_back(JsonValue::String(other.text));
      }
    } else {
      has = AllOf({std::move(has), document.At(Child(schema, needs, keyword, name))});
    }
    conditions.push_back(AnyOf({others(), Lacks(name), std::move(has)}));
  }
}

}  // namespace

StatusOr<std::vector<JsonValue>> PlainConditions(SchemaDocument& document,
                                                 const SchemaRef& schema) {
  const JsonValue& node = *schema.node;
  std::vector<JsonValue> conditions;
  const auto opposite = [&](std::string_view keyword) {
    return Opposite(document).Of(Child(schema, *node.Find(keyword), keyword));
  };
  if (const JsonValue* inner = node.Find("not")) {
    DI_ASSIGN_OR_RETURN(auto ways, opposite("not"));
    const bool takes_all = inner->kind == Kind::kBool || inner->members.empty();
    if (ways.empty() && !takes_all) {
      return Refused(schema, "keyword 'not' of this schema is not supported");
    }
    conditions.push_back(AnyOf(std::move(ways)));
  }
  const JsonValue* then = node.Find("then");
  const JsonValue* otherwise = node.Find("else");
  if (node.Find("if") != nullptr && (then != nullptr || otherwise != nullptr)) {
    DI_ASSIGN_OR_RETURN(auto ways, opposite("if"));
    const bool takes_all = node.Find("if")->kind == Kind::kBool || node.Find("if")->members.empty();
    if (ways.empty() && !takes_all) {
      return Refused(schema, "keyword 'if' of this schema is not supported");
    }
    const auto at = [&](std::string_view keyword) {
      const JsonValue* part = node.Find(keyword);
      return part == nullptr ? Bool(true) : document.At(Child(schema, *part, keyword));
    };
    conditions.push_back(
        AnyOf({AllOf({at("if"), at("then")}), AllOf({AnyOf(std::move(ways)), at("else")})}));
  }
  AddDependencies(document, schema, "dependentRequired", conditions);
  AddDependencies(document, schema, "dependentSchemas", conditions);
  AddDependencies(document, schema, "dependencies", conditions);
  return conditions;
}

}  // namespace deepinfer
