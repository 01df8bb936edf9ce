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

TEST(Sha256, ResetBeginsAnew) {
  Sha256 hash;
  hash.Update(std::vector<uint8_t>(100, 7));
  hash.Reset();
  EXPECT_EQ(hash.Finish(), Sha256Of(""));
  hash.Reset();
  const std::vector<uint8_t> abc = {'a', 'b', 'c'};
  hash.Update(abc);
  EXPECT_EQ(hash.Finish(), Sha256Of("abc"));
}

// RFC 4231, test cases 1 and 6 (a key longer than a block).
TEST(HmacSha256, EqualsTheStandardsExamples) {
  const std::string hi = "Hi There",
                    large = "Test Using Larger Than Block-Size Key - Hash Key First";
  const auto mac = [](const std::vector<uint8_t>& key, const std::string& text) {
    return ToHex(HmacSha256(key, std::vector<uint8_t>(text.begin(), text.end())));
  };
  EXPECT_EQ(mac(std::vector<uint8_t>(20, 0x0b), hi),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(mac(std::vector<uint8_t>(131, 0xaa), large),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

}  // namespace
}  // namespace deepinfer
