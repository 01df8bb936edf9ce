// tokens/answer_symbols.h: an answer as one string in which control tokens cannot be confused with
// text.
//
// The four control tokens that matter become bytes that no UTF-8 text contains. Bytes of that kind
// in the text are replaced first. Internal to the answer parser.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tokens/answer_parser.h"

namespace deepinfer {

enum AnswerSymbol : char {
  kDsmlSymbol = '\xFF',
  kThinkEndSymbol = '\xFE',
  kThinkStartSymbol = '\xFD',
  kEosSymbol = '\xFC',
};
inline bool IsControlSymbol(char c) { return static_cast<unsigned char>(c) >= 0xFC; }

class AnswerSymbols {
 public:
  explicit AnswerSymbols(const AnswerTokens& tokens) : tokens_(tokens) {}

  // See AnswerParser::Feed. Holds what may be the beginning of a control token's literal while
  // tokens are unknown.
  std::string Feed(int32_t token_id, std::string_view text);
  std::string Finish();

 private:
  void FeedUnknown(std::string_view text, std::string& out);

  const AnswerTokens tokens_;
  std::string held_;
};

}  // namespace deepinfer
