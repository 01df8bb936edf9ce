#include "tokens/tool_grammar.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tokens/control_tokens.h"
#include "tokens/json_fields.h"
#include "tokens/schema_grammar.h"
#include "tokens/schema_overlap.h"
#include "tokens/schema_strings.h"

namespace deepinfer {
namespace {

struct Tool {
  std::string name;
  const JsonValue* parameters = nullptr;
  bool strict = false;
};

struct ToolRequest {
  std::vector<Tool> tools;
  bool required = false, parallel = true;
  const JsonValue* content = nullptr;
};

// The markup has no escapes.
Status CheckName(std::string_view what, std::string_view name, std::string_view forbidden) {
  if (!name.empty() && name.find_first_of(forbidden) == std::string_view::npos) return OkStatus();
  return InvalidArgument(what, " '", name,
                         "': the markup of calls cannot carry this name, expected no quote, '>' or "
                         "line end, and at least one character");
}

StatusOr<ToolRequest> ReadRequest(const JsonValue& json) {
  const JsonField root(&json, "");
  DI_RETURN_IF_ERROR(root.ExpectObject());
  ToolRequest request;
  DI_ASSIGN_OR_RETURN(const auto tools, root.OptionalArray("tools"));
  for (size_t i = 0; i < tools.size(); ++i) {
    Tool tool;
    DI_ASSIGN_OR_RETURN(tool.name, tools[i].RequiredString("name"));
    DI_RETURN_IF_ERROR(CheckName(StrCat("tools[", i, "].name"), tool.name, "\"<>\n\r"));
    DI_ASSIGN_OR_RETURN(const auto strict, tools[i].OptionalBool("strict"));
    tool.strict = strict.value_or(false);
    const JsonField parameters = tools[i].Member("parameters");
    if (!parameters.absent()) tool.parameters = parameters.value();
    request.tools.push_back(std::move(tool));
  }
  DI_ASSIGN_OR_RETURN(const auto required, root.OptionalBool("required"));
  DI_ASSIGN_OR_RETURN(const auto parallel, root.OptionalBool("parallel"));
  request.required = required.value_or(false);
  request.parallel = parallel.value_or(true);
  if (!root.Member("content").absent()) request.content = root.Member("content").value();
  return request;
}

// The parameters of a call in whatever order, each once: a rule for every set of them that may
// stand before. A model writes them as the request says them, and a mask of one order would lose
// those that it says later than the schema does.
class AnyOrder {
 public:
  static constexpr size_t kParametersMax = 5;

  AnyOrder(GrammarRules& rules, const MemberList& list) : rules_(rules), list_(list) {
    for (size_t i = 0; i < list.members.size(); ++i) {
      if (list.members[i].required) required_ |= Bit(i);
    }
  }
  Expr All() { return Behind(0); }

 private:
  static uint32_t Bit(size_t idx) { return uint32_t{1} << idx; }

  // What may follow these.
  Expr Behind(uint32_t given) {
    const auto known = rules_of_.find(given);
    if (known != rules_of_.end()) return expr::Rule(known->second);
    std::vector<Expr> ways;
    for (size_t i = 0; i < list_.members.size(); ++i) {
      if ((given & Bit(i)) != 0) continue;
      std::vector<Expr> parts = {list_.members[i].expr, Behind(given | Bit(i))};
      if (given != 0) parts.insert(parts.begin(), list_.separator);
      ways.push_back(expr::Sequence(std::move(parts)));
    }
    if ((required_ & ~given) == 0) ways.push_back(Others(given == 0));
    const RuleId rule = rules_.NewRule();
    rules_.Define(rule, expr::Choice(std::move(ways)));
    rules_of_[given] = rule;
    return expr::Rule(rule);
  }

  // Parameters that the schema allows without naming them, behind all that it names.
  Expr Others(bool are_first) const {
    if (list_.more == nullptr) return expr::Text("");
    Expr behind = expr::Repeat(expr::Sequence({list_.separator, list_.more}), 0, -1);
    if (!are_first) return behind;
    return expr::Optional(expr::Sequence({list_.more, std::move(behind)}));
  }

  GrammarRules& rules_;
  const MemberList& list_;
  uint32_t required_ = 0;
  std::map<uint32_t, RuleId> rules_of_;
};

class ToolGrammar {
 public:
  explicit ToolGrammar(int32_t dsml_id) : marker_(rules_.AddToken(dsml_id)) {}

  StatusOr<std::string> Text(const ToolRequest& request, bool behind_marker);

 private:
  StatusOr<Expr> Invoke(const Tool& tool, size_t idx);
  StatusOr<Expr> Parameters(const Tool& tool, const SchemaRef& schema, SchemaGrammar& grammar);
  StatusOr<Expr> Parameter(const Expr& name, const SchemaSet& set, SchemaGrammar& grammar);
  StatusOr<Expr> MoreParameters(const Facts& facts, const std::vector<std::string>& named,
                                SchemaGrammar& grammar);
  Expr AnyParameters();
  StatusOr<Expr> Content(const JsonValue& content);

  SchemaGrammar& GrammarOf(SchemaDocument document) {
    documents_.push_back(std::make_unique<SchemaDocument>(std::move(document)));
    grammars_.push_back(std::make_unique<SchemaGrammar>(rules_, *documents_.back()));
    return *grammars_.back();
  }
  static Expr Text(std::string_view text) { return expr::Text(std::string(text)); }
  // <M tag... or </M tag...
  Expr Tag(std::string_view opening, std::string_view tag, std::string_view rest) const {
    return expr::Sequence({Text(opening), marker_, Text(StrCat(tag, rest))});
  }
  Expr ParameterTag(const Expr& name, bool is_string, Expr value) const {
    return expr::Sequence({Tag("<", kParameterTag, " name=\""), name,
                           Text(StrCat("\" string=\"", is_string, "\">")), std::move(value),
                           Tag("</", kParameterTag, ">")});
  }

  GrammarRules rules_;
  const Expr marker_;
  std::vector<std::unique_ptr<SchemaDocument>> documents_;
  std::vector<std::unique_ptr<SchemaGrammar>> grammars_;
};

StatusOr<Expr> ToolGrammar::Content(const JsonValue& content) {
  const JsonValue* schema = content.Find("schema");
  if (schema == nullptr)
    return GrammarOf(*SchemaDocument::FromValue(JsonValue::Object())).AnyObject();
  auto document = SchemaDocument::FromValue(*schema);
  if (!document.ok()) return Annotate(document.status(), "content.schema");
  SchemaGrammar& grammar = GrammarOf(std::move(document).value());
  Expr value = grammar.Value({grammar.reader().document().root()});
  if (const Status done = grammar.Finish(); !done.ok()) return Annotate(done, "content.schema");
  return value;
}

// Names that the markup can carry.
Regex ParameterName() {
  const CharSet chars = CharSet({{'"', '"'}, {'>', '>'}, {0, 0x1f}}).Not();
  return regex::Repeat(regex::Chars(chars), 1, 64);
}

// Any names, and values of any kind.
Expr ToolGrammar::AnyParameters() {
  SchemaGrammar& grammar = GrammarOf(*SchemaDocument::FromValue(JsonValue::Object()));
  const Expr name = rules_.AddRegex(ParameterName());
  const Expr raw = rules_.AddRegex(regex::Repeat(regex::Chars(CharSet::All()), 0, -1));
  const Expr any = rules_.Add(
      expr::Choice({ParameterTag(name, true, raw), ParameterTag(name, false, grammar.AnyValue())}));
  return expr::Optional(
      expr::Sequence({any, expr::Repeat(expr::Sequence({Text("\n"), any}), 0, -1)}));
}

// Strings as they are, everything else as JSON.
StatusOr<Expr> ToolGrammar::Parameter(const Expr& name, const SchemaSet& set,
                                      SchemaGrammar& grammar) {
  DI_ASSIGN_OR_RETURN(const std::vector<Facts> all,
                      grammar.reader().Read(set, SchemaView::kInside));
  std::vector<Expr> ways;
  for (Facts facts : all) {
    if (facts.values) {
      for (const JsonValue* value : *facts.values) {
        DI_ASSIGN_OR_RETURN(const bool allowed, Allows(grammar.reader(), facts, *value));
        if (!allowed) continue;
        const std::string& text = value->IsString() ? value->text : DumpJson(*value);
        ways.push_back(ParameterTag(name, value->IsString(), Text(text)));
      }
      continue;
    }
    if ((facts.types & kStringBit) != 0) {
      DI_ASSIGN_OR_RETURN(Expr text, StringExpr(rules_, facts.strings, StringStyle::kRaw));
      ways.push_back(ParameterTag(name, true, std::move(text)));
      facts.types &= ~uint32_t{kStringBit};
    }
    if (facts.types == 0) continue;
    DI_ASSIGN_OR_RETURN(Expr json, grammar.Only(facts));
    ways.push_back(ParameterTag(name, false, std::move(json)));
  }
  return rules_.Add(expr::Choice(std::move(ways)));
}

// Those that the schema allows without listing them; null: none.
StatusOr<Expr> ToolGrammar::MoreParameters(const Facts& facts,
                                           const std::vector<std::string>& named,
                                           SchemaGrammar& grammar) {
  DI_ASSIGN_OR_RETURN(const std::vector<MoreProperties> parts,
                      MorePropertiesOf(grammar.reader(), facts, named));
  DI_ASSIGN_OR_RETURN(const Dfa can_be_carried, Dfa::Of(ParameterName()));
  std::vector<Expr> ways;
  for (const MoreProperties& part : parts) {
    Expr name = Text(part.name);
    if (part.names) {
      DI_ASSIGN_OR_RETURN(const Dfa names, Dfa::Both(*part.names, can_be_carried));
      name = rules_.AddDfa(names, /*json=*/false);
    } else if (!can_be_carried.Matches(part.name)) {
      continue;
    }
    DI_ASSIGN_OR_RETURN(Expr way, Parameter(name, part.schemas, grammar));
    ways.push_back(std::move(way));
  }
  if (ways.empty()) return Expr();
  return rules_.Add(expr::Choice(std::move(ways)));
}

StatusOr<Expr> ToolGrammar::Parameters(const Tool& tool, const SchemaRef& schema,
                                       SchemaGrammar& grammar) {
  DI_ASSIGN_OR_RETURN(std::vector<Facts> all, grammar.reader().Read({schema}, SchemaView::kInside));
  std::vector<Expr> ways;
  for (const Facts& facts : all) {
    if ((facts.types & kObjectBit) == 0) continue;
    if (facts.values)
      return Refused(facts.at, "listed values for all parameters are not supported");
    MemberList list{
        .separator = Text("\n"), .min = facts.min_properties, .max = facts.max_properties};
    const std::vector<std::string> named = SchemaReader::NamedProperties(facts);
    for (const std::string& name : named) {
      DI_RETURN_IF_ERROR(CheckName(StrCat(tool.name, ": the parameter"), name, "\">\n\r"));
      const bool required =
          std::find(facts.required.begin(), facts.required.end(), name) != facts.required.end();
      DI_ASSIGN_OR_RETURN(
          Expr member, Parameter(Text(name), grammar.reader().ForProperty(facts, name), grammar));
      list.members.push_back({std::move(member), required});
    }
    if (!SchemaReader::Closed(facts)) {
      DI_ASSIGN_OR_RETURN(list.more, MoreParameters(facts, named, grammar));
    }
    const bool is_counted = list.min > 0 || list.max;
    if (!is_counted && list.members.size() <= AnyOrder::kParametersMax) {
      ways.push_back(AnyOrder(rules_, list).All());
      continue;
    }
    DI_ASSIGN_OR_RETURN(Expr members, MembersExpr(rules_, list));
    ways.push_back(std::move(members));
  }
  return expr::Choice(std::move(ways));
}

StatusOr<Expr> ToolGrammar::Invoke(const Tool& tool, size_t idx) {
  const auto whole = [&](Expr parameters) {
    return rules_.Add(expr::Sequence({Tag("<", kInvokeTag, StrCat(" name=\"", tool.name, "\">\n")),
                                      std::move(parameters),
                                      expr::Sequence({Text("\n"), Tag("</", kInvokeTag, ">\n")})}));
  };
  if (tool.parameters == nullptr) return whole(AnyParameters());
  const auto build = [&]() -> StatusOr<Expr> {
    DI_ASSIGN_OR_RETURN(SchemaDocument document, SchemaDocument::FromValue(*tool.parameters));
    SchemaGrammar& grammar = GrammarOf(std::move(document));
    DI_ASSIGN_OR_RETURN(Expr parameters,
                        Parameters(tool, grammar.reader().document().root(), grammar));
    DI_RETURN_IF_ERROR(grammar.Finish());
    // Nothing that satisfies the schema is as bad as a schema that cannot be enforced.
    DI_RETURN_IF_ERROR(rules_.Text(parameters).status());
    return parameters;
  };
  auto parameters = build();
  if (parameters.ok()) return whole(std::move(parameters).value());
  if (tool.strict) {
    return Annotate(parameters.status(), "tools[", idx, "].parameters of '", tool.name, "'");
  }
  return whole(AnyParameters());
}

StatusOr<std::string> ToolGrammar::Text(const ToolRequest& request, bool behind_marker) {
  std::vector<Expr> invokes;
  for (size_t i = 0; i < request.tools.size(); ++i) {
    DI_ASSIGN_OR_RETURN(Expr invoke, Invoke(request.tools[i], i));
    invokes.push_back(std::move(invoke));
  }
  Expr calls =
      expr::Repeat(rules_.Add(expr::Choice(std::move(invokes))), 1, request.parallel ? -1 : 1);
  // Behind the marker of the opening tag.
  Expr block =
      expr::Sequence({Text(StrCat(kCallsTag, ">\n")), std::move(calls), Tag("</", kCallsTag, ">")});
  if (behind_marker) return rules_.Text(block);
  block = expr::Sequence({Text("\n\n<"), marker_, std::move(block)});
  if (request.content == nullptr || request.required) return rules_.Text(block);
  DI_ASSIGN_OR_RETURN(Expr content, Content(*request.content));
  return rules_.Text(expr::Choice({std::move(block), std::move(content)}));
}

}  // namespace

StatusOr<std::string> ToolCallGrammar(std::string_view text, bool behind_marker, int32_t dsml_id) {
  DI_ASSIGN_OR_RETURN(const JsonValue json, ParseJson(text));
  DI_ASSIGN_OR_RETURN(const ToolRequest request, ReadRequest(json));
  if (request.tools.empty()) return InvalidArgument("tools: none, expected at least one");
  if (dsml_id < 0) {
    return Unimplemented("tool calls: the tokenizer has no token ", kDsmlToken);
  }
  return ToolGrammar(dsml_id).Text(request, behind_marker);
}

}  // namespace deepinfer
