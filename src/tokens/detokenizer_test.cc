#include "tokens/detokenizer.h"

#include <gtest/gtest.h>

#include <random>

#include "tokens/small_tokenizer_for_tests.h"

namespace deepinfer {
namespace {

using Ids = std::vector<int32_t>;

class DetokenizerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto tokenizer = Tokenizer::Parse(SmallTokenizerJson(), "tokenizer.json");
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    tokenizer_ = std::move(tokenizer).value();
  }
  static bool IsUtf8(std::string_view text) {
    std::string repaired;
    return RepairUtf8(text, repaired).data() == text.data();
  }

  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_F(DetokenizerTest, WaitsForTheWholeCharacter) {
  Detokenizer detokenizer(*tokenizer_);
  const Ids ids = tokenizer_->Encode("\u4E2Dhe");
  ASSERT_EQ(ids.size(), 4u);
  EXPECT_EQ(detokenizer.Add(ids[0]), "");
  EXPECT_EQ(detokenizer.Add(ids[1]), "");
  EXPECT_EQ(detokenizer.pending_bytes(), 2);
  EXPECT_EQ(detokenizer.Add(ids[2]), "\u4E2D");
  EXPECT_EQ(detokenizer.Add(ids[3]), "he");
  EXPECT_EQ(detokenizer.Finish(), "");
}

TEST_F(DetokenizerTest, AnUnfinishedCharacterBecomesOneReplacement) {
  Detokenizer detokenizer(*tokenizer_);
  EXPECT_EQ(detokenizer.Add(kSmallByteId + 0xF0), "");
  EXPECT_EQ(detokenizer.Add(kSmallByteId + 0x9F), "");
  EXPECT_EQ(detokenizer.Finish(), "\uFFFD");
  EXPECT_EQ(detokenizer.Add(kSmallMergeId), "he");  // ready again
}

TEST_F(DetokenizerTest, SkipsSpecialTokensOnRequest) {
  Detokenizer detokenizer(*tokenizer_, /*skip_special=*/true);
  EXPECT_EQ(detokenizer.Add(0), "");
  EXPECT_EQ(detokenizer.Add(3), "<think>");
  EXPECT_EQ(detokenizer.Add(-5), "");
}

TEST_F(DetokenizerTest, PiecesJoinToTheDecodedTextForAnyIds) {
  std::mt19937 rng(11);
  const int32_t multibyte[] = {0xE4, 0xB8, 0xAD, 0xF0, 0x9F, 0x98, 0x80, 0xC3, 0xA9};
  for (int round = 0; round < 4000; ++round) {
    Ids ids;
    for (size_t i = rng() % 12; i > 0; --i) {
      ids.push_back(rng() % 2 ? static_cast<int32_t>(rng() % (kSmallVocabSize + 2))
                              : kSmallByteId + multibyte[rng() % std::size(multibyte)]);
    }
    Detokenizer detokenizer(*tokenizer_);
    std::string text;
    for (const int32_t id : ids) {
      const std::string piece = detokenizer.Add(id);
      ASSERT_TRUE(IsUtf8(piece));
      text += piece;
    }
    text += detokenizer.Finish();
    ASSERT_EQ(text, tokenizer_->Decode(ids));
  }
}

}  // namespace
}  // namespace deepinfer
