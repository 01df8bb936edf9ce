#include "base/sha256.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

// FIPS 180-4 examples.
TEST(Sha256, EqualsTheStandardsExamples) {
  EXPECT_EQ(ToHex(Sha256Of("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(ToHex(Sha256Of("")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Sha256, PiecesGiveTheSameAsTheWhole) {
  const std::vector<uint8_t> bytes(1000, 7);
  Sha256 hash;
  for (size_t at = 0; at < bytes.size(); at += 100) hash.Update(std::span(bytes).subspan(at, 100));
  EXPECT_EQ(hash.Finish(), Sha256Of(bytes));
}

}  // namespace
}  // namespace deepinfer
