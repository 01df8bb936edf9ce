#include "cache/page_key.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/disk.h"
#include "base/testing/allocation_counter.h"

namespace deepinfer {
namespace {

using nlohmann::json;

std::string FromHex(const std::string& digits) {
  std::string bytes;
  for (size_t i = 0; i < digits.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

std::span<const uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

PageKey RootOf(const json& name) {
  std::vector<std::string> fields;
  for (const auto& field : name["fields"]) fields.push_back(FromHex(field));
  const std::vector<std::string_view> views(fields.begin(), fields.end());
  std::array<uint8_t, 32> secret;
  std::memcpy(secret.data(), FromHex(name["secret"]).data(), secret.size());
  const PageKey root =
      CacheRoot(secret, name["generation"], ModelFingerprint(views), kTokensPerPage);
  return name.contains("salt") ? NarrowedRoot(root, FromHex(name["salt"])) : root;
}

std::vector<MediaSpan> MediaOfPage(const json& vector, int32_t page) {
  std::vector<MediaSpan> spans;
  for (const auto& m : vector["media"]) {
    if (m["page"] != page) continue;
    const std::string original = FromHex(m["original"]);
    spans.push_back({.offset_in_page = m["offset"],
                     .start_in_item = m["start"],
                     .length = m["length"],
                     .digest = MediaDigest(FromHex(m["preprocessor"]), BytesOf(original))});
  }
  return spans;
}

std::vector<std::string> KeysOf(const json& vector) {
  const std::vector<int32_t> tokens = vector["tokens"];
  const int32_t public_pages = vector.value("public_pages", 0);
  PageKey key = RootOf(vector[public_pages > 0 ? "public_root" : "root"]);
  std::vector<std::string> keys;
  for (int32_t page = 0; page * kTokensPerPage < std::ssize(tokens); ++page) {
    if (page > 0 && page == public_pages) key = SwitchedRoot(key, RootOf(vector["root"]));
    const auto begin = static_cast<size_t>(page * kTokensPerPage);
    const size_t count = std::min<size_t>(kTokensPerPage, tokens.size() - begin);
    key = NextPageKey(key, std::span(tokens).subspan(begin, count), MediaOfPage(vector, page));
    keys.push_back(ToHex(key));
  }
  return keys;
}

json ReadVectors() {
  const std::string path = std::string(DI_SOURCE_DIR) + "/tests/cache/page_keys.json";
  return json::parse(RealDisk().ReadText(path).value());
}

TEST(PageKey, EveryVectorIsReproduced) {
  const json file = ReadVectors();
  ASSERT_EQ(file["page_tokens"], kTokensPerPage);
  ASSERT_GE(file["vectors"].size(), 40u);
  for (const json& vector : file["vectors"]) {
    const std::vector<std::string> expected = vector["keys"];
    EXPECT_EQ(KeysOf(vector), expected) << vector["title"];
  }
}

// Keys of full pages of plain text come the same way one token at a time.
TEST(PageKeyChain, GivesTheVectorsOfText) {
  const json file = ReadVectors();
  int32_t num_texts = 0;
  for (const json& vector : file["vectors"]) {
    if (!vector["media"].empty() || vector.contains("public_pages")) continue;
    ++num_texts;
    PageKeyChain chain(RootOf(vector["root"]), static_cast<int32_t>(vector["tokens"].size()));
    std::vector<std::string> keys;
    for (const int32_t token : vector["tokens"]) {
      chain.Append(token);
      ASSERT_EQ(std::ssize(chain.keys()), chain.num_tokens() / kTokensPerPage);
    }
    for (const PageKey& key : chain.keys()) keys.push_back(ToHex(key));
    std::vector<std::string> expected = vector["keys"];
    expected.resize(vector["tokens"].size() / kTokensPerPage);
    EXPECT_EQ(keys, expected) << vector["title"];
  }
  EXPECT_GE(num_texts, 20);
}

TEST(PageKeyChain, AllocatesNothingWhileTokensArrive) {
  if (!CountsAllocations()) GTEST_SKIP() << "a sanitizer has the heap";
  constexpr int32_t kTokens = 10 * kTokensPerPage;
  PageKeyChain chain(PageKey{}, kTokens);
  for (int32_t i = 0; i < kTokensPerPage; ++i) chain.Append(i);  // the library's first use
  const AllocationCounter counter;
  for (int32_t i = kTokensPerPage; i < kTokens; ++i) chain.Append(i);
  EXPECT_EQ(counter.count(), 0);
  EXPECT_EQ(std::ssize(chain.keys()), 10);
}

TEST(PageKeyDeathTest, MediaMustBeSorted) {
  const std::vector<int32_t> tokens(kTokensPerPage, 5);
  const std::vector<MediaSpan> spans = {{.offset_in_page = 20, .length = 4},
                                        {.offset_in_page = 8, .length = 4}};
  EXPECT_DEATH(NextPageKey(PageKey{}, tokens, spans), "offset_in_page");
}

}  // namespace
}  // namespace deepinfer
