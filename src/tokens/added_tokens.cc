#include "tokens/added_tokens.h"

#include <utf8proc.h>

#include <algorithm>

#include "tokens/utf8.h"

namespace deepinfer {
namespace {

// Regex \w: Alphabetic, marks, decimal numbers, connectors and the two joiners. Source: UTS 18,
// annex C.
bool IsWordCharacter(char32_t code) {
  if (code == 0x200C || code == 0x200D) return true;
  // The symbols that are Alphabetic: letters in circles and squares.
  if ((code >= 0x24B6 && code <= 0x24E9) || (code >= 0x1F130 && code <= 0x1F149) ||
      (code >= 0x1F150 && code <= 0x1F169) || (code >= 0x1F170 && code <= 0x1F189)) {
    return true;
  }
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return false;
  }
}

// Where the last character of text[0, end) begins. Requires: end > 0.
size_t PreviousCharacter(std::string_view text, size_t end) {
  do {
    --end;
  } while ((static_cast<uint8_t>(text[end]) & 0xC0) == 0x80);
  return end;
}

bool WordBefore(std::string_view text, size_t at) {
  return at > 0 && IsWordCharacter(NextUtf8(text.substr(PreviousCharacter(text, at))).code);
}

bool WordAfter(std::string_view text, size_t at) {
  return at < text.size() && IsWordCharacter(NextUtf8(text.substr(at)).code);
}

// `at`, moved left over white space, but not below `least`.
size_t SkipSpaceBefore(std::string_view text, size_t at, size_t least) {
  while (at > least) {
    const size_t previous = PreviousCharacter(text, at);
    if (!IsWhiteSpace(NextUtf8(text.substr(previous)).code)) break;
    at = previous;
  }
  return at;
}

size_t SkipSpaceAfter(std::string_view text, size_t at) {
  while (at < text.size()) {
    const Utf8Step step = NextUtf8(text.substr(at));
    if (!IsWhiteSpace(step.code)) break;
    at += static_cast<size_t>(step.num_bytes);
  }
  return at;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    ByteTrie& trie = tokens_[i].normalized ? second_ : first_;
    trie.Add(tokens_[i].content, static_cast<int32_t>(i));
  }
}

std::vector<AddedTokens::Part> AddedTokens::Split(std::string_view text,
                                                  std::span<const int32_t> plain_ids) const {
  std::vector<Part> once, parts;
  SplitBy(first_, text, {0, text.size()}, plain_ids, once);
  for (const Part& part : once) {
    if (part.id != kText) {
      parts.push_back(part);
    } else {
      SplitBy(second_, text, part.span, plain_ids, parts);
    }
  }
  return parts;
}

void AddedTokens::SplitBy(const ByteTrie& trie, std::string_view text, TextSpan span,
                          std::span<const int32_t> plain_ids, std::vector<Part>& parts) const {
  const std::string_view inside = text.substr(span.begin, span.end - span.begin);
  const auto add = [&](size_t begin, size_t end, int32_t id) {
    parts.push_back({{span.begin + begin, span.begin + end}, id});
  };
  size_t cut = 0;        // everything before is in parts
  size_t space_end = 0;  // end of the white space that rstrip last looked at
  Match match{0, 0, nullptr};
  while ((match = Find(trie, inside, match.end, plain_ids)).token != nullptr) {
    const AddedToken& token = *match.token;
    if (token.single_word && (WordBefore(inside, match.begin) || WordAfter(inside, match.end))) {
      continue;
    }
    const size_t begin = token.lstrip ? SkipSpaceBefore(inside, match.begin, cut) : match.begin;
    if (cut < begin) add(cut, begin, kText);
    if (token.rstrip && match.end > space_end) space_end = SkipSpaceAfter(inside, match.end);
    cut = token.rstrip ? space_end : match.end;
    add(begin, cut, token.id);
  }
  if (cut < inside.size()) add(cut, inside.size(), kText);
}

AddedTokens::Match AddedTokens::Find(const ByteTrie& trie, std::string_view text, size_t from,
                                     std::span<const int32_t> plain_ids) const {
  if (trie.empty()) return {from, from, nullptr};
  for (size_t begin = from; begin < text.size(); ++begin) {
    Match longest{begin, begin, nullptr};
    int32_t node = ByteTrie::kRoot;
    for (size_t at = begin; at < text.size(); ++at) {
      node = trie.Child(node, static_cast<uint8_t>(text[at]));
      if (node == ByteTrie::kNone) break;
      if (trie.value(node) == ByteTrie::kNone) continue;
      const AddedToken& token = tokens_[static_cast<size_t>(trie.value(node))];
      if (std::find(plain_ids.begin(), plain_ids.end(), token.id) != plain_ids.end()) continue;
      longest = {begin, at + 1, &token};
    }
    if (longest.token != nullptr) return longest;
  }
  return {text.size(), text.size(), nullptr};
}

}  // namespace deepinfer
