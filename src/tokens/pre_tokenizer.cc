#include "tokens/pre_tokenizer.h"

namespace deepinfer {

StatusOr<PreTokenizer> PreTokenizer::Create(const std::vector<std::string>& patterns) {
  PreTokenizer result;
  for (size_t i = 0; i < patterns.size(); ++i) {
    StatusOr<SplitPattern> pattern = SplitPattern::Compile(patterns[i]);
    if (!pattern.ok()) return Annotate(pattern.status(), "split pattern ", i);
    result.patterns_.push_back(std::move(pattern).value());
  }
  return result;
}

std::vector<TextSpan> PreTokenizer::Split(std::string_view text) const {
  std::vector<TextSpan> pieces;
  if (!text.empty()) pieces.push_back({0, text.size()});
  for (const SplitPattern& pattern : patterns_) pieces = pattern.Split(text, pieces);
  return pieces;
}

}  // namespace deepinfer
