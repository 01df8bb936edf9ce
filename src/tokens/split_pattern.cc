#include "tokens/split_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <optional>
#include <string>

#include "base/check.h"
#include "base/log.h"
#include "tokens/pattern_syntax.h"
#include "tokens/utf8.h"

namespace deepinfer {
namespace {

struct FreePcre2 {
  void operator()(pcre2_code* p) const { pcre2_code_free(p); }
  void operator()(pcre2_compile_context* p) const { pcre2_compile_context_free(p); }
  void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
  void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
};
template <typename T>
using Owned = std::unique_ptr<T, FreePcre2>;

std::string ErrorText(int error) {
  unsigned char text[256] = {};
  pcre2_get_error_message(error, text, sizeof text);
  return std::string(reinterpret_cast<const char*>(text));
}

}  // namespace

struct SplitPattern::Code {
  Owned<pcre2_code> regex;
  Owned<pcre2_match_context> context;

  // The first match in `piece` at or after `from`; nullopt without one, or when the search gave up.
  std::optional<TextSpan> Find(std::string_view piece, size_t from, pcre2_match_data* data) const;
};

std::optional<TextSpan> SplitPattern::Code::Find(std::string_view piece, size_t from,
                                                 pcre2_match_data* data) const {
  const auto match = [&](uint32_t options) {
    return pcre2_match(regex.get(), reinterpret_cast<PCRE2_SPTR>(piece.data()), piece.size(), from,
                       PCRE2_NO_UTF_CHECK | options, data, context.get());
  };
  int rc = match(0);
  // Compiled code has a small stack; the interpreter's is on the heap.
  if (rc == PCRE2_ERROR_JIT_STACKLIMIT) rc = match(PCRE2_NO_JIT);
  if (rc == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (rc < 0) {
    LogWarning("tokenizer: a split pattern gave up at byte ", from, " of a piece of ", piece.size(),
               " bytes: ", ErrorText(rc), "; the rest stays in one piece");
    return std::nullopt;
  }
  const PCRE2_SIZE* span = pcre2_get_ovector_pointer(data);
  return TextSpan{span[0], span[1]};
}

SplitPattern::SplitPattern(std::unique_ptr<Code> code) : code_(std::move(code)) {}
SplitPattern::SplitPattern(SplitPattern&&) noexcept = default;
SplitPattern& SplitPattern::operator=(SplitPattern&&) noexcept = default;
SplitPattern::~SplitPattern() = default;

StatusOr<SplitPattern> SplitPattern::Compile(std::string_view pattern, uint32_t match_limit) {
  DI_ASSIGN_OR_RETURN(const std::string translated, ToPcre2(pattern));
  auto code = std::make_unique<Code>();

  const Owned<pcre2_compile_context> compile(pcre2_compile_context_create(nullptr));
  CHECK(compile != nullptr);
  pcre2_set_newline(compile.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  code->regex.reset(pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
      PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset, compile.get()));
  if (code->regex == nullptr) {
    return InvalidArgument("pattern ", translated, ": ", ErrorText(error), " at byte ", offset);
  }
  // Where the system forbids compiled code, the interpreter does the same work more slowly.
  pcre2_jit_compile(code->regex.get(), PCRE2_JIT_COMPLETE);

  code->context.reset(pcre2_match_context_create(nullptr));
  CHECK(code->context != nullptr);
  pcre2_set_match_limit(code->context.get(), match_limit);
  pcre2_set_depth_limit(code->context.get(), UINT32_MAX);
  pcre2_set_heap_limit(code->context.get(), UINT32_MAX);
  return SplitPattern(std::move(code));
}

std::vector<TextSpan> SplitPattern::Split(std::string_view text,
                                          std::span<const TextSpan> pieces) const {
  const Owned<pcre2_match_data> data(
      pcre2_match_data_create_from_pattern(code_->regex.get(), nullptr));
  CHECK(data != nullptr);
  std::vector<TextSpan> parts;
  const auto add = [&](const TextSpan& piece, size_t begin, size_t end) {
    if (begin < end) parts.push_back({piece.begin + begin, piece.begin + end});
  };
  for (const TextSpan& piece : pieces) {
    const std::string_view inside = text.substr(piece.begin, piece.end - piece.begin);
    size_t cut = 0;   // everything before is in parts
    size_t from = 0;  // where the next search begins
    while (from < inside.size()) {
      const std::optional<TextSpan> match = code_->Find(inside, from, data.get());
      if (!match) break;
      add(piece, cut, match->begin);
      add(piece, match->begin, match->end);
      cut = from = match->end;
      // An empty match only cuts; the search goes on one character further.
      if (match->begin == match->end && from < inside.size()) {
        from += static_cast<size_t>(NextUtf8(inside.substr(from)).num_bytes);
      }
    }
    add(piece, cut, inside.size());
  }
  return parts;
}

}  // namespace deepinfer
