// tokens/grammar_rules.h: grammar rules as trees, and their text in the grammar library's EBNF.
//
// What can never be finished (a rule that needs a value that nothing satisfies) is cut away when
// the text is made, so that no output runs into a dead end.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokens/dfa.h"
#include "tokens/regex.h"

namespace deepinfer {

struct ExprNode;
using Expr = std::shared_ptr<const ExprNode>;  // immutable, subtrees are shared

struct RuleId {
  int32_t v = -1;
  auto operator<=>(const RuleId&) const = default;
};

struct ExprNode {
  enum class Kind { kNever, kText, kChars, kRule, kSequence, kChoice, kRepeat };
  Kind kind;
  std::string text;
  CharSet chars;
  RuleId rule;
  std::vector<Expr> parts;
  int64_t min = 0, max = 0;  // of kRepeat; max < 0: no bound
};

namespace expr {
Expr Never();
Expr Text(std::string text);  // "" is the empty text. Requires: UTF-8
Expr Chars(CharSet chars);
Expr Rule(RuleId rule);
Expr Sequence(std::vector<Expr> parts);
Expr Choice(std::vector<Expr> parts);
Expr Repeat(Expr part, int64_t min, int64_t max);
inline Expr Optional(Expr part) { return Repeat(std::move(part), 0, 1); }
}  // namespace expr

class GrammarRules {
 public:
  RuleId NewRule();
  void Define(RuleId rule, Expr body);
  Expr Add(Expr body);  // a new rule
  // The rule for this expression, matched as one automaton.
  Expr AddRegex(const Regex& regex);
  // The rule for what the automaton matches; with json: for the inside of a JSON string of it.
  Expr AddDfa(const Dfa& dfa, bool json);
  // The token with this id and no other.
  Expr AddToken(int32_t id);

  int32_t num_rules() const { return static_cast<int32_t>(rules_.size()); }
  // All rules that `root` needs, under the name `root` for it.
  // Errors: kInvalidArgument if `root` can never be finished, kUnimplemented past kMaxBytes.
  StatusOr<std::string> Text(const Expr& root) const;

  static constexpr int64_t kMaxBytes = 4 << 20;

 private:
  struct Rule {
    Expr body;        // or:
    std::string raw;  // in the library's words
  };
  RuleId AddRaw(std::string raw);

  std::vector<Rule> rules_;
  std::map<std::string, RuleId> raw_;  // equal ones are one rule
};

}  // namespace deepinfer
