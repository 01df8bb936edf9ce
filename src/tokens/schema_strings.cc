#include "tokens/schema_strings.h"

#include <algorithm>
#include <utility>

namespace deepinfer {
namespace {

Regex AnyText() { return regex::Repeat(regex::Chars(CharSet::All()), 0, -1); }

// One character of a JSON string in any of its spellings; of \u escapes those of one code unit.
Regex JsonCharacter() {
  const CharSet hex({{'0', '9'}, {'A', 'F'}, {'a', 'f'}});
  const CharSet no_d({{'0', '9'}, {'A', 'C'}, {'E', 'F'}, {'a', 'c'}, {'e', 'f'}});
  const CharSet d({{'D', 'D'}, {'d', 'd'}});
  const Regex digit = regex::Chars(hex);
  const Regex unit = regex::Alt(
      {regex::Concat({regex::Chars(no_d), digit, digit, digit}),
       regex::Concat({regex::Chars(d), regex::Chars(CharSet({{'0', '7'}})), digit, digit})});
  CharSet shorts;
  for (const char c : std::string_view("\"\\/bfnrt")) {
    shorts = shorts.Or(CharSet::Of(static_cast<char32_t>(c)));
  }
  return regex::Alt(
      {regex::Chars(CharSet({{0, 0x1f}, {'"', '"'}, {'\\', '\\'}}).Not()),
       regex::Concat({regex::Text("\\"), regex::Alt({regex::Chars(shorts),
                                                     regex::Concat({regex::Text("u"), unit})})})});
}

// `c`, `min` to `max` times. The library counts what is longer than 128: quick to build, while each
// state of its own would cost 20 ms on a large vocabulary, and exact; but its masks take
// milliseconds.
Expr Length(GrammarRules& rules, const Regex& c, int64_t min, std::optional<int64_t> max) {
  if (max && *max < min) return expr::Never();
  return rules.AddRegex(
      regex::Repeat(c, static_cast<int32_t>(min), max ? static_cast<int32_t>(*max) : -1));
}

Expr Quoted(Expr inside) {
  return expr::Sequence({expr::Text("\""), std::move(inside), expr::Text("\"")});
}

// The shortest and longest text that it matches; no longest: unbounded.
std::pair<int64_t, std::optional<int64_t>> LengthsOf(const Regex& regex) {
  using Kind = RegexNode::Kind;
  if (regex->kind == Kind::kChars) return {1, 1};
  if (regex->kind == Kind::kNever || regex->kind == Kind::kEmpty) return {0, 0};
  if (regex->kind == Kind::kRepeat) {
    const auto [low, high] = LengthsOf(regex->parts[0]);
    std::optional<int64_t> most;
    if (high && regex->max >= 0) most = *high * regex->max;
    return {low * regex->min, most};
  }
  const bool alternatives = regex->kind == Kind::kAlt;
  int64_t least = alternatives ? INT64_MAX : 0;
  std::optional<int64_t> most = 0;
  for (const Regex& part : regex->parts) {
    const auto [low, high] = LengthsOf(part);
    least = alternatives ? std::min(least, low) : least + low;
    if (most && high) {
      most = alternatives ? std::max(*most, *high) : *most + *high;
    } else {
      most = std::nullopt;
    }
  }
  return {least, most};
}

// The facts without lengths that the expressions keep anyway.
StringFacts WithoutIdleLengths(StringFacts facts) {
  for (const Regex& regex : facts.matches) {
    const auto [least, most] = LengthsOf(regex);
    if (least >= facts.min_length) facts.min_length = 0;
    if (most && facts.max_length && *most <= *facts.max_length) facts.max_length.reset();
  }
  return facts;
}

}  // namespace

StatusOr<Dfa> StringValues(const StringFacts& given) {
  const StringFacts facts = WithoutIdleLengths(given);
  DI_ASSIGN_OR_RETURN(Dfa all, Dfa::Of(facts.matches.empty() ? AnyText() : facts.matches[0]));
  for (size_t i = 1; i < facts.matches.size(); ++i) {
    DI_ASSIGN_OR_RETURN(const Dfa next, Dfa::Of(facts.matches[i]));
    DI_ASSIGN_OR_RETURN(all, Dfa::Both(all, next));
  }
  if (facts.min_length > 0 || facts.max_length) {
    const int64_t most = facts.max_length.value_or(-1);
    if (std::max(facts.min_length, most) > Dfa::kMaxStates) {
      return Unimplemented("a length above ", Dfa::kMaxStates,
                           " beside other demands on the string is not supported");
    }
    if (facts.max_length && *facts.max_length < facts.min_length) return Dfa::Of(regex::Never());
    DI_ASSIGN_OR_RETURN(
        const Dfa length,
        Dfa::Of(regex::Repeat(regex::Chars(CharSet::All()), static_cast<int32_t>(facts.min_length),
                              static_cast<int32_t>(most))));
    DI_ASSIGN_OR_RETURN(all, Dfa::Both(all, length));
  }
  if (!facts.excluded.empty()) {
    std::vector<Regex> texts;
    for (const std::string& text : facts.excluded) texts.push_back(regex::Text(text));
    DI_ASSIGN_OR_RETURN(Dfa excluded, Dfa::Of(regex::Alt(std::move(texts))));
    DI_ASSIGN_OR_RETURN(excluded, Dfa::Not(excluded));
    DI_ASSIGN_OR_RETURN(all, Dfa::Both(all, excluded));
  }
  return all;
}

StatusOr<Expr> StringExpr(GrammarRules& rules, const StringFacts& given, StringStyle style) {
  const StringFacts facts = WithoutIdleLengths(given);
  const bool json = style == StringStyle::kJson;
  if (facts.matches.empty() && facts.excluded.empty()) {
    const Regex c = json ? JsonCharacter() : regex::Chars(CharSet::All());
    const bool any = facts.any();
    if (any && json) {
      return rules.AddRegex(
          regex::Concat({regex::Text("\""), regex::Repeat(c, 0, -1), regex::Text("\"")}));
    }
    Expr text = Length(rules, c, facts.min_length, facts.max_length);
    return json ? Quoted(std::move(text)) : text;
  }
  const bool lengths = facts.min_length > 0 || facts.max_length;
  if (facts.matches.size() == 1 && !lengths && facts.excluded.empty()) {
    if (!json) return rules.AddRegex(facts.matches[0]);
    return rules.AddRegex(
        regex::Concat({regex::Text("\""), JsonEscaped(facts.matches[0]), regex::Text("\"")}));
  }
  DI_ASSIGN_OR_RETURN(const Dfa values, StringValues(facts));
  Expr text = rules.AddDfa(values, json);
  return json ? Quoted(std::move(text)) : text;
}

}  // namespace deepinfer
