#include "tokens/regex.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "tokens/utf8.h"

namespace deepinfer {
namespace regex {
namespace {

using Kind = RegexNode::Kind;

Regex Make(RegexNode node) { return std::make_shared<const RegexNode>(std::move(node)); }

// Sizes stop growing here, so that products of counts cannot overflow.
constexpr int64_t kHuge = int64_t{1} << 40;

}  // namespace

Regex Never() {
  static const Regex never = Make({.kind = Kind::kNever, .chars = {}, .parts = {}});
  return never;
}

Regex Empty() {
  static const Regex empty = Make({.kind = Kind::kEmpty, .chars = {}, .parts = {}});
  return empty;
}

Regex Chars(CharSet chars) {
  if (chars.empty()) return Never();
  return Make({.kind = Kind::kChars, .chars = std::move(chars), .parts = {}});
}

Regex Text(std::string_view text) {
  std::vector<Regex> parts;
  while (!text.empty()) {
    const Utf8Step step = NextUtf8(text);
    parts.push_back(Chars(CharSet::Of(step.code)));
    text.remove_prefix(static_cast<size_t>(step.num_bytes));
  }
  return Concat(std::move(parts));
}

Regex Concat(std::vector<Regex> parts) {
  RegexNode node{.kind = Kind::kConcat, .chars = {}, .parts = {}, .size = 0};
  for (Regex& part : parts) {
    if (part->kind == Kind::kNever) return Never();
    if (part->kind == Kind::kEmpty) continue;
    node.size = std::min(kHuge, node.size + part->size);
    if (part->kind == Kind::kConcat) {
      node.parts.insert(node.parts.end(), part->parts.begin(), part->parts.end());
    } else {
      node.parts.push_back(std::move(part));
    }
  }
  if (node.parts.empty()) return Empty();
  return node.parts.size() == 1 ? node.parts[0] : Make(std::move(node));
}

Regex Alt(std::vector<Regex> parts) {
  RegexNode node{.kind = Kind::kAlt, .chars = {}, .parts = {}, .size = 0};
  CharSet chars;
  bool empty = false;
  for (Regex& part : parts) {
    if (part->kind == Kind::kNever) continue;
    if (part->kind == Kind::kChars) {
      chars = chars.Or(part->chars);
    } else if (part->kind == Kind::kEmpty) {
      empty = true;
    } else {
      node.size = std::min(kHuge, node.size + part->size);
      node.parts.push_back(std::move(part));
    }
  }
  if (!chars.empty()) {
    node.parts.push_back(Chars(std::move(chars)));
    node.size += 1;
  }
  Regex all = node.parts.empty()       ? Never()
              : node.parts.size() == 1 ? node.parts[0]
                                       : Make(std::move(node));
  if (!empty) return all;
  return all->kind == Kind::kNever ? Empty() : Repeat(std::move(all), 0, 1);
}

Regex Repeat(Regex part, int32_t min, int32_t max) {
  if (max == 0 || part->kind == Kind::kEmpty) return Empty();
  if (part->kind == Kind::kNever) return min == 0 ? Empty() : Never();
  if (min == 1 && max == 1) return part;
  const int64_t copies = std::max<int64_t>({min, max, 1});
  const int64_t size = std::min(kHuge, copies * part->size);
  return Make({.kind = Kind::kRepeat,
               .chars = {},
               .parts = {std::move(part)},
               .min = min,
               .max = max,
               .size = size});
}

}  // namespace regex

namespace {

using Kind = RegexNode::Kind;

Regex JsonEscape(char32_t c) {
  constexpr char kHex[] = "0123456789abcdef";
  constexpr std::string_view kShort = "\"\"\\\\\nn\rr\tt\bb\ff";
  for (size_t i = 0; i < kShort.size(); i += 2) {
    if (static_cast<char32_t>(kShort[i]) == c) return regex::Text(std::string{'\\', kShort[i + 1]});
  }
  return regex::Text(std::string("\\u00") + kHex[c >> 4] + kHex[c & 15]);
}

Regex JsonEscapedChars(const CharSet& chars) {
  static const CharSet escaped({{0, 0x1f}, {'"', '"'}, {'\\', '\\'}});
  std::vector<Regex> parts{regex::Chars(chars.Minus(escaped))};
  const CharSet rest = chars.And(escaped);
  for (const CharRange& range : rest.ranges()) {
    for (char32_t c = range.first; c <= range.last; ++c) parts.push_back(JsonEscape(c));
  }
  return regex::Alt(std::move(parts));
}

}  // namespace

Regex JsonEscaped(const Regex& value) {
  std::vector<Regex> parts;
  for (const Regex& part : value->parts) parts.push_back(JsonEscaped(part));
  switch (value->kind) {
    case Kind::kChars:
      return JsonEscapedChars(value->chars);
    case Kind::kConcat:
      return regex::Concat(std::move(parts));
    case Kind::kAlt:
      return regex::Alt(std::move(parts));
    case Kind::kRepeat:
      return regex::Repeat(std::move(parts[0]), value->min, value->max);
    default:
      return value;
  }
}

namespace {

void AppendChar(char32_t c, std::string& out) {
  const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  if (plain) {
    out += static_cast<char>(c);
    return;
  }
  char buffer[16];
  std::snprintf(buffer, sizeof buffer, c < 0x80 ? "\\x%02x" : "\\u{%x}", static_cast<unsigned>(c));
  out += buffer;
}

void AppendClass(const std::vector<CharRange>& ranges, std::string& out) {
  out += '[';
  for (const CharRange& range : ranges) {
    AppendChar(range.first, out);
    if (range.last == range.first) continue;
    out += '-';
    AppendChar(range.last, out);
  }
  out += ']';
}

// One class for each length in UTF-8: in a class over several the library would also take overlong
// spellings, which are not UTF-8.
void AppendChars(const CharSet& chars, std::string& out) {
  if (chars.IsSingle()) return AppendChar(chars.ranges()[0].first, out);
  std::vector<std::vector<CharRange>> by_length;
  char32_t last_of_length = 0;
  for (const CharRange& range : chars.RangesOfOneLength()) {
    if (by_length.empty() || range.last > last_of_length) {
      by_length.emplace_back();
      last_of_length = LastOfSameLength(range.first);
    }
    by_length.back().push_back(range);
  }
  if (by_length.size() == 1) return AppendClass(by_length[0], out);
  for (size_t i = 0; i < by_length.size(); ++i) {
    out += i == 0 ? '(' : '|';
    AppendClass(by_length[i], out);
  }
  out += ')';
}

void AppendRepeat(const RegexNode& repeat, std::string& out);

void AppendLibraryRegex(const Regex& regex, std::string& out) {
  switch (regex->kind) {
    case Kind::kNever:
      return;  // LibraryRegex checked the whole, and no other part is simplified to it
    case Kind::kEmpty:
      out += "()";
      return;
    case Kind::kChars:
      AppendChars(regex->chars, out);
      return;
    case Kind::kConcat:
      for (const Regex& part : regex->parts) AppendLibraryRegex(part, out);
      return;
    case Kind::kAlt:
      for (size_t i = 0; i < regex->parts.size(); ++i) {
        out += i == 0 ? '(' : '|';
        AppendLibraryRegex(regex->parts[i], out);
      }
      out += ')';
      return;
    case Kind::kRepeat:
      break;
  }
  AppendRepeat(*regex, out);
}

// Not `?`, which the library lets go on from an end that has something behind it, and not {m,},
// where it mixes up ends: (ab*|c){2,} would take "ccb".
void AppendRepeat(const RegexNode& repeat, std::string& out) {
  std::string part = "(";
  AppendLibraryRegex(repeat.parts[0], part);
  part += ')';
  if (repeat.max >= 0) {
    out += StrCat(part, "{", repeat.min, ",", repeat.max, "}");
    return;
  }
  if (repeat.min > 0) out += StrCat(part, "{", repeat.min, ",", repeat.min, "}");
  out += part + "*";
}

}  // namespace

std::string LibraryRegex(const Regex& regex) {
  CHECK(regex->kind != Kind::kNever);
  std::string out;
  AppendLibraryRegex(regex, out);
  return out;
}

}  // namespace deepinfer
