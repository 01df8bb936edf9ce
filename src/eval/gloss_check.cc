#include "eval/gloss_check.h"

#include <algorithm>
#include <charconv>

#include "base/hash64.h"

namespace deepinfer {
namespace {

// Words that a definition shares with any other.
constexpr std::string_view kStopWords[] = {
    "a",         "an",   "and",  "another", "any", "are",   "as",   "at",    "be",     "been",
    "being",     "by",   "can",  "etc",     "for", "from",  "has",  "have",  "having", "he",
    "her",       "his",  "in",   "into",    "is",  "it",    "its",  "may",   "not",    "of",
    "on",        "one",  "or",   "other",   "out", "over",  "she",  "so",    "some",   "someone",
    "something", "such", "than", "that",    "the", "their", "them", "they",  "this",   "those",
    "to",        "up",   "used", "usually", "was", "were",  "when", "where", "which",  "who",
    "whose",     "with", "you",  "your",
};

bool IsStopWord(std::string_view word) {
  return std::find(std::begin(kStopWords), std::end(kStopWords), word) != std::end(kStopWords);
}

// Longer endings first; a stem keeps at least three letters. Without a last e too, so that "framed"
// and "frame" are one.
std::string_view Stem(std::string_view word) {
  constexpr size_t kLettersMin = 3;
  for (const std::string_view ending : {"ing", "es", "ed", "s", "e"}) {
    if (word.size() >= ending.size() + kLettersMin && word.ends_with(ending)) {
      return word.substr(0, word.size() - ending.size());
    }
  }
  return word;
}

bool IsWordByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || static_cast<unsigned char>(c) >= 0x80;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

uint32_t HashOfWord(std::string_view word) {
  return static_cast<uint32_t>(
      Hash64(std::span(reinterpret_cast<const uint8_t*>(word.data()), word.size())));
}

std::string HexOf(uint32_t value) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (int shift = 28; shift >= 0; shift -= 4) text += kDigits[(value >> shift) & 15];
  return text;
}

StatusOr<GlossCheck::Entry> ParseLine(std::string_view line) {
  const size_t tab = line.find('\t');
  GlossCheck::Entry entry{std::string(line.substr(0, tab)), {}};
  for (size_t begin = tab; begin < line.size();) {
    const size_t end = std::min(line.find(',', begin + 1), line.size());
    uint32_t hash = 0;
    const auto [stop, error] = std::from_chars(&line[begin] + 1, line.data() + end, hash, 16);
    if (error != std::errc() || stop != line.data() + end || end - begin != 9) break;
    entry.hashes.push_back(hash);
    begin = end;
    if (end == line.size() && !entry.word.empty()) {
      std::sort(entry.hashes.begin(), entry.hashes.end());
      return entry;
    }
  }
  return InvalidArgument(
      "expected a word, a tab and hashes of eight hexadecimal digits with commas "
      "between, found \"",
      line, "\"");
}

}  // namespace

std::vector<uint32_t> ContentWordHashes(std::string_view text) {
  const std::string lower = Lower(text);
  std::vector<uint32_t> hashes;
  for (size_t begin = 0; begin < lower.size();) {
    size_t end = begin;
    while (end < lower.size() && IsWordByte(lower[end])) ++end;
    const std::string_view word = std::string_view(lower).substr(begin, end - begin);
    if (!word.empty() && !IsStopWord(word)) hashes.push_back(HashOfWord(Stem(word)));
    begin = end + 1;
  }
  std::sort(hashes.begin(), hashes.end());
  hashes.erase(std::unique(hashes.begin(), hashes.end()), hashes.end());
  return hashes;
}

size_t NumContentWordsFound(std::string_view text, std::span<const uint32_t> wanted) {
  const std::vector<uint32_t> found = ContentWordHashes(text);
  std::vector<uint32_t> common;
  std::set_intersection(found.begin(), found.end(), wanted.begin(), wanted.end(),
                        std::back_inserter(common));
  return common.size();
}

StatusOr<GlossCheck> GlossCheck::Parse(std::string_view text, std::string_view where) {
  std::vector<Entry> entries;
  int64_t line_number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    ++line_number;
    StatusOr<Entry> entry = ParseLine(text.substr(begin, end - begin));
    if (!entry.ok()) return Annotate(entry.status(), where, " line ", line_number);
    entries.push_back(*std::move(entry));
    begin = end + 1;
  }
  if (entries.empty()) return InvalidArgument(where, ": expected a word a line, found nothing");
  return GlossCheck(std::move(entries));
}

std::string GlossCheck::Text() const {
  std::string text;
  for (const Entry& entry : entries_) {
    std::vector<std::string> hashes;
    for (const uint32_t hash : entry.hashes) hashes.push_back(HexOf(hash));
    text += StrCat(entry.word, "\t", Join(hashes, ","), "\n");
  }
  return text;
}

}  // namespace deepinfer
