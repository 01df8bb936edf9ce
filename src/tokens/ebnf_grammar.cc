#include "tokens/ebnf_grammar.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "tokens/grammar_rules.h"
#include "tokens/utf8.h"

namespace deepinfer {
namespace {

constexpr int kMaxDepth = 100;
constexpr int64_t kMaxCount = 100'000;
constexpr size_t kMaxRules = 10'000;

bool IsNameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  StatusOr<std::string> Parse();

 private:
  struct Rule {
    std::string name;
    RuleId id;
    Expr body;     // null: not defined
    int line = 0;  // where it was named first
  };

  Status ParseRule();
  StatusOr<Expr> Alternatives(int depth);
  StatusOr<Expr> Sequence(int depth);
  StatusOr<Expr> Atom(int depth);
  StatusOr<Expr> Literal();
  StatusOr<Expr> Class();
  StatusOr<Expr> Repeated(Expr atom);
  StatusOr<char32_t> Character();
  StatusOr<char32_t> Hex(int digits);
  StatusOr<int64_t> Count();
  Status CheckNames() const;

  // Skips blanks, line ends and comments.
  void Skip();
  bool AtRuleStart() const;
  std::string_view TakeName();
  Rule& RuleOf(std::string_view name);
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool Done() const { return at_ >= text_.size(); }
  bool Take(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  int Line() const {
    return 1 + static_cast<int>(std::count(
                   text_.begin(),
                   text_.begin() + static_cast<std::ptrdiff_t>(std::min(at_, text_.size())), '\n'));
  }
  template <typename... Args>
  Status Broken(const Args&... args) const {
    return InvalidArgument("grammar, line ", Line(), ": ", args...);
  }

  const std::string_view text_;
  size_t at_ = 0;
  GrammarRules out_;
  std::vector<Rule> rules_;
  std::map<std::string, size_t, std::less<>> by_name_;
};

void Parser::Skip() {
  for (; !Done(); ++at_) {
    if (Peek() == '#') {
      while (!Done() && Peek() != '\n') ++at_;
    }
    if (Done() || std::string_view(" \t\r\n").find(Peek()) == std::string_view::npos) return;
  }
}

std::string_view Parser::TakeName() {
  const size_t start = at_;
  while (IsNameChar(Peek())) ++at_;
  return text_.substr(start, at_ - start);
}

bool Parser::AtRuleStart() const {
  Parser ahead(text_);
  ahead.at_ = at_;
  if (ahead.TakeName().empty()) return false;
  ahead.Skip();
  return ahead.Take("::=");
}

Parser::Rule& Parser::RuleOf(std::string_view name) {
  const auto [known, fresh] = by_name_.emplace(name, rules_.size());
  if (fresh) rules_.push_back({std::string(name), out_.NewRule(), nullptr, Line()});
  return rules_[known->second];
}

StatusOr<std::string> Parser::Parse() {
  std::string repaired;
  if (RepairUtf8(text_, repaired).data() != text_.data()) {
    return InvalidArgument("grammar: the text is not UTF-8");
  }
  for (Skip(); !Done(); Skip()) DI_RETURN_IF_ERROR(ParseRule());
  DI_RETURN_IF_ERROR(CheckNames());
  for (const Rule& rule : rules_) out_.Define(rule.id, rule.body);
  auto text = out_.Text(expr::Rule(rules_[by_name_.find("root")->second].id));
  return text.ok() ? std::move(text) : Annotate(text.status(), "grammar: rule 'root'");
}

Status Parser::ParseRule() {
  if (!AtRuleStart()) return Broken("expected `name ::= ...`");
  const std::string name(TakeName());
  Skip();
  Take("::=");
  if (RuleOf(name).body) return Broken("rule '", name, "' is defined twice");
  DI_ASSIGN_OR_RETURN(Expr body, Alternatives(0));
  RuleOf(name).body = std::move(body);
  if (rules_.size() > kMaxRules) return Broken("more than ", kMaxRules, " rules");
  Skip();
  if (!Done() && !AtRuleStart())
    return Broken("unexpected '", FirstCharacter(text_.substr(at_)), "'");
  return OkStatus();
}

StatusOr<Expr> Parser::Alternatives(int depth) {
  if (depth > kMaxDepth) return Broken("more than ", kMaxDepth, " groups inside each other");
  std::vector<Expr> ways;
  do {
    DI_ASSIGN_OR_RETURN(Expr way, Sequence(depth));
    ways.push_back(std::move(way));
    Skip();
  } while (Take("|"));
  return expr::Choice(std::move(ways));
}

StatusOr<Expr> Parser::Sequence(int depth) {
  std::vector<Expr> parts;
  for (Skip(); !Done() && Peek() != '|' && Peek() != ')' && !AtRuleStart(); Skip()) {
    DI_ASSIGN_OR_RETURN(Expr atom, Atom(depth));
    DI_ASSIGN_OR_RETURN(atom, Repeated(std::move(atom)));
    parts.push_back(std::move(atom));
  }
  if (parts.empty()) return expr::Text("");
  return parts.size() == 1 ? parts[0] : expr::Sequence(std::move(parts));
}

StatusOr<Expr> Parser::Atom(int depth) {
  if (Take("(")) {
    DI_ASSIGN_OR_RETURN(Expr inside, Alternatives(depth + 1));
    Skip();
    if (!Take(")")) return Broken("expected ')'");
    return inside;
  }
  if (Take("\"")) return Literal();
  if (Take("[")) return Class();
  if (Take(".")) return expr::Chars(CharSet::All());
  if (!IsNameChar(Peek())) return Broken("unexpected '", FirstCharacter(text_.substr(at_)), "'");
  const std::string_view name = TakeName();
  if (Peek() == '(') return Broken("'", name, "(...)' is not part of the notation");
  return expr::Rule(RuleOf(name).id);
}

StatusOr<Expr> Parser::Literal() {
  std::string text;
  while (!Take("\"")) {
    if (Done() || Peek() == '\n') return Broken("expected '\"' at the end of the literal");
    DI_ASSIGN_OR_RETURN(const char32_t c, Character());
    AppendUtf8(c, text);
  }
  return expr::Text(std::move(text));
}

StatusOr<Expr> Parser::Class() {
  const bool negated = Take("^");
  std::vector<CharRange> ranges;
  while (!Take("]")) {
    if (Done() || Peek() == '\n') return Broken("expected ']' at the end of the class");
    DI_ASSIGN_OR_RETURN(const char32_t first, Character());
    char32_t last = first;
    if (Peek() == '-' && text_.substr(at_ + 1, 1) != "]") {
      ++at_;
      DI_ASSIGN_OR_RETURN(last, Character());
      if (last < first) return Broken("a range whose end comes before its start");
    }
    ranges.push_back({first, last});
  }
  CharSet chars(std::move(ranges));
  if (negated) chars = chars.Not();
  if (chars.empty()) return expr::Never();
  return expr::Chars(std::move(chars));
}

StatusOr<char32_t> Parser::Character() {
  if (Done()) return Broken("the text ends inside a literal or class");
  if (!Take("\\")) {
    const Utf8Step step = NextUtf8(text_.substr(at_));
    at_ += static_cast<size_t>(step.num_bytes);
    return step.code;
  }
  const char c = Peek();
  ++at_;
  switch (c) {
    case 'n':
      return U'\n';
    case 'r':
      return U'\r';
    case 't':
      return U'\t';
    case 'x':
      return Hex(2);
    case 'u':
      return Hex(4);
    case 'U':
      return Hex(8);
    default:
      break;
  }
  if (c != '\0' && std::string_view("\"\\[]-^/.").find(c) != std::string_view::npos) {
    return static_cast<char32_t>(c);
  }
  return Broken("unknown escape '\\", FirstCharacter(text_.substr(at_ - 1)), "'");
}

StatusOr<char32_t> Parser::Hex(int digits) {
  uint32_t value = 0;
  for (int i = 0; i < digits; ++i, ++at_) {
    const char c = Peek();
    const bool small = c >= 'a' && c <= 'f', large = c >= 'A' && c <= 'F';
    if (!small && !large && (c < '0' || c > '9')) {
      return Broken("expected ", digits, " hexadecimal digits");
    }
    value = value * 16 + static_cast<uint32_t>(small   ? c - 'a' + 10
                                               : large ? c - 'A' + 10
                                                       : c - '0');
  }
  if (value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return Broken("no such character");
  return static_cast<char32_t>(value);
}

StatusOr<int64_t> Parser::Count() {
  int64_t value = 0;
  const size_t start = at_;
  for (; Peek() >= '0' && Peek() <= '9'; ++at_) {
    value = std::min(kMaxCount + 1, value * 10 + (Peek() - '0'));
  }
  if (at_ == start) return Broken("expected a number");
  if (value > kMaxCount) return Broken("a repetition of more than ", kMaxCount);
  return value;
}

StatusOr<Expr> Parser::Repeated(Expr atom) {
  for (;;) {
    if (Take("*")) {
      atom = expr::Repeat(std::move(atom), 0, -1);
    } else if (Take("+")) {
      atom = expr::Repeat(std::move(atom), 1, -1);
    } else if (Take("?")) {
      atom = expr::Optional(std::move(atom));
    } else if (Take("{")) {
      int64_t min = 0;
      if (Peek() != ',') {
        DI_ASSIGN_OR_RETURN(min, Count());
      }
      int64_t max = min;
      if (Take(",")) {
        max = -1;
        if (Peek() != '}') {
          DI_ASSIGN_OR_RETURN(max, Count());
        }
      }
      if (!Take("}")) return Broken("expected '}'");
      if (max >= 0 && max < min) return Broken("a repetition whose end comes before its start");
      atom = expr::Repeat(std::move(atom), min, max);
    } else {
      return atom;
    }
  }
}

Status Parser::CheckNames() const {
  if (!by_name_.contains("root")) return InvalidArgument("grammar: there is no rule 'root'");
  for (const Rule& rule : rules_) {
    if (rule.body) continue;
    return InvalidArgument("grammar, line ", rule.line, ": rule '", rule.name, "' is not defined");
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::string> EbnfGrammar(std::string_view text) { return Parser(text).Parse(); }

}  // namespace deepinfer
