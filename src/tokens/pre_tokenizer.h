// tokens/pre_tokenizer.h: cuts text into the pieces that merges never cross.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokens/split_pattern.h"

namespace deepinfer {

class PreTokenizer {
 public:
  // Errors: as SplitPattern::Compile.
  static StatusOr<PreTokenizer> Create(const std::vector<std::string>& patterns);

  // The pieces of `text` in order, none empty. Each pattern cuts what the one before left.
  // Requires: text is UTF-8.
  std::vector<TextSpan> Split(std::string_view text) const;

 private:
  std::vector<SplitPattern> patterns_;
};

}  // namespace deepinfer
