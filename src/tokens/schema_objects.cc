#include "tokens/schema_objects.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tokens/schema_overlap.h"
#include "tokens/schema_strings.h"

namespace deepinfer {
namespace {

constexpr int64_t kMaxCountedRules = 20'000;
constexpr size_t kMaxPatterns = 5;

class Members {
 public:
  Members(GrammarRules& rules, const MemberList& list)
      : rules_(rules), list_(list), cap_(std::max<int64_t>({1, list.min, list.max.value_or(0)})) {}

  // Members from `idx` on, behind `count` others. Counts past cap_ make no difference.
  Expr From(size_t idx, int64_t count) {
    if (idx == list_.members.size()) return Rest(count);
    const bool only_way =
        list_.members[idx].required && (idx == 0 || list_.members[idx - 1].required);
    if (only_way) return Body(idx, count);
    const auto known = rules_of_.find({idx, count});
    if (known != rules_of_.end()) return expr::Rule(known->second);
    const RuleId rule = rules_.NewRule();
    rules_of_[{idx, count}] = rule;
    rules_.Define(rule, Body(idx, count));
    return expr::Rule(rule);
  }

 private:
  Expr Body(size_t idx, int64_t count) {
    const MemberList::Member& member = list_.members[idx];
    std::vector<Expr> ways;
    if (!list_.max || count < *list_.max) {
      ways.push_back(expr::Sequence({Separated(member.expr, count), From(idx + 1, Next(count))}));
    }
    if (!member.required) ways.push_back(From(idx + 1, count));
    return expr::Choice(std::move(ways));
  }
  Expr Rest(int64_t count) {
    const int64_t missing = std::max<int64_t>(0, list_.min - count);
    if (missing == 0 && (!list_.more || (list_.max && count >= *list_.max))) return expr::Text("");
    if (!list_.more || missing > 1) return expr::Never();
    const int64_t most = list_.max ? *list_.max - count : -1;
    const auto others = [&](int64_t at_least, int64_t at_most) {
      return expr::Repeat(Separated(list_.more, 1), at_least, at_most);
    };
    if (count > 0) return others(missing, most);
    Expr some = expr::Sequence({list_.more, others(0, most < 0 ? -1 : most - 1)});
    return missing > 0 ? some : expr::Optional(std::move(some));
  }
  Expr Separated(const Expr& member, int64_t count) const {
    return count == 0 ? member : expr::Sequence({list_.separator, member});
  }
  int64_t Next(int64_t count) const { return std::min(count + 1, cap_); }

  GrammarRules& rules_;
  const MemberList& list_;
  const int64_t cap_;
  std::map<std::pair<size_t, int64_t>, RuleId> rules_of_;
};

}  // namespace

StatusOr<Expr> MembersExpr(GrammarRules& rules, const MemberList& list) {
  const int64_t counts = std::max<int64_t>({2, list.min, list.max.value_or(0)});
  if (list.members.size() > 2000 ||
      static_cast<int64_t>(list.members.size()) * counts > kMaxCountedRules) {
    return Unimplemented("this many properties and such counts of them are not supported");
  }
  const auto needed = std::count_if(list.members.begin(), list.members.end(),
                                    [](const auto& member) { return member.required; });
  MemberList plain = list;
  if (plain.min <= needed) plain.min = 0;  // counted anyway
  if (plain.max && !plain.more && *plain.max >= std::ssize(plain.members)) plain.max.reset();
  return Members(rules, plain).From(0, 0);
}

namespace {

// The schemas for names that match exactly these of all patterns, and are not named.
SchemaSet SchemasOfClass(const Facts& facts, const std::vector<bool>& matched) {
  SchemaSet set;
  std::vector<bool> evaluated;
  size_t at = 0;
  for (const ObjectFacts& object : facts.objects) {
    bool listed = false;
    for (const ObjectFacts::Pattern& pattern : object.patterns) {
      if (!matched[at++]) continue;
      AddTo(set, pattern.schema);
      listed = true;
    }
    if (!listed && object.additional) AddTo(set, *object.additional);
    evaluated.push_back(listed || object.additional);
  }
  AddUnevaluated(facts.objects, evaluated, set);
  return set;
}

bool AllowsNothing(const SchemaSet& set) {
  return std::any_of(set.begin(), set.end(), [](const SchemaRef& schema) {
    return schema.node->kind == JsonValue::Kind::kBool && !schema.node->boolean;
  });
}

// What propertyNames leaves: one automaton, or a list of names.
struct AllowedNames {
  Dfa names;
  std::optional<std::vector<std::string>> listed;
};

StatusOr<AllowedNames> NamesOf(SchemaReader& reader, const Facts& facts) {
  DI_ASSIGN_OR_RETURN(Dfa any_name, StringValues({}));
  AllowedNames allowed{std::move(any_name), std::nullopt};
  if (facts.names.empty()) return allowed;
  SchemaSet set;
  for (const SchemaRef& names : facts.names) AddTo(set, names);
  DI_ASSIGN_OR_RETURN(std::vector<Facts> all, reader.Read(set, SchemaView::kInside));
  std::erase_if(all, [](const Facts& one) { return (one.types & kStringBit) == 0; });
  const bool listed = std::any_of(all.begin(), all.end(), [](const auto& f) { return f.values; });
  if (all.size() > 1 || (listed && all.size() != 1)) {
    return Refused(facts.at, "keyword 'propertyNames' with alternatives is not supported");
  }
  if (all.empty()) {
    allowed.listed.emplace();
  } else if (listed) {
    allowed.listed.emplace();
    for (const JsonValue* value : *all[0].values) {
      DI_ASSIGN_OR_RETURN(const bool holds, Allows(reader, all[0], *value));
      if (holds && value->IsString()) allowed.listed->push_back(value->text);
    }
  } else {
    DI_ASSIGN_OR_RETURN(allowed.names, StringValues(all[0].strings));
  }
  return allowed;
}

}  // namespace

StatusOr<std::vector<MoreProperties>> MorePropertiesOf(SchemaReader& reader, const Facts& facts,
                                                       const std::vector<std::string>& named) {
  std::vector<MoreProperties> more;
  DI_ASSIGN_OR_RETURN(AllowedNames allowed, NamesOf(reader, facts));
  if (allowed.listed) {
    for (const std::string& name : *allowed.listed) {
      if (std::find(named.begin(), named.end(), name) != named.end()) continue;
      more.push_back({std::nullopt, name, reader.ForProperty(facts, name)});
    }
    return more;
  }
  std::vector<const ObjectFacts::Pattern*> patterns;
  for (const ObjectFacts& object : facts.objects) {
    for (const auto& pattern : object.patterns) patterns.push_back(&pattern);
  }
  if (patterns.size() > kMaxPatterns) {
    return Refused(facts.at, "more than ", kMaxPatterns,
                   " patterns in keyword 'patternProperties' are not supported");
  }
  if (!named.empty()) {
    DI_ASSIGN_OR_RETURN(const Dfa others,
                        StringValues({.matches = {}, .excluded = named, .max_length = {}}));
    DI_ASSIGN_OR_RETURN(allowed.names, Dfa::Both(allowed.names, others));
  }
  for (size_t bits = 0; bits < size_t{1} << patterns.size(); ++bits) {
    std::vector<bool> matched;
    for (size_t i = 0; i < patterns.size(); ++i) matched.push_back((bits >> i & 1) != 0);
    MoreProperties part{allowed.names, "", SchemasOfClass(facts, matched)};
    if (AllowsNothing(part.schemas)) continue;
    for (size_t i = 0; i < patterns.size(); ++i) {
      DI_ASSIGN_OR_RETURN(Dfa names,
                          Dfa::Of(matched[i] ? patterns[i]->sure : patterns[i]->perhaps));
      if (!matched[i]) {
        DI_ASSIGN_OR_RETURN(names, Dfa::Not(names));
      }
      DI_ASSIGN_OR_RETURN(part.names, Dfa::Both(*part.names, names));
    }
    if (!part.names->empty()) more.push_back(std::move(part));
  }
  return more;
}

}  // namespace deepinfer
