// tokens/grammar_test_util.h: grammars over the small tokenizer, asked byte by byte.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokens/control_tokens.h"
#include "tokens/grammar.h"
#include "tokens/small_tokenizer_for_tests.h"

namespace deepinfer {

inline constexpr int32_t kSmallEnd = 1, kSmallThinkEnd = 4, kSmallMarker = 5;

// The small tokenizer with the marker of calls as its token 5.
inline std::unique_ptr<Tokenizer> SmallTokenizerWithMarker() {
  auto tokenizer =
      Tokenizer::Parse(Replaced(SmallTokenizerJson(), "<image>", std::string(kDsmlToken)), "small");
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return std::move(tokenizer).value();
}

inline std::shared_ptr<const GrammarVocabulary> SmallVocabulary() {
  static const std::shared_ptr<const GrammarVocabulary> vocabulary =
      GrammarVocabulary::Create(*SmallTokenizerWithMarker(), kSmallVocabSize + 7, {kSmallEnd})
          .value();
  return vocabulary;
}

// The ids of `text`, one a byte; the byte 1 stands for the marker of calls.
inline std::vector<int32_t> ByteIds(std::string_view text) {
  std::vector<int32_t> ids;
  for (const char c : text) {
    ids.push_back(c == '\1' ? kSmallMarker : kSmallByteId + static_cast<unsigned char>(c));
  }
  return ids;
}

inline std::shared_ptr<const Grammar> CompileSmall(StructuredOutput structured) {
  auto grammar = Grammar::Compile(structured, SmallVocabulary());
  EXPECT_TRUE(grammar.ok()) << structured.text << ": " << grammar.status();
  return grammar.ok() ? std::move(grammar).value() : nullptr;
}

// May the whole text come out, followed by the end? '\1' in it is the marker of calls.
inline bool Takes(const std::shared_ptr<const Grammar>& grammar, std::string_view text) {
  if (grammar == nullptr) return false;
  GrammarMatcher matcher(grammar);
  for (const int32_t id : ByteIds(text)) {
    if (!matcher.Accept(id)) return false;
  }
  return matcher.Accept(kSmallEnd);
}

inline std::vector<uint32_t> MaskOf(GrammarMatcher& matcher) {
  std::vector<uint32_t> mask(static_cast<size_t>(SmallVocabulary()->mask_words()));
  EXPECT_TRUE(matcher.FillMask(mask));
  return mask;
}

inline bool Allows(const std::vector<uint32_t>& mask, int32_t id) {
  return (mask[static_cast<size_t>(id / 32)] >> (id % 32) & 1) != 0;
}

}  // namespace deepinfer
