#include <algorithm>
#include <optional>
#include <utility>

#include "tokens/regex.h"
#include "tokens/regex_classes.h"
#include "tokens/utf8.h"

namespace deepinfer {
namespace {

constexpr int kMaxDepth = 100;
constexpr int32_t kMaxCount = 100'000;

class Parser {
 public:
  Parser(std::string_view text, RegexMatch match)
      : text_(text),
        search_(match != RegexMatch::kWhole),
        perhaps_(match == RegexMatch::kSearchPerhaps) {}

  StatusOr<Regex> Parse();

 private:
  // What one unit of a class or one atom stands for.
  struct Unit {
    RegexClass chars;
    std::optional<char32_t> single;
  };

  StatusOr<Regex> Alternatives(int depth);
  StatusOr<Regex> Branch(int depth);
  StatusOr<Regex> Atom(int depth);
  StatusOr<Regex> Group(int depth);
  StatusOr<Regex> Class();
  StatusOr<Unit> ClassUnit();
  StatusOr<Unit> Escape(bool in_class);
  StatusOr<char32_t> Hex(int min_digits, int max_digits);
  StatusOr<char32_t> UnicodeEscape();
  StatusOr<Regex> Quantified(Regex atom);
  // {m}, {m,} or {m,n} at at_; nullopt: an ordinary brace.
  std::optional<std::pair<int64_t, int64_t>> Counts();

  Regex Members(const RegexClass& chars) const {
    return regex::Chars(perhaps_ ? chars.perhaps : chars.sure);
  }
  bool Done() const { return at_ >= text_.size(); }
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool Take(char c) {
    if (Done() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  char32_t NextChar() {
    const Utf8Step step = NextUtf8(text_.substr(at_));
    at_ += static_cast<size_t>(step.num_bytes);
    return step.code;
  }
  template <typename... Args>
  Status Broken(const Args&... args) const {
    return InvalidArgument("regular expression, byte ", at_, ": ", args...);
  }
  template <typename... Args>
  Status Refused(const Args&... args) const {
    return Unimplemented("regular expression, byte ", at_, ": ", args..., " is not supported");
  }

  const std::string_view text_;
  const bool search_, perhaps_;
  size_t at_ = 0;
};

StatusOr<Regex> Parser::Parse() {
  if (std::ssize(text_) > kMaxRegexSize) {
    return Unimplemented("regular expression: ", text_.size(), " bytes, at most ", kMaxRegexSize,
                         " are supported");
  }
  for (std::string_view rest = text_; !rest.empty();) {
    const Utf8Step step = NextUtf8(rest);
    if (step.kind != Utf8Step::Kind::kCharacter) {
      return InvalidArgument("regular expression, byte ", text_.size() - rest.size(),
                             ": not UTF-8");
    }
    rest.remove_prefix(static_cast<size_t>(step.num_bytes));
  }
  DI_ASSIGN_OR_RETURN(Regex regex, Alternatives(0));
  if (!Done()) return Broken("unmatched ')'");
  if (regex->size > kMaxRegexSize) {
    return Unimplemented("regular expression: with its repetitions written out it has more than ",
                         kMaxRegexSize, " characters, which is not supported");
  }
  return regex;
}

StatusOr<Regex> Parser::Alternatives(int depth) {
  if (depth > kMaxDepth) return Refused("nesting deeper than ", kMaxDepth);
  std::vector<Regex> branches;
  do {
    DI_ASSIGN_OR_RETURN(Regex branch, Branch(depth));
    branches.push_back(std::move(branch));
  } while (Take('|'));
  return regex::Alt(std::move(branches));
}

// Anchors stand at the ends of the outermost alternatives, where they say what surrounds a match.
StatusOr<Regex> Parser::Branch(int depth) {
  std::vector<Regex> parts;
  const bool open_ended = depth == 0 && search_;
  const Regex anything = regex::Repeat(regex::Chars(CharSet::All()), 0, -1);
  bool at_start = true, at_end = false;
  if (depth == 0 && Take('^')) at_start = false;
  if (at_start && open_ended) parts.push_back(anything);
  while (!Done() && Peek() != '|' && Peek() != ')') {
    if (at_end) return Refused("something behind '$'");
    if (depth == 0 && Take('$')) {
      at_end = true;
      continue;
    }
    DI_ASSIGN_OR_RETURN(Regex atom, Atom(depth));
    DI_ASSIGN_OR_RETURN(atom, Quantified(std::move(atom)));
    parts.push_back(std::move(atom));
  }
  if (!at_end && open_ended) parts.push_back(anything);
  // Python's '$' also stands in front of a last line end.
  if (at_end && perhaps_) parts.push_back(regex::Optional(regex::Text("\n")));
  return regex::Concat(std::move(parts));
}

StatusOr<Regex> Parser::Atom(int depth) {
  switch (Peek()) {
    case '(':
      return Group(depth);
    case '[':
      return Class();
    case '.':
      ++at_;
      return Members(AnyButLineEnds());
    case '\\': {
      DI_ASSIGN_OR_RETURN(const Unit unit, Escape(/*in_class=*/false));
      return Members(unit.chars);
    }
    case '^':
    case '$':
      return Refused("the anchor '", Peek(), "' inside an expression");
    case '*':
    case '+':
    case '?':
      return Broken("nothing to repeat in front of '", Peek(), "'");
    case '{':
      if (Counts()) return Broken("nothing to repeat in front of '{'");
      break;
    default:
      break;
  }
  return regex::Chars(CharSet::Of(NextChar()));
}

StatusOr<Regex> Parser::Group(int depth) {
  ++at_;
  if (Peek() == '?') {
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with("?=") || rest.starts_with("?!")) return Refused("look-ahead");
    if (rest.starts_with("?<=") || rest.starts_with("?<!")) return Refused("look-behind");
    if (rest.starts_with("?<") || rest.starts_with("?P<")) {
      const size_t close = rest.find('>');
      if (close == std::string_view::npos) return Broken("expected '>' behind the group's name");
      at_ += close + 1;
    } else if (rest.starts_with("?:")) {
      at_ += 2;
    } else {
      return Refused("the group '(?", FirstCharacter(rest.substr(1)), "'");
    }
  }
  DI_ASSIGN_OR_RETURN(Regex inside, Alternatives(depth + 1));
  if (!Take(')')) return Broken("expected ')'");
  return inside;
}

StatusOr<Regex> Parser::Class() {
  ++at_;
  const bool negated = Take('^');
  RegexClass all;
  for (bool first = true; first || Peek() != ']'; first = false) {
    if (Done()) return Broken("expected ']'");
    // Python takes a first ']' as a member, ECMAScript as the end.
    if (first && Peek() == ']') return Refused("']' at the start of a class");
    DI_ASSIGN_OR_RETURN(Unit unit, ClassUnit());
    if (Peek() == '-' && Peek(1) != ']' && Peek(1) != '\0') {
      ++at_;
      DI_ASSIGN_OR_RETURN(const Unit last, ClassUnit());
      if (!unit.single || !last.single) return Refused("a range to or from a class");
      if (*last.single < *unit.single) return Broken("a range whose end comes before its start");
      unit.chars.sure = unit.chars.perhaps = CharSet({{*unit.single, *last.single}});
    }
    all = {all.sure.Or(unit.chars.sure), all.perhaps.Or(unit.chars.perhaps)};
  }
  ++at_;
  return Members(negated ? RegexClass{all.perhaps.Not(), all.sure.Not()} : all);
}

StatusOr<Parser::Unit> Parser::ClassUnit() {
  if (Done()) return Broken("expected ']'");
  if (Peek() == '\\') return Escape(/*in_class=*/true);
  // Set operations of newer dialects.
  if (Peek() == '[' || (Peek() == '&' && Peek(1) == '&')) {
    if (Peek(1) == ':' || Peek() == '&') return Refused("'", text_.substr(at_, 2), "' in a class");
  }
  const char32_t c = NextChar();
  return Unit{{CharSet::Of(c), CharSet::Of(c)}, c};
}

StatusOr<Parser::Unit> Parser::Escape(bool in_class) {
  ++at_;
  if (Done()) return Broken("nothing behind the last '\\'");
  const char letter = Peek();
  if (std::string_view("dDwWsS").find(letter) != std::string_view::npos) {
    ++at_;
    return Unit{RegexClassOf(letter), std::nullopt};
  }
  const auto single = [](char32_t c) { return Unit{{CharSet::Of(c), CharSet::Of(c)}, c}; };
  constexpr std::string_view kLetters = "n\nt\tr\rf\fv\v";
  for (size_t i = 0; i < kLetters.size(); i += 2) {
    if (letter != kLetters[i]) continue;
    ++at_;
    return single(static_cast<unsigned char>(kLetters[i + 1]));
  }
  if (letter >= '1' && letter <= '9') return Refused("the back-reference '\\", letter, "'");
  if (letter == 'k') return Refused("the back-reference '\\k'");
  if (letter == 'b' && in_class) {
    ++at_;
    return single('\b');
  }
  if (letter == 'b' || letter == 'B') return Refused("the word boundary '\\", letter, "'");
  if (letter == '0' && (Peek(1) < '0' || Peek(1) > '9')) {
    ++at_;
    return single(0);
  }
  if (letter == 'x') {
    ++at_;
    DI_ASSIGN_OR_RETURN(const char32_t c, Hex(2, 2));
    return single(c);
  }
  if (letter == 'u') {
    DI_ASSIGN_OR_RETURN(const char32_t c, UnicodeEscape());
    return single(c);
  }
  const bool word = (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
                    (letter >= 'A' && letter <= 'Z');
  if (word) return Refused("the escape '\\", letter, "'");
  return single(NextChar());
}

StatusOr<char32_t> Parser::UnicodeEscape() {
  ++at_;
  if (Take('{')) {
    DI_ASSIGN_OR_RETURN(const char32_t c, Hex(1, 6));
    if (!Take('}')) return Broken("expected '}'");
    return c;
  }
  DI_ASSIGN_OR_RETURN(const char32_t high, Hex(4, 4));
  if (high < 0xd800 || high > 0xdfff) return high;
  if (high > 0xdbff || Peek() != '\\' || Peek(1) != 'u') return Broken("half a surrogate pair");
  at_ += 2;
  DI_ASSIGN_OR_RETURN(const char32_t low, Hex(4, 4));
  if (low < 0xdc00 || low > 0xdfff) return Broken("half a surrogate pair");
  return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

StatusOr<char32_t> Parser::Hex(int min_digits, int max_digits) {
  char32_t value = 0;
  int digits = 0;
  for (; digits < max_digits; ++digits, ++at_) {
    const char c = Peek();
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) break;
    value = value * 16 + static_cast<char32_t>(digit);
  }
  if (digits < min_digits) return Broken("expected ", min_digits, " hexadecimal digits");
  if (value > 0x10ffff) return Broken("no such character");
  return value;
}

std::optional<std::pair<int64_t, int64_t>> Parser::Counts() {
  size_t at = at_ + 1;
  const auto number = [&]() -> std::optional<int64_t> {
    int64_t value = 0;
    const size_t start = at;
    for (; at < text_.size() && text_[at] >= '0' && text_[at] <= '9'; ++at) {
      value = std::min<int64_t>(kMaxCount + 1, value * 10 + (text_[at] - '0'));
    }
    return at == start ? std::nullopt : std::optional(value);
  };
  const auto min = number();
  if (!min) return std::nullopt;
  int64_t max = *min;
  if (at < text_.size() && text_[at] == ',') {
    ++at;
    max = number().value_or(-1);
  }
  if (at >= text_.size() || text_[at] != '}') return std::nullopt;
  at_ = at + 1;
  return std::pair(*min, max);
}

StatusOr<Regex> Parser::Quantified(Regex atom) {
  for (bool first = true;; first = false) {
    std::pair<int64_t, int64_t> counts;
    if (Peek() == '*' || Peek() == '+' || Peek() == '?') {
      counts = {Peek() == '+' ? 1 : 0, Peek() == '?' ? 1 : -1};
      ++at_;
    } else if (Peek() == '{') {
      const auto given = Counts();
      if (!given) return atom;
      counts = *given;
    } else {
      return atom;
    }
    if (!first) return Broken("a repetition of a repetition");
    if (counts.first > kMaxCount || counts.second > kMaxCount) {
      return Refused("a repetition of more than ", kMaxCount);
    }
    if (counts.second >= 0 && counts.second < counts.first) {
      return Broken("a repetition whose end comes before its start");
    }
    if (Peek() == '+') return Refused("the possessive repetition");
    Take('?');  // lazy or greedy, the same texts match
    atom = regex::Repeat(std::move(atom), static_cast<int32_t>(counts.first),
                         static_cast<int32_t>(counts.second));
  }
}

}  // namespace

StatusOr<Regex> ParseRegex(std::string_view text, RegexMatch match) {
  return Parser(text, match).Parse();
}

}  // namespace deepinfer
