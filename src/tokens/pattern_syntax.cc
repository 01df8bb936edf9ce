#include "tokens/pattern_syntax.h"

#include <algorithm>
#include <array>

namespace deepinfer {
namespace {

// General categories: the same characters to both libraries.
constexpr std::array<std::string_view, 37> kCategories = {
    "L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc", "Me", "N",  "Nd", "Nl",
    "No", "P",  "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S",  "Sm", "Sc", "Sk",
    "So", "Z",  "Zs", "Zl", "Zp", "C",  "Cc", "Cf", "Co", "Cn", "Cs"};

constexpr std::string_view kWordProperties = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";

bool IsIn(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }
bool IsLetterOrDigit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool IsHexDigit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// Reads a pattern from left to right and writes the same for PCRE2. Nothing nests in the reader:
// groups need no matching here, and classes inside classes are refused.
class Translator {
 public:
  explicit Translator(std::string_view pattern) : in_(pattern) {}

  StatusOr<std::string> Run() {
    while (!AtEnd()) DI_RETURN_IF_ERROR(Item());
    return std::move(out_);
  }

 private:
  bool AtEnd() const { return at_ >= in_.size(); }
  bool Next(std::string_view text) const { return in_.substr(at_).starts_with(text); }
  void Copy(size_t count) {
    out_ += in_.substr(at_, count);
    at_ += count;
  }
  void Replace(size_t count, std::string_view text) {
    out_ += text;
    at_ += count;
  }
  Status Refuse(size_t count) const {
    size_t end = std::min(at_ + count, in_.size());
    while (end < in_.size() && (in_[end] & 0xC0) == 0x80) ++end;  // whole characters
    return Unimplemented("pattern ", in_, ": \"", in_.substr(at_, end - at_), "\" at byte ", at_,
                         " is not supported");
  }

  Status Item() {
    const char c = in_[at_];
    if (c == '\\') return Escape(/*in_class=*/false);
    if (c == '[') return Class();
    if (c == '(') return Group();
    if (c == '{') return Repeat();
    if (IsIn(c, "?*+")) return Quantifier();
    if (IsIn(c, "^$")) return Refuse(1);  // Oniguruma: at every line
    Copy(1);
    return OkStatus();
  }

  // ? * + and their lazy and possessive forms.
  Status Quantifier() {
    Copy(1);
    if (!AtEnd() && IsIn(in_[at_], "?+")) Copy(1);
    if (!AtEnd() && IsIn(in_[at_], "?*+{")) return Refuse(1);
    return OkStatus();
  }

  // {n}, {n,}, {n,m}, also lazy. Oniguruma reads {,m} and {n}? and {n,m}+ differently.
  Status Repeat() {
    const size_t end = in_.find('}', at_);
    if (end == std::string_view::npos) return Refuse(1);
    const std::string_view inside = in_.substr(at_ + 1, end - at_ - 1);
    const size_t comma = inside.find(',');
    const auto digits = [](std::string_view s) {
      return std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
    };
    const std::string_view low = inside.substr(0, comma);
    const std::string_view high = comma == std::string_view::npos ? "" : inside.substr(comma + 1);
    const size_t length = end + 1 - at_;
    if (low.empty() || !digits(low) || !digits(high)) return Refuse(length);
    Copy(length);
    if (comma != std::string_view::npos && Next("?")) Copy(1);
    if (!AtEnd() && IsIn(in_[at_], "?*+{")) return Refuse(1);
    return OkStatus();
  }

  Status Group() {
    for (const std::string_view opening : {"(?:", "(?i:", "(?=", "(?!", "(?<=", "(?<!", "(?>"}) {
      if (!Next(opening)) continue;
      Copy(opening.size());
      return OkStatus();
    }
    if (Next("(?") || Next("(*")) return Refuse(3);
    Copy(1);
    return OkStatus();
  }

  Status Class() {
    Copy(1);
    if (Next("^")) Copy(1);
    if (Next("]")) return Refuse(1);
    while (!AtEnd() && in_[at_] != ']') {
      if (in_[at_] == '\\') {
        DI_RETURN_IF_ERROR(Escape(/*in_class=*/true));
      } else if (in_[at_] == '[' || Next("&&")) {
        return Refuse(2);
      } else {
        Copy(1);
      }
    }
    if (AtEnd()) return InvalidArgument("pattern ", in_, ": a class has no ]");
    Copy(1);
    return OkStatus();
  }

  Status Escape(bool in_class) {
    if (at_ + 1 >= in_.size()) return InvalidArgument("pattern ", in_, ": ends in a backslash");
    const char c = in_[at_ + 1];
    if (IsIn(c, "rntfdD")) {
      Copy(2);
    } else if (c == 's') {
      Replace(2, R"(\p{White_Space})");
    } else if (c == 'S') {
      Replace(2, R"(\P{White_Space})");
    } else if (c == 'w') {
      Replace(2, in_class ? std::string(kWordProperties) : StrCat("[", kWordProperties, "]"));
    } else if (c == 'W' && !in_class) {
      Replace(2, StrCat("[^", kWordProperties, "]"));
    } else if (c == 'h') {
      Replace(2, in_class ? "0-9a-fA-F" : "[0-9a-fA-F]");
    } else if (c == 'v') {
      Replace(2, R"(\x0B)");
    } else if (c == 'p' || c == 'P') {
      return Property();
    } else if (c == 'x' || c == 'u') {
      return CodePoint();
    } else if (IsLetterOrDigit(c)) {
      return Refuse(2);
    } else {
      Copy(2);
    }
    return OkStatus();
  }

  // \p{Name}, \P{Name}, \p{^Name}. A name that is no category is a script (PCRE2: script
  // extensions).
  Status Property() {
    const size_t end = in_.find('}', at_);
    if (end == std::string_view::npos || in_[at_ + 2] != '{') return Refuse(3);
    std::string_view name = in_.substr(at_ + 3, end - at_ - 3);
    const bool inverted = name.starts_with('^');
    if (inverted) name.remove_prefix(1);
    const size_t length = end + 1 - at_;
    if (name.empty() || !std::all_of(name.begin(), name.end(),
                                     [](char c) { return IsLetterOrDigit(c) || c == '_'; })) {
      return Refuse(length);
    }
    const bool category =
        std::find(kCategories.begin(), kCategories.end(), name) != kCategories.end();
    Replace(length,
            StrCat("\\", in_[at_ + 1], "{", inverted ? "^" : "", category ? "" : "sc:", name, "}"));
    return OkStatus();
  }

  // \xHH, \x{H...}, \uHHHH. Below \x80 only, as a byte \xHH would be part of a character.
  Status CodePoint() {
    const bool braces = in_.substr(at_).starts_with("\\x{");
    const size_t begin = at_ + (braces ? 3 : 2);
    size_t end = begin;
    while (end < in_.size() && IsHexDigit(in_[end])) ++end;
    const size_t count =
        braces ? end - begin : std::min<size_t>(end - begin, in_[at_ + 1] == 'u' ? 4 : 2);
    const bool closed = !braces || (end < in_.size() && in_[end] == '}');
    const bool ok = braces                ? count >= 1 && count <= 6 && closed
                    : in_[at_ + 1] == 'u' ? count == 4
                                          : count == 2 && in_[begin] < '8';
    const size_t length = begin + count + (braces && closed ? 1 : 0) - at_;
    if (!ok) return Refuse(length);
    const std::string_view digits = in_.substr(begin, count);
    Replace(length, StrCat("\\x{", digits, "}"));
    return OkStatus();
  }

  const std::string_view in_;
  size_t at_ = 0;
  std::string out_;
};

}  // namespace

StatusOr<std::string> ToPcre2(std::string_view pattern) { return Translator(pattern).Run(); }

}  // namespace deepinfer
