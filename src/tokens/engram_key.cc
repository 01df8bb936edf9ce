#include "tokens/engram_key.h"

#include <utf8proc.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "base/check.h"
#include "tokens/utf8.h"

namespace deepinfer {
namespace {

// A Unicode normal form of `text`.
std::string Normalize(std::string_view text, int options) {
  uint8_t* out = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(
      reinterpret_cast<const uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
      &out, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | options));
  const std::unique_ptr<uint8_t, void (*)(void*)> owner(out, std::free);
  CHECK_GE(size, 0);  // the text is UTF-8
  return std::string(reinterpret_cast<const char*>(out), static_cast<size_t>(size));
}

bool IsMark(utf8proc_int32_t code) {
  const utf8proc_category_t category = utf8proc_category(code);
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
         category == UTF8PROC_CATEGORY_ME;
}

// Characters without marks, in lower case, runs of blanks collapsed. Simple case mapping is all
// there is: the one character whose lower case is two (U+0130) has been decomposed before.
std::vector<char32_t> Fold(std::string_view text) {
  std::vector<char32_t> out;
  while (!text.empty()) {
    const Utf8Step step = NextUtf8(text);
    CHECK(step.kind == Utf8Step::Kind::kCharacter);
    text.remove_prefix(static_cast<size_t>(step.num_bytes));
    const auto code = static_cast<utf8proc_int32_t>(step.code);
    if (IsMark(code)) continue;
    const bool blank = code == ' ' || code == '\t' || code == '\r' || code == '\n';
    if (blank && !out.empty() && out.back() == ' ') continue;
    out.push_back(blank ? ' ' : static_cast<char32_t>(utf8proc_tolower(code)));
  }
  return out;
}

}  // namespace

std::string EngramKey(std::string_view text) {
  const std::string composed = Normalize(text, UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
  const std::vector<char32_t> codes = Fold(Normalize(composed, UTF8PROC_DECOMPOSE));
  if (codes.size() == 1 && codes[0] == ' ') return " ";
  size_t begin = 0, end = codes.size();
  while (begin < end && IsWhiteSpace(codes[begin])) ++begin;
  while (end > begin && IsWhiteSpace(codes[end - 1])) --end;
  std::string key;
  for (size_t i = begin; i < end; ++i) AppendUtf8(codes[i], key);
  return key;
}

}  // namespace deepinfer
