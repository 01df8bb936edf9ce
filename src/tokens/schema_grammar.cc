#include "tokens/schema_grammar.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "tokens/schema_overlap.h"
#include "tokens/schema_strings.h"

namespace deepinfer {
namespace {

constexpr size_t kMaxPrefixItems = 1000;

// Says where, unless that is said already.
Status At(const Facts& facts, const Status& status, std::string_view what) {
  if (MessageOf(status).starts_with("at /")) return status;
  return Annotate(status, "at ", facts.at.pointer.empty() ? "/" : facts.at.pointer, ": ", what);
}

}  // namespace

Expr SchemaGrammar::Gap() {
  return rules_.AddRegex(regex::Alt(
      {regex::Empty(), regex::Text(" "),
       regex::Concat({regex::Text("\n"), regex::Repeat(regex::Text(" "), 0, kMaxIndent)})}));
}
Expr SchemaGrammar::Comma() { return expr::Sequence({expr::Text(","), Gap()}); }
Expr SchemaGrammar::Colon() {
  return expr::Sequence({expr::Text(":"), expr::Optional(expr::Text(" "))});
}

Expr SchemaGrammar::AnyString() {
  auto any = StringExpr(rules_, {}, StringStyle::kJson);
  CHECK(any.ok());
  return std::move(any).value();
}

Expr SchemaGrammar::AnyNumber() {
  auto spellings = NumberSpellings({});
  CHECK(spellings.ok());
  return rules_.AddDfa(*spellings, /*json=*/false);
}

Expr SchemaGrammar::AnyObject() {
  const Expr member = rules_.Add(expr::Sequence({AnyString(), Colon(), AnyValue()}));
  const Expr members =
      expr::Sequence({member, expr::Repeat(expr::Sequence({Comma(), member}), 0, -1), Gap()});
  return rules_.Add(
      expr::Sequence({expr::Text("{"), Gap(), expr::Optional(members), expr::Text("}")}));
}

Expr SchemaGrammar::AnyValue() {
  if (any_value_) return any_value_;
  const RuleId rule = rules_.NewRule();
  any_value_ = expr::Rule(rule);
  const Expr items = expr::Sequence(
      {any_value_, expr::Repeat(expr::Sequence({Comma(), any_value_}), 0, -1), Gap()});
  const Expr array =
      rules_.Add(expr::Sequence({expr::Text("["), Gap(), expr::Optional(items), expr::Text("]")}));
  rules_.Define(rule, expr::Choice({AnyObject(), array, AnyString(), AnyNumber(),
                                    expr::Text("true"), expr::Text("false"), expr::Text("null")}));
  return any_value_;
}

Expr SchemaGrammar::Value(const SchemaSet& set) {
  SchemaSet telling;  // without `true` and {}
  for (const SchemaRef& schema : set) {
    const bool any = schema.node->kind == JsonValue::Kind::kBool ? schema.node->boolean
                                                                 : schema.node->members.empty();
    if (!any) telling.push_back(schema);
  }
  if (telling.empty()) return AnyValue();
  Key key;
  for (const SchemaRef& schema : telling) key.push_back(schema.node);
  const auto [known, fresh] = rule_of_.emplace(std::move(key), RuleId());
  if (fresh) {
    known->second = rules_.NewRule();
    promised_.emplace_back(std::move(telling), known->second);
  }
  return expr::Rule(known->second);
}

Status SchemaGrammar::Finish() {
  while (!promised_.empty()) {
    const auto [set, rule] = std::move(promised_.back());
    promised_.pop_back();
    DI_ASSIGN_OR_RETURN(const std::vector<Facts> all, reader_.Read(set, SchemaView::kInside));
    DI_ASSIGN_OR_RETURN(Expr body, OneOf(all));
    rules_.Define(rule, std::move(body));
    if (rules_.num_rules() > kMaxRules) {
      return Refused(set[0], "a schema that needs more than ", kMaxRules,
                     " grammar rules is not supported");
    }
  }
  return OkStatus();
}

StatusOr<Expr> SchemaGrammar::OneOf(const std::vector<Facts>& alternatives) {
  std::vector<Expr> ways;
  for (const Facts& facts : alternatives) {
    DI_ASSIGN_OR_RETURN(Expr way, Only(facts));
    ways.push_back(std::move(way));
  }
  return expr::Choice(std::move(ways));
}

StatusOr<Expr> SchemaGrammar::Only(const Facts& facts) {
  if (facts.values) return Listed(facts);
  std::vector<Expr> ways;
  if ((facts.types & kObjectBit) != 0) {
    DI_ASSIGN_OR_RETURN(Expr way, Object(facts));
    ways.push_back(std::move(way));
  }
  if ((facts.types & kArrayBit) != 0) {
    DI_ASSIGN_OR_RETURN(Expr way, Array(facts));
    ways.push_back(std::move(way));
  }
  if ((facts.types & kStringBit) != 0) {
    auto way = StringExpr(rules_, facts.strings, StringStyle::kJson);
    if (!way.ok()) return At(facts, way.status(), "strings");
    ways.push_back(std::move(way).value());
  }
  if ((facts.types & kNumberBit) != 0) {
    DI_ASSIGN_OR_RETURN(Expr way, Numbers(facts));
    ways.push_back(std::move(way));
  }
  if ((facts.types & kBoolBit) != 0) {
    ways.push_back(expr::Text("true"));
    ways.push_back(expr::Text("false"));
  }
  if ((facts.types & kNullBit) != 0) ways.push_back(expr::Text("null"));
  return expr::Choice(std::move(ways));
}

// enum and const: the values as json.dumps writes them.
StatusOr<Expr> SchemaGrammar::Listed(const Facts& facts) {
  std::vector<Expr> ways;
  for (const JsonValue* value : *facts.values) {
    DI_ASSIGN_OR_RETURN(const bool allowed, Allows(reader_, facts, *value));
    if (allowed) ways.push_back(expr::Text(DumpJson(*value)));
  }
  return expr::Choice(std::move(ways));
}

StatusOr<Expr> SchemaGrammar::Numbers(const Facts& facts) {
  const auto spellings = NumberSpellings(facts.numbers);
  if (!spellings.ok()) return At(facts, spellings.status(), "numbers");
  return rules_.AddDfa(*spellings, /*json=*/false);
}

StatusOr<Expr> SchemaGrammar::Array(const Facts& facts) {
  size_t num_prefix = 0;
  for (const ArrayFacts& array : facts.arrays) {
    num_prefix = std::max(num_prefix, array.prefix.size());
  }
  if (num_prefix > kMaxPrefixItems) {
    return Refused(facts.at, "more than ", kMaxPrefixItems, " prefix items are not supported");
  }
  const int64_t least = facts.min_items, most = facts.max_items.value_or(-1);
  if (most >= 0 && most < least) return expr::Never();
  const auto item = [&](size_t idx) { return Value(SchemaReader::ForItem(facts, idx)); };
  const auto first = static_cast<int64_t>(num_prefix);
  // What follows `first` items; none of them: the list may begin here.
  const auto above = [&](int64_t count) {
    return most < 0 ? -1 : std::max<int64_t>(0, most - count);
  };
  Expr rest;
  if (first > 0) {
    rest = expr::Repeat(expr::Sequence({Comma(), item(num_prefix)}),
                        std::max<int64_t>(0, least - first), above(first));
  } else {
    rest = expr::Sequence({item(0), expr::Repeat(expr::Sequence({Comma(), item(0)}),
                                                 std::max<int64_t>(0, least - 1), above(1))});
    if (most == 0) rest = expr::Never();
  }
  for (size_t i = num_prefix; i-- > 0;) {
    Expr here = expr::Sequence({item(i), rest});
    if (i > 0) here = expr::Sequence({Comma(), here});
    if (most >= 0 && static_cast<int64_t>(i) >= most) here = expr::Never();
    const bool optional = i > 0 && static_cast<int64_t>(i) >= least;
    rest = optional ? expr::Optional(std::move(here)) : std::move(here);
  }
  Expr items = expr::Sequence({std::move(rest), Gap()});
  if (least == 0) items = expr::Optional(std::move(items));
  return expr::Sequence({expr::Text("["), Gap(), std::move(items), expr::Text("]")});
}

StatusOr<Expr> SchemaGrammar::Object(const Facts& facts) {
  const std::vector<std::string> named = SchemaReader::NamedProperties(facts);
  MemberList list{.separator = Comma(), .min = facts.min_properties, .max = facts.max_properties};
  for (const std::string& name : named) {
    const bool required =
        std::find(facts.required.begin(), facts.required.end(), name) != facts.required.end();
    bool allowed = true;
    for (const SchemaRef& names : facts.names) {
      DI_ASSIGN_OR_RETURN(const bool holds,
                          Allows(reader_, {names}, SchemaView::kInside, JsonValue::String(name)));
      allowed &= holds;
    }
    std::string key;
    AppendJsonString(name, key);
    Expr value = allowed ? Value(reader_.ForProperty(facts, name)) : expr::Never();
    Expr member = rules_.Add(expr::Sequence({expr::Text(key), Colon(), std::move(value)}));
    list.members.push_back({std::move(member), required});
  }
  if (!SchemaReader::Closed(facts)) {
    if (facts.min_properties > std::ssize(named) + 1) {
      return Refused(facts.at,
                     "keyword 'minProperties' of more than one property without a name "
                     "in the schema is not supported");
    }
    DI_ASSIGN_OR_RETURN(list.more, More(facts, named));
  }
  auto members = MembersExpr(rules_, list);
  if (!members.ok()) return At(facts, members.status(), "objects");
  return expr::Sequence(
      {expr::Text("{"), Gap(), std::move(members).value(), Gap(), expr::Text("}")});
}

StatusOr<Expr> SchemaGrammar::More(const Facts& facts, const std::vector<std::string>& named) {
  std::vector<Expr> ways;
  auto parts = MorePropertiesOf(reader_, facts, named);
  if (!parts.ok()) return At(facts, parts.status(), "names of properties");
  const bool any_name = named.empty() && parts->size() == 1 && facts.names.empty() &&
                        std::none_of(facts.objects.begin(), facts.objects.end(),
                                     [](const auto& object) { return !object.patterns.empty(); });
  for (const MoreProperties& part : *parts) {
    Expr key;
    if (!part.names) {
      std::string text;
      AppendJsonString(part.name, text);
      key = expr::Text(std::move(text));
    } else if (any_name) {
      key = AnyString();
    } else {
      key = expr::Sequence(
          {expr::Text("\""), rules_.AddDfa(*part.names, /*json=*/true), expr::Text("\"")});
    }
    ways.push_back(expr::Sequence({std::move(key), Colon(), Value(part.schemas)}));
  }
  if (ways.empty()) return Expr();
  return rules_.Add(expr::Choice(std::move(ways)));
}

StatusOr<std::string> JsonSchemaGrammar(std::string_view schema) {
  DI_ASSIGN_OR_RETURN(SchemaDocument document, SchemaDocument::Parse(schema));
  GrammarRules rules;
  SchemaGrammar grammar(rules, document);
  const Expr root = grammar.Value({document.root()});
  DI_RETURN_IF_ERROR(grammar.Finish());
  return rules.Text(root);
}

std::string AnyJsonObjectGrammar() {
  auto document = SchemaDocument::FromValue(JsonValue::Object());
  CHECK(document.ok());
  GrammarRules rules;
  SchemaGrammar grammar(rules, *document);
  auto text = rules.Text(grammar.AnyObject());
  CHECK(text.ok());
  return std::move(text).value();
}

}  // namespace deepinfer
