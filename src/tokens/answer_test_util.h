// tokens/answer_test_util.h: answers for tests, and ways of cutting them into tokens.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tokens/answer_parser.h"
#include "tokens/control_tokens.h"

namespace deepinfer {

// Tags as the model writes them, with their control token's literal text.
inline const std::string kM(kDsmlToken);
inline const std::string kEos(kEosToken);
inline std::string Open(std::string_view rest) { return "<" + kM + " " + std::string(rest) + ">"; }
inline std::string Close(std::string_view name) {
  return "</" + kM + " " + std::string(name) + ">";
}
inline std::string TextParameter(std::string_view key, std::string_view value) {
  return Open("parameter name=\"" + std::string(key) + "\" string=\"true\"") + std::string(value) +
         Close("parameter");
}
inline std::string JsonParameter(std::string_view key, std::string_view value) {
  return Open("parameter name=\"" + std::string(key) + "\" string=\"false\"") + std::string(value) +
         Close("parameter");
}
inline std::string Invoke(std::string_view name, std::string_view parameters) {
  return Open("invoke name=\"" + std::string(name) + "\"") + "\n" + std::string(parameters) + "\n" +
         Close("invoke");
}
inline std::string Block(std::string_view calls) {
  return "\n\n" + Open("calls") + "\n" + std::string(calls) + "\n" + Close("calls");
}

inline constexpr int32_t kOrdinaryToken = 500;

// The text as a tokenizer with added tokens cuts it: control tokens by id, each other byte a token.
inline std::vector<AnswerToken> AsTokens(std::string_view text) {
  const AnswerTokens ids;
  const std::pair<std::string_view, int32_t> controls[] = {{kDsmlToken, ids.dsml},
                                                           {kThinkStartToken, ids.think_start},
                                                           {kThinkEndToken, ids.think_end},
                                                           {kEosToken, ids.eos}};
  std::vector<AnswerToken> tokens;
  while (!text.empty()) {
    AnswerToken token{kOrdinaryToken, text.substr(0, 1)};
    for (const auto& [literal, id] : controls) {
      if (text.starts_with(literal)) token = {id, text.substr(0, literal.size())};
    }
    tokens.push_back(token);
    text.remove_prefix(token.text.size());
  }
  return tokens;
}

inline ParsedAnswer ParseTokens(std::string_view text, bool in_thinking) {
  return ParseAnswer(AsTokens(text), AnswerTokens(), in_thinking);
}

// The answer as text, as tokens and as single bytes must give the same.
inline ParsedAnswer ParseAllWays(std::string_view text, bool in_thinking) {
  const ParsedAnswer whole = ParseAnswer(text, in_thinking);
  EXPECT_EQ(ParseTokens(text, in_thinking), whole) << text;
  std::vector<AnswerToken> bytes;
  for (size_t i = 0; i < text.size(); ++i) bytes.push_back({kUnknownToken, text.substr(i, 1)});
  EXPECT_EQ(ParseAnswer(bytes, AnswerTokens(), in_thinking), whole) << text;
  return whole;
}

inline bool HasMarkup(std::string_view text) {
  for (const std::string_view literal : {kDsmlToken, kThinkStartToken, kThinkEndToken, kEosToken}) {
    if (text.find(literal) != text.npos) return true;
  }
  return false;
}

inline void ExpectNoLeak(const ParsedAnswer& answer, std::string_view text) {
  EXPECT_FALSE(HasMarkup(answer.content)) << text << "\n-> " << answer.content;
  for (const ParsedCall& call : answer.calls) EXPECT_FALSE(HasMarkup(call.arguments)) << text;
}

}  // namespace deepinfer
