#include "tokens/python_constants.h"

#include <algorithm>

namespace deepinfer {
namespace {

class Reader {
 public:
  Reader(std::string_view source, std::string_view name) : rest_(source), name_(name) {}

  // From behind the name on.
  StatusOr<std::string> ReadValue() {
    SkipSpaces();
    if (Take(":")) rest_.remove_prefix(std::min(rest_.find_first_of("=\n"), rest_.size()));
    if (!Take("=")) return Error("expected =");
    SkipSpaces();
    const bool in_parentheses = Take("(");
    std::string value;
    bool any = false;
    while (true) {
      in_parentheses ? SkipWhiteSpace() : SkipSpaces();
      if (!rest_.starts_with('"') && !rest_.starts_with('\'')) break;
      DI_RETURN_IF_ERROR(ReadString(value));
      any = true;
    }
    if (!any) return Error("expected a string");
    if (in_parentheses && !Take(")")) return Error("expected )");
    SkipSpaces();
    if (!rest_.empty() && rest_[0] != '\n' && rest_[0] != '\r' && rest_[0] != '#') {
      return Error("expected the end of the line");
    }
    return value;
  }

 private:
  Status Error(std::string_view what) const {
    return InvalidArgument(name_, ": ", what, " after its value's beginning");
  }
  bool Take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  void SkipAnyOf(std::string_view characters) {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(characters), rest_.size()));
  }
  void SkipSpaces() { SkipAnyOf(" \t"); }
  void SkipWhiteSpace() { SkipAnyOf(" \t\r\n"); }

  Status ReadString(std::string& out) {
    const bool is_long = rest_.starts_with("\"\"\"") || rest_.starts_with("'''");
    const std::string_view quotes = rest_.substr(0, is_long ? 3 : 1);
    rest_.remove_prefix(quotes.size());
    while (!rest_.empty() && !rest_.starts_with(quotes)) {
      if (rest_[0] == '\n' && !is_long) return Error("expected the end of the string");
      if (rest_[0] == '\\') {
        DI_RETURN_IF_ERROR(ReadEscape(out));
      } else {
        out += rest_[0];
        rest_.remove_prefix(1);
      }
    }
    return Take(quotes) ? OkStatus() : Error("expected the end of the string");
  }

  Status ReadEscape(std::string& out) {
    constexpr std::string_view kEscapes = "nt\\'\"";
    constexpr std::string_view kMeanings = "\n\t\\'\"";
    if (rest_.size() < 2) return Error("expected the end of the string");
    const char c = rest_[1];
    rest_.remove_prefix(2);
    if (c == '\n') return OkStatus();
    const size_t known = kEscapes.find(c);
    if (known == kEscapes.npos) return Error("expected an escape that is known here");
    out += kMeanings[known];
    return OkStatus();
  }

  std::string_view rest_;
  const std::string_view name_;
};

// What follows the last line that begins with the whole word `name` and assigns to it.
std::string_view BehindLastName(std::string_view source, std::string_view name) {
  std::string_view behind;
  for (size_t at = source.find(name); at != source.npos; at = source.find(name, at + 1)) {
    const std::string_view rest = source.substr(at + name.size());
    const bool begins_line = at == 0 || source[at - 1] == '\n';
    const size_t next = std::min(rest.find_first_not_of(" \t"), rest.size());
    const bool assigns =
        rest.substr(next).starts_with(':') ||
        (rest.substr(next).starts_with('=') && !rest.substr(next).starts_with("=="));
    if (begins_line && assigns) behind = rest;
  }
  return behind;
}

}  // namespace

StatusOr<std::string> PythonStringConstant(std::string_view source, std::string_view name) {
  const std::string_view behind = BehindLastName(source, name);
  if (behind.data() == nullptr) {
    return InvalidArgument("expected a line that begins with ", name,
                           " = and a string, found none");
  }
  return Reader(behind, name).ReadValue();
}

}  // namespace deepinfer
