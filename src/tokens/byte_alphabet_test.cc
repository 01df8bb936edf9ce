#include "tokens/byte_alphabet.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

TEST(ByteAlphabet, SpellsKnownBytes) {
  EXPECT_EQ(SpellBytes(" the"), "\u0120the");
  EXPECT_EQ(SpellBytes("\n"), "\u010A");
  EXPECT_EQ(SpellBytes("\xE4\xB8\xAD"), "\u00E4\u00B8\u0143");
}

TEST(ByteAlphabet, ReadsBackAllBytes) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  EXPECT_EQ(BytesOfSpelling(SpellBytes(all)), all);
}

TEST(ByteAlphabet, KnowsWhatIsNotSpelled) {
  EXPECT_EQ(BytesOfSpelling("a b"), std::nullopt);
  EXPECT_EQ(BytesOfSpelling("<\uFF5Cx"), std::nullopt);
  EXPECT_EQ(BytesOfSpelling("\u0144"), std::nullopt);  // one past the last
  EXPECT_EQ(BytesOfSpelling("\xFF"), std::nullopt);
}

}  // namespace
}  // namespace deepinfer
