#include "tokens/grammar_rules.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace deepinfer {
namespace {
using Kind = ExprNode::Kind;
Expr Make(ExprNode node) { return std::make_shared<const ExprNode>(std::move(node)); }
}  // namespace

namespace expr {

Expr Never() { return Make({.kind = Kind::kNever}); }
Expr Text(std::string text) { return Make({.kind = Kind::kText, .text = std::move(text)}); }
Expr Chars(CharSet chars) { return Make({.kind = Kind::kChars, .chars = std::move(chars)}); }
Expr Rule(RuleId rule) { return Make({.kind = Kind::kRule, .rule = rule}); }
Expr Sequence(std::vector<Expr> parts) {
  return Make({.kind = Kind::kSequence, .parts = std::move(parts)});
}
Expr Choice(std::vector<Expr> parts) {
  if (parts.empty()) return Never();
  if (parts.size() == 1) return parts[0];
  return Make({.kind = Kind::kChoice, .parts = std::move(parts)});
}
Expr Repeat(Expr part, int64_t min, int64_t max) {
  if (max == 0) return Text("");
  if (min == 1 && max == 1) return part;
  return Make({.kind = Kind::kRepeat, .parts = {std::move(part)}, .min = min, .max = max});
}

}  // namespace expr

namespace {

std::string Quoted(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (byte < 0x20 || byte == 0x7f) {
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      out += c;
    }
  }
  return out + "\"";
}

void AppendClassChar(char32_t c, std::string& out) {
  const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  char buffer[16];
  std::snprintf(buffer, sizeof buffer,
                plain         ? "%c"
                : c <= 0xffff ? "\\u%04x"
                              : "\\U%08x",
                static_cast<unsigned>(c));
  out += buffer;
}

std::string ClassText(const CharSet& chars) {
  std::string out = "[";
  for (const CharRange& range : chars.RangesOfOneLength()) {
    AppendClassChar(range.first, out);
    if (range.first == range.last) continue;
    out += '-';
    AppendClassChar(range.last, out);
  }
  return out + "]";
}

std::string RuleName(RuleId rule) { return StrCat("r", rule.v); }

// What finishable rules make of an expression.
class Finishable {
 public:
  explicit Finishable(std::vector<bool> rules) : rules_(std::move(rules)) {}

  bool Holds(const ExprNode& node) const {
    const auto part = [this](const Expr& e) { return Holds(*e); };
    switch (node.kind) {
      case Kind::kNever:
        return false;
      case Kind::kText:
      case Kind::kChars:
        return true;
      case Kind::kRule:
        return rules_[static_cast<size_t>(node.rule.v)];
      case Kind::kSequence:
        return std::all_of(node.parts.begin(), node.parts.end(), part);
      case Kind::kChoice:
        return std::any_of(node.parts.begin(), node.parts.end(), part);
      case Kind::kRepeat:
        return node.min == 0 || Holds(*node.parts[0]);
    }
    return false;
  }
  bool Learn(size_t rule, const ExprNode& body) {
    if (rules_[rule] || !Holds(body)) return false;
    return rules_[rule] = true;
  }

  // The text of what is left; requires: Holds(node). Collects the rules that it names.
  void Append(const ExprNode& node, std::string& out, std::vector<RuleId>& named) const {
    switch (node.kind) {
      case Kind::kNever:
        return;
      case Kind::kText:
        out += Quoted(node.text);
        return;
      case Kind::kChars:
        out += ClassText(node.chars);
        return;
      case Kind::kRule:
        out += RuleName(node.rule);
        named.push_back(node.rule);
        return;
      case Kind::kSequence:
        AppendParts(node, " ", out, named);
        return;
      case Kind::kChoice:
        AppendParts(node, " | ", out, named);
        return;
      case Kind::kRepeat:
        break;
    }
    if (!Holds(*node.parts[0])) {
      out += "\"\"";
      return;
    }
    out += "(";
    Append(*node.parts[0], out, named);
    out += ")";
    if (node.max < 0 && node.min <= 1) {
      out += node.min == 0 ? "*" : "+";
    } else if (node.min == 0 && node.max == 1) {
      out += "?";
    } else {
      out += StrCat("{", node.min, node.max == node.min ? "" : ",");
      if (node.max >= 0 && node.max != node.min) out += StrCat(node.max);
      out += "}";
    }
  }

 private:
  void AppendParts(const ExprNode& node, std::string_view between, std::string& out,
                   std::vector<RuleId>& named) const {
    out += "(";
    bool first = true;
    for (const Expr& part : node.parts) {
      if (node.kind == Kind::kChoice && !Holds(*part)) continue;
      if (!first) out += between;
      first = false;
      Append(*part, out, named);
    }
    if (first) out += "\"\"";
    out += ")";
  }

  std::vector<bool> rules_;
};

}  // namespace

RuleId GrammarRules::NewRule() {
  rules_.push_back({});
  return {num_rules() - 1};
}

void GrammarRules::Define(RuleId rule, Expr body) {
  rules_[static_cast<size_t>(rule.v)].body = std::move(body);
}

Expr GrammarRules::Add(Expr body) {
  const RuleId rule = NewRule();
  Define(rule, std::move(body));
  return expr::Rule(rule);
}

RuleId GrammarRules::AddRaw(std::string raw) {
  if (const auto known = raw_.find(raw); known != raw_.end()) return known->second;
  const RuleId rule = NewRule();
  rules_.back().raw = raw;
  raw_.emplace(std::move(raw), rule);
  return rule;
}

Expr GrammarRules::AddRegex(const Regex& regex) {
  if (regex->kind == RegexNode::Kind::kNever) return expr::Never();
  if (regex->kind == RegexNode::Kind::kEmpty) return expr::Text("");
  return expr::Rule(AddRaw(StrCat("Regex(", Quoted(LibraryRegex(regex)), ")")));
}

Expr GrammarRules::AddDfa(const Dfa& dfa, bool json) {
  if (dfa.empty()) return expr::Never();
  // As one expression if that stays short; else a rule for each state.
  constexpr int64_t kMaxExpression = 4000;
  if (const auto regex = dfa.ToRegex(kMaxExpression); regex.ok()) {
    return AddRegex(json ? JsonEscaped(*regex) : *regex);
  }
  std::vector<RuleId> ids;
  for (size_t i = 0; i < dfa.states().size(); ++i) ids.push_back(NewRule());
  for (size_t i = 0; i < dfa.states().size(); ++i) {
    std::vector<Expr> ways;
    for (const Dfa::Edge& edge : dfa.states()[i].edges) {
      const Regex chars = regex::Chars(edge.chars);
      Expr one = json ? AddRegex(JsonEscaped(chars)) : expr::Chars(edge.chars);
      ways.push_back(
          expr::Sequence({std::move(one), expr::Rule(ids[static_cast<size_t>(edge.to)])}));
    }
    if (dfa.states()[i].accepting) ways.push_back(expr::Text(""));
    Define(ids[i], expr::Choice(std::move(ways)));
  }
  return expr::Rule(ids[0]);
}

Expr GrammarRules::AddToken(int32_t id) { return expr::Rule(AddRaw(StrCat("Token(", id, ")"))); }

StatusOr<std::string> GrammarRules::Text(const Expr& root) const {
  std::vector<bool> known(rules_.size());
  for (size_t i = 0; i < rules_.size(); ++i) known[i] = !rules_[i].raw.empty();
  Finishable finishable(std::move(known));
  for (bool more = true; more;) {
    more = false;
    for (size_t i = rules_.size(); i-- > 0;) {
      // A rule that was never defined belongs to a schema that was given up.
      if (rules_[i].body) more |= finishable.Learn(i, *rules_[i].body);
    }
  }
  if (!finishable.Holds(*root)) return InvalidArgument("nothing can satisfy it");
  std::string text = "root ::= ";
  std::vector<RuleId> todo;
  std::vector<bool> done(rules_.size());
  finishable.Append(*root, text, todo);
  text += "\n";
  while (!todo.empty()) {
    const RuleId rule = todo.back();
    todo.pop_back();
    const auto at = static_cast<size_t>(rule.v);
    if (done[at]) continue;
    done[at] = true;
    text += RuleName(rule) + " ::= ";
    if (rules_[at].raw.empty()) {
      finishable.Append(*rules_[at].body, text, todo);
    } else {
      text += rules_[at].raw;
    }
    text += "\n";
    if (std::ssize(text) > kMaxBytes) {
      return Unimplemented("a grammar of more than ", kMaxBytes,
                           " bytes would be needed, which is not supported");
    }
  }
  return text;
}

}  // namespace deepinfer
