// tokens/split_pattern.h: cuts text at the matches of a pattern. The regex library stays behind
// this file.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace deepinfer {

// Bytes [begin, end) of a text.
struct TextSpan {
  size_t begin, end;
};

// Threads: immutable; any thread.
class SplitPattern {
 public:
  // `pattern` in the syntax of tokenizer.json. match_limit bounds the work of one search; the
  // default is PCRE2's largest, so that it cuts off patterns that explode, never long texts.
  // Errors: as ToPcre2; kInvalidArgument with what the regex library says and where.
  static StatusOr<SplitPattern> Compile(std::string_view pattern,
                                        uint32_t match_limit = UINT32_MAX);
  SplitPattern(SplitPattern&&) noexcept;
  SplitPattern& operator=(SplitPattern&&) noexcept;
  ~SplitPattern();

  // Cuts each piece of `text` into its matches and the stretches between them; -> all parts in
  // order, none empty. The pattern sees nothing outside the piece. A search that exceeds the match
  // limit leaves the rest of its piece in one part and logs a line. Requires: text is UTF-8.
  std::vector<TextSpan> Split(std::string_view text, std::span<const TextSpan> pieces) const;

 private:
  struct Code;
  explicit SplitPattern(std::unique_ptr<Code> code);
  std::unique_ptr<Code> code_;
};

}  // namespace deepinfer
