#include "tokens/utf8.h"

#include <gtest/gtest.h>

#include <random>

namespace deepinfer {
namespace {

std::string Repaired(std::string_view text) {
  std::string storage;
  return std::string(RepairUtf8(text, storage));
}

TEST(Utf8, RepairsOneReplacementPerLongestBeginning) {
  const std::string r(kReplacementCharacter);
  EXPECT_EQ(Repaired("a\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80"),
            "a\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80");
  EXPECT_EQ(Repaired("\x80\xBF"), r + r);                  // no lead
  EXPECT_EQ(Repaired("\xC0\xAF"), r + r);                  // overlong
  EXPECT_EQ(Repaired("\xE0\x80\xAF"), r + r + r);          // overlong
  EXPECT_EQ(Repaired("\xED\xA0\x80"), r + r + r);          // surrogate
  EXPECT_EQ(Repaired("\xF4\x90\x80\x80"), r + r + r + r);  // above U+10FFFF
  EXPECT_EQ(Repaired("\xF5\xFF"), r + r);
  EXPECT_EQ(Repaired("\xE4\xB8x"), r + "x");  // cut short
  EXPECT_EQ(Repaired("\xF0\x9F\x98"), r);     // unfinished at the end
  EXPECT_EQ(Repaired(std::string_view("a\0b", 3)), std::string("a\0b", 3));
}

TEST(Utf8, ValidTextIsNotCopied) {
  const std::string text = "caf\xC3\xA9";
  std::string storage;
  EXPECT_EQ(RepairUtf8(text, storage).data(), text.data());
}

TEST(Utf8, AppendsWhatItReads) {
  for (char32_t code = 0; code <= 0x10FFFF; ++code) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    std::string text;
    AppendUtf8(code, text);
    const Utf8Step step = NextUtf8(text);
    ASSERT_EQ(step.kind, Utf8Step::Kind::kCharacter);
    ASSERT_EQ(step.code, code);
    ASSERT_EQ(static_cast<size_t>(step.num_bytes), text.size());
  }
}

TEST(Utf8, StreamJoinsToTheRepairedTextAtEverySplit) {
  std::mt19937 rng(1);
  const std::string_view alphabet = "a\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80\xED\xF4\xFF";
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < 8; ++i) text.push_back(alphabet[rng() % alphabet.size()]);
    for (size_t cut = 0; cut <= text.size(); ++cut) {
      Utf8Stream stream;
      std::string joined = stream.Add(std::string_view(text).substr(0, cut));
      EXPECT_EQ(Repaired(joined), joined);
      EXPECT_LE(stream.pending_bytes(), 3);
      joined += stream.Add(std::string_view(text).substr(cut));
      joined += stream.Finish();
      ASSERT_EQ(joined, Repaired(text));
    }
  }
}

TEST(Utf8, WhiteSpaceIsUnicodeWhiteSpace) {
  int count = 0;
  for (char32_t code = 0; code <= 0x10FFFF; ++code) count += IsWhiteSpace(code);
  EXPECT_EQ(count, 25);
  for (char32_t code : {0x85, 0xA0, 0x1680, 0x2028, 0x3000}) EXPECT_TRUE(IsWhiteSpace(code));
  for (char32_t code : {0x1C, 0x180E, 0x200B, 0xFEFF}) EXPECT_FALSE(IsWhiteSpace(code));
}

}  // namespace
}  // namespace deepinfer
