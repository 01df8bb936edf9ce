#include "tokens/schema_facts.h"

#include <algorithm>

#include "tokens/dfa.h"
#include "tokens/schema_conditions.h"
#include "tokens/schema_formats.h"
#include "tokens/schema_overlap.h"

namespace deepinfer {
namespace {

// More alternatives of one value than this are refused.
constexpr size_t kMaxAlternatives = 256;
constexpr size_t kMaxOpen = 200;

using Kind = JsonValue::Kind;

uint32_t TypeBitOf(std::string_view name) {
  if (name == "null") return kNullBit;
  if (name == "boolean") return kBoolBit;
  if (name == "string") return kStringBit;
  if (name == "array") return kArrayBit;
  return name == "object" ? kObjectBit : kNumberBit;
}

void AddType(Facts& facts, const JsonValue& type) {
  uint32_t bits = 0;
  bool whole = false, any = false;
  const auto add = [&](const JsonValue& name) {
    bits |= TypeBitOf(name.text);
    whole |= name.text == "integer";
    any |= name.text == "number";
  };
  if (type.IsString()) add(type);
  for (const JsonValue& name : type.items) add(name);
  facts.types &= bits;
  if (whole && !any) facts.numbers.integer = true;
}

int64_t CountOf(const JsonValue& value) {
  constexpr int64_t kMost = 999'999'999;  // the library reads nine digits
  int64_t count = 0;
  for (const char c : value.text) {
    if (c == '.') break;
    count = std::min(kMost, count * 10 + (c - '0'));
  }
  return count;
}

void Raise(int64_t& low, const JsonValue* value) {
  if (value != nullptr) low = std::max(low, CountOf(*value));
}
void Lower(std::optional<int64_t>& high, const JsonValue* value) {
  if (value == nullptr) return;
  const int64_t count = CountOf(*value);
  high = high ? std::min(*high, count) : count;
}

bool HasAny(const JsonValue& node, std::initializer_list<std::string_view> keywords) {
  return std::any_of(keywords.begin(), keywords.end(),
                     [&](std::string_view name) { return node.Find(name) != nullptr; });
}

}  // namespace

void AddTo(SchemaSet& set, const SchemaRef& schema) {
  const auto at = std::lower_bound(
      set.begin(), set.end(), schema,
      [](const SchemaRef& a, const SchemaRef& b) { return std::less<>()(a.node, b.node); });
  if (at == set.end() || at->node != schema.node) set.insert(at, schema);
}

TypeBit TypeOf(const JsonValue& value) {
  switch (value.kind) {
    case Kind::kNull:
      return kNullBit;
    case Kind::kBool:
      return kBoolBit;
    case Kind::kNumber:
      return kNumberBit;
    case Kind::kString:
      return kStringBit;
    case Kind::kArray:
      return kArrayBit;
    default:
      return kObjectBit;
  }
}

void MakeTypeExplicit(Facts& facts) {
  if (facts.types == kAllTypes && facts.implied != 0 && !facts.values) facts.types = facts.implied;
}

StatusOr<std::vector<Facts>> SchemaReader::Read(const SchemaSet& set, SchemaView view) {
  Many all(1);
  all[0].view = view;
  for (const SchemaRef& schema : set) {
    DI_ASSIGN_OR_RETURN(all, Expand(std::move(all), schema, view));
  }
  for (Facts& facts : all) {
    if (view == SchemaView::kInside) MakeTypeExplicit(facts);
  }
  std::erase_if(all, [](const Facts& facts) { return facts.types == 0; });
  return all;
}

StatusOr<SchemaReader::Many> SchemaReader::Expand(Many all, const SchemaRef& schema,
                                                  SchemaView view) {
  if (schema.node->kind == Kind::kBool) return schema.node->boolean ? std::move(all) : Many();
  if (std::find(open_.begin(), open_.end(), schema.node) != open_.end()) {
    return Broken(schema, "the schema refers to itself without an end");
  }
  if (open_.size() >= kMaxOpen)
    return Refused(schema, "schemas nested this deep are not supported");
  open_.push_back(schema.node);
  auto expanded = ExpandKeywords(std::move(all), schema, view);
  open_.pop_back();
  if (expanded.ok() && expanded->size() > kMaxAlternatives) {
    return Refused(schema, "more than ", kMaxAlternatives, " alternatives are not supported");
  }
  return expanded;
}

StatusOr<SchemaReader::Many> SchemaReader::ExpandKeywords(Many all, const SchemaRef& schema,
                                                          SchemaView view) {
  DI_RETURN_IF_ERROR(document_.Check(schema));
  const JsonValue& node = *schema.node;
  if (const JsonValue* at = node.Find(kAtKeyword)) {
    return Expand(std::move(all), document_.AtTarget(*at), view);
  }
  if (const JsonValue* ref = node.Find("$ref")) {
    DI_ASSIGN_OR_RETURN(const SchemaRef target, document_.Resolve(schema, ref->text));
    if (document_.ref_stands_alone()) return Expand(std::move(all), target, view);
  }
  // A value that two branches of anyOf allow has evaluated properties of both, which one
  // alternative does not know: in view kAround the keyword says nothing.
  const bool unevaluated =
      node.Find("unevaluatedProperties") != nullptr && view == SchemaView::kInside;
  const int64_t opposites_before = num_opposites_;
  if (unevaluated) OpenScope(all, schema);
  if (const JsonValue* ref = node.Find("$ref")) {
    DI_ASSIGN_OR_RETURN(const SchemaRef target, document_.Resolve(schema, ref->text));
    DI_ASSIGN_OR_RETURN(all, Expand(std::move(all), target, view));
  }
  for (Facts& facts : all) DI_RETURN_IF_ERROR(AddPlain(facts, schema, view));
  if (const JsonValue* parts = node.Find("allOf")) {
    for (size_t i = 0; i < parts->items.size(); ++i) {
      DI_ASSIGN_OR_RETURN(all,
                          Expand(std::move(all), Child(schema, parts->items[i], "allOf", i), view));
    }
  }
  if (node.Find("anyOf") != nullptr) {
    DI_ASSIGN_OR_RETURN(all, ExpandAny(all, schema, view));
  }
  if (node.Find("oneOf") != nullptr) {
    DI_ASSIGN_OR_RETURN(all, ExpandOne(all, schema, view));
  }
  if (view == SchemaView::kInside) {
    DI_ASSIGN_OR_RETURN(all, ExpandConditions(std::move(all), schema, view));
  }
  if (unevaluated && num_opposites_ != opposites_before) {
    // What an opposite says about properties does not evaluate them.
    return Refused(schema, "keyword 'unevaluatedProperties' beside 'not' or 'if' is not supported");
  }
  if (unevaluated) CloseScope(all);
  return all;
}

// unevaluatedProperties looks at what its own schema and those in it evaluate.
void SchemaReader::OpenScope(Many& all, const SchemaRef& schema) {
  constexpr std::string_view kKeyword = "unevaluatedProperties";
  for (Facts& facts : all) {
    ObjectFacts object;
    object.unevaluated = Child(schema, *schema.node->Find(kKeyword), kKeyword);
    object.scope_begin = facts.objects.size() + 1;
    facts.objects.push_back(std::move(object));
  }
}

void SchemaReader::CloseScope(Many& all) {
  for (Facts& facts : all) {
    // The innermost open one; an inner schema has closed its own.
    for (size_t i = facts.objects.size(); i-- > 0;) {
      if (!facts.objects[i].unevaluated || facts.objects[i].scope_end != 0) continue;
      facts.objects[i].scope_end = facts.objects.size();
      break;
    }
  }
}

StatusOr<SchemaReader::Many> SchemaReader::ExpandAny(const Many& all, const SchemaRef& schema,
                                                     SchemaView view) {
  const JsonValue& branches = *schema.node->Find("anyOf");
  Many some;
  for (size_t i = 0; i < branches.items.size(); ++i) {
    DI_ASSIGN_OR_RETURN(Many branch,
                        Expand(all, Child(schema, branches.items[i], "anyOf", i), view));
    some.insert(some.end(), branch.begin(), branch.end());
  }
  return some;
}

// As anyOf, once it is certain that no value of one branch is valid in another one too.
StatusOr<SchemaReader::Many> SchemaReader::ExpandOne(const Many& all, const SchemaRef& schema,
                                                     SchemaView view) {
  const JsonValue& branches = *schema.node->Find("oneOf");
  std::vector<Many> inside, around;
  for (size_t i = 0; i < branches.items.size(); ++i) {
    const SchemaRef branch = Child(schema, branches.items[i], "oneOf", i);
    DI_ASSIGN_OR_RETURN(Many expanded, Expand(all, branch, view));
    inside.push_back(std::move(expanded));
    if (view == SchemaView::kAround) continue;
    DI_ASSIGN_OR_RETURN(Many alone, Expand(Many(1), branch, SchemaView::kAround));
    around.push_back(std::move(alone));
  }
  Many some;
  for (size_t i = 0; i < inside.size(); ++i) {
    for (Facts& facts : inside[i]) {
      for (size_t j = 0; j < around.size(); ++j) {
        if (j == i) continue;
        DI_ASSIGN_OR_RETURN(const bool apart, KeepApart(*this, facts, around[j]));
        if (apart) continue;
        return Refused(schema, "keyword 'oneOf', whose branches ", std::min(i, j), " and ",
                       std::max(i, j), " may both hold for a value, is not supported (anyOf is)");
      }
      some.push_back(std::move(facts));
    }
  }
  return some;
}

// if, not and dependencies are rewritten into anyOf and allOf of our own.
StatusOr<SchemaReader::Many> SchemaReader::ExpandConditions(Many all, const SchemaRef& schema,
                                                            SchemaView view) {
  num_opposites_ += schema.node->Find("not") != nullptr || schema.node->Find("if") != nullptr;
  auto known = conditions_.find(schema.node);
  if (known == conditions_.end()) {
    DI_ASSIGN_OR_RETURN(std::vector<JsonValue> conditions, PlainConditions(document_, schema));
    known = conditions_.emplace(schema.node, std::vector<SchemaRef>()).first;
    for (JsonValue& condition : conditions) {
      known->second.push_back(document_.Own(std::move(condition), schema));
    }
  }
  for (const SchemaRef& condition : known->second) {
    DI_ASSIGN_OR_RETURN(all, Expand(std::move(all), condition, view));
  }
  return all;
}

Status SchemaReader::AddPlain(Facts& facts, const SchemaRef& schema, SchemaView view) {
  const JsonValue& node = *schema.node;
  facts.at = schema;
  facts.view = view;
  if (const JsonValue* type = node.Find("type")) AddType(facts, *type);
  const auto restrict_to = [&](std::vector<const JsonValue*> values) {
    if (facts.values) {
      std::erase_if(values, [&](const JsonValue* value) {
        return std::none_of(facts.values->begin(), facts.values->end(),
                            [&](const JsonValue* known) { return SameJson(*known, *value); });
      });
    }
    facts.values = std::move(values);
  };
  if (const JsonValue* only = node.Find("const")) restrict_to({only});
  if (const JsonValue* some = node.Find("enum")) {
    std::vector<const JsonValue*> values;
    for (const JsonValue& value : some->items) values.push_back(&value);
    restrict_to(std::move(values));
  }
  DI_RETURN_IF_ERROR(AddNumbers(facts, schema, view));
  DI_RETURN_IF_ERROR(AddStrings(facts, schema, view));
  DI_RETURN_IF_ERROR(AddArrays(facts, schema, view));
  return AddObjects(facts, schema, view);
}

Status SchemaReader::AddNumbers(Facts& facts, const SchemaRef& schema, SchemaView view) {
  const JsonValue& node = *schema.node;
  NumberLimits limits;
  for (const std::string_view keyword :
       {"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"}) {
    const JsonValue* value = node.Find(keyword);
    if (value == nullptr) continue;
    facts.implied |= kNumberBit;
    auto bound = Decimal::Parse(value->text);
    if (!bound.ok()) return Refused(schema, "keyword '", keyword, "': ", MessageOf(bound.status()));
    NumberLimits one;
    const bool exclusive = keyword[0] == 'e';
    const bool low = keyword.ends_with("inimum");
    (low ? one.low : one.high) = {std::move(bound).value(), exclusive};
    DI_ASSIGN_OR_RETURN(limits, Both(limits, one));
  }
  if (const JsonValue* value = node.Find("multipleOf")) {
    facts.implied |= kNumberBit;
    auto divisor = Decimal::Parse(value->text);
    const bool whole = divisor.ok() && divisor->IsInteger() && divisor->point <= 6 &&
                       std::stoll(divisor->Whole()) <= kMaxMultipleOf;
    if (whole && divisor->IsZero()) {
      return Broken(schema, "keyword 'multipleOf' is 0, expected a number above 0");
    }
    if (whole) {
      limits.multiple_of = std::stoll(divisor->Whole());
    } else if (view == SchemaView::kInside) {
      return Refused(schema, "keyword 'multipleOf' of ", value->text,
                     " is not supported (whole numbers up to ", kMaxMultipleOf, " are)");
    }
  }
  auto both = Both(facts.numbers, limits);
  if (both.ok()) facts.numbers = std::move(both).value();
  if (!both.ok() && view == SchemaView::kInside) return Refused(schema, MessageOf(both.status()));
  return OkStatus();
}

Status SchemaReader::AddStrings(Facts& facts, const SchemaRef& schema, SchemaView view) {
  const JsonValue& node = *schema.node;
  if (HasAny(node, {"minLength", "maxLength", "pattern", "format"})) facts.implied |= kStringBit;
  Raise(facts.strings.min_length, node.Find("minLength"));
  Lower(facts.strings.max_length, node.Find("maxLength"));
  if (const JsonValue* pattern = node.Find("pattern")) {
    auto regex =
        ParseRegex(pattern->text,
                   view == SchemaView::kInside ? RegexMatch::kSearch : RegexMatch::kSearchPerhaps);
    if (!regex.ok() && view == SchemaView::kInside) {
      return Annotate(regex.status(), "at ", schema.pointer.empty() ? "/" : schema.pointer,
                      ": keyword 'pattern'");
    }
    if (regex.ok()) facts.strings.matches.push_back(std::move(regex).value());
  }
  if (const JsonValue* strings = node.Find(kNotStringsKeyword)) {
    for (const JsonValue& text : strings->items) facts.strings.excluded.push_back(text.text);
  }
  const JsonValue* format = node.Find("format");
  if (format == nullptr || view == SchemaView::kAround) return OkStatus();  // may be a mere note
  const auto text = FormatRegex(format->text);
  if (!text) {
    return Refused(schema, "keyword 'format' of '", format->text, "' is not supported (",
                   FormatNames(), " are)");
  }
  DI_ASSIGN_OR_RETURN(Regex regex, ParseRegex(*text, RegexMatch::kWhole));
  facts.strings.matches.push_back(std::move(regex));
  return OkStatus();
}

Status SchemaReader::AddArrays(Facts& facts, const SchemaRef& schema, SchemaView view) {
  const JsonValue& node = *schema.node;
  if (HasAny(node, {"items", "prefixItems", "minItems", "maxItems", "contains", "uniqueItems"})) {
    facts.implied |= kArrayBit;
  }
  Raise(facts.min_items, node.Find("minItems"));
  Lower(facts.max_items, node.Find("maxItems"));
  ArrayFacts array;
  const JsonValue* items = node.Find("items");
  const JsonValue* prefix = node.Find("prefixItems");
  const JsonValue* rest = items;
  std::string_view prefix_keyword = "prefixItems", rest_keyword = "items";
  if (items != nullptr && items->IsArray()) {  // as drafts before 2020-12 spell it
    if (prefix != nullptr)
      return Broken(schema, "keyword 'items' is an array beside 'prefixItems'");
    prefix = items;
    rest = node.Find("additionalItems");
    prefix_keyword = "items";
    rest_keyword = "additionalItems";
  }
  for (size_t i = 0; prefix != nullptr && i < prefix->items.size(); ++i) {
    array.prefix.push_back(Child(schema, prefix->items[i], prefix_keyword, i));
  }
  if (rest != nullptr) array.rest = Child(schema, *rest, rest_keyword);
  if (prefix != nullptr || rest != nullptr) facts.arrays.push_back(std::move(array));
  if (view == SchemaView::kAround) return OkStatus();
  const JsonValue* unique = node.Find("uniqueItems");
  const bool alone = facts.max_items && *facts.max_items <= 1;
  if (unique != nullptr && unique->boolean && !alone) {
    return Refused(schema, "keyword 'uniqueItems' is not supported");
  }
  for (const std::string_view keyword : {"contains", "unevaluatedItems"}) {
    const JsonValue* value = node.Find(keyword);
    if (value == nullptr || (keyword[0] == 'u' && value->kind == Kind::kBool && value->boolean)) {
      continue;
    }
    return Refused(schema, "keyword '", keyword, "' is not supported");
  }
  return OkStatus();
}

Status SchemaReader::AddObjects(Facts& facts, const SchemaRef& schema, SchemaView view) {
  const JsonValue& node = *schema.node;
  if (HasAny(node, {"properties", "patternProperties", "additionalProperties", "propertyNames",
                    "required", "minProperties", "maxProperties", "unevaluatedProperties",
                    "dependentRequired", "dependentSchemas", "dependencies"})) {
    facts.implied |= kObjectBit;
  }
  Raise(facts.min_properties, node.Find("minProperties"));
  Lower(facts.max_properties, node.Find("maxProperties"));
  if (const JsonValue* names = node.Find("required")) {
    for (const JsonValue& name : names->items) {
      auto& required = facts.required;
      if (std::find(required.begin(), required.end(), name.text) == required.end()) {
        required.push_back(name.text);
      }
    }
  }
  if (const JsonValue* names = node.Find("propertyNames")) {
    facts.names.push_back(Child(schema, *names, "propertyNames"));
  }
  ObjectFacts object;
  if (const JsonValue* properties = node.Find("properties")) {
    for (const auto& [name, value] : properties->members) {
      object.properties.emplace_back(name, Child(schema, value, "properties", name));
    }
  }
  if (const JsonValue* patterns = node.Find("patternProperties")) {
    for (const auto& [text, value] : patterns->members) {
      auto sure = ParseRegex(text, RegexMatch::kSearch);
      auto perhaps = ParseRegex(text, RegexMatch::kSearchPerhaps);
      if (!sure.ok() && view == SchemaView::kAround) continue;
      if (!sure.ok()) {
        return Annotate(sure.status(), "at ", schema.pointer.empty() ? "/" : schema.pointer,
                        ": keyword 'patternProperties'");
      }
      DI_RETURN_IF_ERROR(perhaps.status());
      object.patterns.push_back({std::move(sure).value(), std::move(perhaps).value(),
                                 Child(schema, value, "patternProperties", text)});
    }
  }
  if (const JsonValue* more = node.Find("additionalProperties")) {
    object.additional = Child(schema, *more, "additionalProperties");
  }
  if (!object.properties.empty() || !object.patterns.empty() || object.additional) {
    facts.objects.push_back(std::move(object));
  }
  return OkStatus();
}

SchemaSet SchemaReader::ForItem(const Facts& facts, size_t idx) {
  SchemaSet set;
  for (const ArrayFacts& array : facts.arrays) {
    if (idx < array.prefix.size()) {
      AddTo(set, array.prefix[idx]);
    } else if (array.rest) {
      AddTo(set, *array.rest);
    }
  }
  return set;
}

namespace {

bool Matches(const Regex& regex, std::string_view text) {
  const auto dfa = Dfa::Of(regex);
  return dfa.ok() && dfa->Matches(text);
}

// The schemas of one object for a name, and whether any of its keywords speaks about it.
bool ForName(const ObjectFacts& object, std::string_view name, SchemaView view, SchemaSet& set) {
  bool listed = false, perhaps = false;
  for (const auto& [known, schema] : object.properties) {
    if (known != name) continue;
    AddTo(set, schema);
    listed = true;
  }
  for (const ObjectFacts::Pattern& pattern : object.patterns) {
    const bool sure = Matches(pattern.sure, name);
    if (!sure && !Matches(pattern.perhaps, name)) continue;
    (sure ? listed : perhaps) = true;
    // In doubt both hold inside, neither around.
    if (sure || view == SchemaView::kInside) AddTo(set, pattern.schema);
  }
  const bool more = view == SchemaView::kInside ? !listed : !listed && !perhaps;
  if (more && object.additional) {
    AddTo(set, *object.additional);
    return true;
  }
  return listed;
}

}  // namespace

void AddUnevaluated(const std::vector<ObjectFacts>& objects, const std::vector<bool>& evaluated,
                    SchemaSet& set) {
  for (const ObjectFacts& object : objects) {
    if (!object.unevaluated) continue;
    const auto first = evaluated.begin() + static_cast<std::ptrdiff_t>(object.scope_begin);
    const auto last = evaluated.begin() + static_cast<std::ptrdiff_t>(object.scope_end);
    if (std::find(first, last, true) == last) AddTo(set, *object.unevaluated);
  }
}

SchemaSet SchemaReader::ForProperty(const Facts& facts, std::string_view name) const {
  SchemaSet set;
  std::vector<bool> evaluated;
  for (const ObjectFacts& object : facts.objects) {
    evaluated.push_back(ForName(object, name, facts.view, set));
  }
  AddUnevaluated(facts.objects, evaluated, set);
  return set;
}

bool SchemaReader::Closed(const Facts& facts) {
  const auto says_more = [](const ObjectFacts& object) {
    return object.additional || object.unevaluated || !object.patterns.empty();
  };
  if (std::any_of(facts.objects.begin(), facts.objects.end(), says_more)) return false;
  if (!facts.names.empty()) return false;
  const auto num_named = std::ssize(NamedProperties(facts));
  const bool lists = std::any_of(facts.objects.begin(), facts.objects.end(), [](const auto& o) {
    return std::any_of(o.properties.begin(), o.properties.end(), [](const auto& property) {
      const JsonValue& schema = *property.second.node;
      return schema.kind != Kind::kBool || schema.boolean;
    });
  });
  return lists && facts.min_properties <= num_named;
}

std::vector<std::string> SchemaReader::NamedProperties(const Facts& facts) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const ObjectFacts& object : facts.objects) {
    for (const auto& [name, schema] : object.properties) add(name);
  }
  for (const std::string& name : facts.required) add(name);
  return names;
}

}  // namespace deepinfer
