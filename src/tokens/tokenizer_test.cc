#include "tokens/tokenizer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "base/simulated_disk.h"
#include "tokens/small_tokenizer_for_tests.h"
#include "tokens/utf8.h"

namespace deepinfer {
namespace {

using Ids = std::vector<int32_t>;

std::unique_ptr<Tokenizer> Parsed(const std::string& json) {
  auto tokenizer = Tokenizer::Parse(json, "tokenizer.json");
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? std::move(tokenizer).value() : nullptr;
}

std::unique_ptr<Tokenizer> Small() { return Parsed(SmallTokenizerJson()); }

int32_t Byte(char c) { return kSmallByteId + static_cast<uint8_t>(c); }

TEST(Tokenizer, MergesByRank) {
  const auto tokenizer = Small();
  EXPECT_EQ(tokenizer->Encode("hello wor"), (Ids{265, 268}));
  EXPECT_EQ(tokenizer->Encode("hellx"), (Ids{264, Byte('x')}));
  EXPECT_EQ(tokenizer->Encode("aaa"), (Ids{271, Byte('a')}));  // leftmost of equal rank
  EXPECT_EQ(tokenizer->Encode("ehe"), (Ids{Byte('e'), 262}));  // "eh" was possible first
  EXPECT_EQ(tokenizer->Encode(""), Ids{});
}

TEST(Tokenizer, PiecesOfTheFilesOwnPatternsAreNeverMerged) {
  const auto tokenizer = Small();
  EXPECT_EQ(tokenizer->Encode("012"), (Ids{Byte('0'), Byte('1'), Byte('2')}));  // cut to 01|2
  EXPECT_EQ(tokenizer->Encode("112"), (Ids{Byte('1'), Byte('1'), Byte('2')}));
  EXPECT_EQ(tokenizer->Encode("12"), Ids{270});
  EXPECT_EQ(tokenizer->Encode("   wor"), (Ids{269, 268}));  // the last blank belongs to the word
}

TEST(Tokenizer, RepeatedPiecesGiveTheSameIds) {
  const auto tokenizer = Small();
  const Ids once = tokenizer->Encode(" hex wor12");
  Ids ids = tokenizer->Encode(" hex wor12 hex wor12 hex wor12");
  ASSERT_EQ(ids.size(), 3 * once.size());
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(ids[i], once[i % once.size()]);
}

TEST(Tokenizer, AddedTokensMatchFirst) {
  const auto tokenizer = Small();
  EXPECT_EQ(tokenizer->Encode("<s>hello</think></s>"), (Ids{0, 265, 4, 1}));
  EXPECT_EQ(tokenizer->Encode("<think"), Small()->Encode("<think", {.added_tokens = false}));
}

// What is not "normalized" is looked for first, in the whole text.
TEST(Tokenizer, NotNormalizedTokensComeBeforeNormalizedOnes) {
  std::string json =
      Replaced(SmallTokenizerJson(), "\"content\":\"<image>\"", "\"content\":\"k><i>\"");
  const auto tokenizer = Parsed(json);
  Ids expected = tokenizer->Encode("<thin");
  expected.push_back(5);
  EXPECT_EQ(tokenizer->Encode("<think><i>"), expected);
}

TEST(Tokenizer, LongestOfTheLeftmostMatches) {
  const auto tokenizer =
      Parsed(Replaced(SmallTokenizerJson(), "\"content\":\"<image>\"", "\"content\":\"<s><s>\""));
  EXPECT_EQ(tokenizer->Encode("<s><s><s>"), (Ids{5, 0}));
}

TEST(Tokenizer, StripAndSingleWordFlags) {
  const std::string think =
      R"({"id":3,"content":"<think>","single_word":false,"lstrip":false,"rstrip":false)";
  const auto with = [&](const char* flags) {
    return Parsed(
        Replaced(SmallTokenizerJson(), think, StrCat(R"({"id":3,"content":"<think>",)", flags)));
  };
  const auto lstrip = with(R"("lstrip":true)"), rstrip = with(R"("rstrip":true)"),
             single = with(R"("single_word":true)");
  EXPECT_EQ(lstrip->Encode("a \u3000<think> a"), (Ids{Byte('a'), 3, Byte(' '), Byte('a')}));
  EXPECT_EQ(rstrip->Encode("a <think> \u3000a"), (Ids{Byte('a'), Byte(' '), 3, Byte('a')}));
  EXPECT_EQ(single->Encode("-<think>-"), (Ids{Byte('-'), 3, Byte('-')}));
  EXPECT_EQ(single->Encode("<think>a"), single->Encode("<think>a", {.added_tokens = false}));
  EXPECT_EQ(single->Encode("\u00E9<think>"),
            single->Encode("\u00E9<think>", {.added_tokens = false}));
}

// Case 18: control strings in what a user wrote stay text.
TEST(Tokenizer, case_18_NoControlIdComesOutOfPlainText) {
  const auto tokenizer = Small();
  std::string all = "Repeat exactly: hello </think> world";
  for (int32_t id = 0; id < kSmallByteId; ++id) all += tokenizer->TokenText(id);
  const Ids ids = tokenizer->Encode(all, {.added_tokens = false});
  for (const int32_t id : ids) EXPECT_FALSE(tokenizer->IsAdded(id)) << id;
  EXPECT_EQ(tokenizer->Decode(ids), all);
  EXPECT_FALSE(tokenizer->Encode(all) == ids);
}

// Case R18: a placeholder in a text never becomes an image id, even where added tokens are wanted.
TEST(Tokenizer, case_R18_PlainIdsStayText) {
  const auto tokenizer = Small();
  const Ids image = {5};
  const Ids ids = tokenizer->Encode("<s><image><think>", {.plain_ids = image});
  EXPECT_EQ(ids.front(), 0);
  EXPECT_EQ(ids.back(), 3);
  EXPECT_EQ(std::find(ids.begin(), ids.end(), 5), ids.end());
  EXPECT_EQ(tokenizer->Decode(ids), "<s><image><think>");
  EXPECT_EQ(tokenizer->Encode("<s><image><think>"), (Ids{0, 5, 3}));
}

// An added token that merges or bytes could make would come out of plain text.
TEST(Tokenizer, case_18_RefusesAddedTokensThatPlainTextCanReach) {
  const std::string image = R"({"id":5,"content":"<image>")";
  const auto merged = Tokenizer::Parse(
      Replaced(SmallTokenizerJson(), image, R"({"id":265,"content":"hello")"), "t.json");
  ASSERT_FALSE(merged.ok());
  EXPECT_EQ(MessageOf(merged.status()),
            "t.json: merge 3 makes added token 265: it would come out of plain text");
  const auto byte = Tokenizer::Parse(
      Replaced(SmallTokenizerJson(), image, R"({"id":103,"content":"a")"), "t.json");
  ASSERT_FALSE(byte.ok());
  EXPECT_EQ(
      MessageOf(byte.status()),
      "t.json: added token 103 is also the token of byte 97: it would come out of plain text");
}

TEST(Tokenizer, InvalidUtf8BecomesReplacementCharacters) {
  const auto tokenizer = Small();
  EXPECT_EQ(tokenizer->Encode("a\xFF\xE4\xB8z"), tokenizer->Encode("a\uFFFD\uFFFDz"));
  EXPECT_EQ(tokenizer->Encode(std::string_view("a\0b", 3)),
            (Ids{Byte('a'), Byte('\0'), Byte('b')}));
}

TEST(Tokenizer, DecodesBytesAndSkipsSpecialOnRequest) {
  const auto tokenizer = Small();
  EXPECT_EQ(tokenizer->Decode(Ids{0, 265, 3, 1}), "<s>hello<think></s>");
  EXPECT_EQ(tokenizer->Decode(Ids{0, 265, 3, 1}, /*skip_special=*/true), "hello<think>");
  EXPECT_EQ(tokenizer->Decode(Ids{Byte('\xC3')}), "\uFFFD");
  EXPECT_EQ(tokenizer->Decode(Ids{-1, 100'000, Byte('a')}), "a");  // no such token: nothing
}

TEST(Tokenizer, NamesAndFlags) {
  const auto tokenizer = Small();
  EXPECT_EQ(tokenizer->vocab_size(), kSmallVocabSize);
  EXPECT_EQ(tokenizer->sha256().size(), 64u);
  EXPECT_EQ(tokenizer->IdOf("<think>"), 3);
  EXPECT_EQ(tokenizer->IdOf("\u0120w"), 266);
  EXPECT_EQ(tokenizer->IdOf(" w"), std::nullopt);
  EXPECT_EQ(tokenizer->BytesOf(266), " w");
  EXPECT_EQ(tokenizer->TokenText(266), "\u0120w");
  EXPECT_TRUE(tokenizer->IsSpecial(0) && tokenizer->IsAdded(3) && tokenizer->HasId(266));
  EXPECT_FALSE(tokenizer->IsSpecial(3) || tokenizer->IsAdded(266) || tokenizer->HasId(-1) ||
               tokenizer->HasId(kSmallVocabSize));
}

TEST(Tokenizer, MergesMayBePairs) {
  std::string json = SmallTokenizerJson();
  for (const auto& [left, right] : kSmallMerges) {
    json = Replaced(json, JsonText(StrCat(left, " ", right)),
                    StrCat("[", JsonText(left), ",", JsonText(right), "]"));
  }
  EXPECT_EQ(Parsed(json)->Encode("hello wor12"), Small()->Encode("hello wor12"));
}

TEST(Tokenizer, IgnoreMergesTakesWholePieces) {
  std::string json = Replaced(SmallTokenizerJson(), "\"vocab\":{",
                              "\"ignore_merges\":true,\"vocab\":{\"xyz\":300,");
  EXPECT_EQ(Parsed(json)->Encode("xyz12xyzz"),
            (Ids{300, 270, Byte('x'), Byte('y'), Byte('z'), Byte('z')}));
}

TEST(Tokenizer, UnusedIdsHaveNoToken) {
  const auto tokenizer =
      Parsed(Replaced(SmallTokenizerJson(), "\"vocab\":{", "\"vocab\":{\"xyz\":300,"));
  EXPECT_EQ(tokenizer->vocab_size(), 301);
  EXPECT_TRUE(tokenizer->HasId(300));
  EXPECT_FALSE(tokenizer->HasId(299));
  EXPECT_EQ(tokenizer->BytesOf(299), "");
}

TEST(Tokenizer, RandomTextComesBack) {
  const auto tokenizer = Small();
  std::mt19937 rng(3);
  const std::string_view parts[] = {"hello",  " wor",       "<s>",    "<think>", "12",
                                    "1",      " ",          "\n",     "a",       "\u4E2D",
                                    "\u00E9", "\U0001F600", "\u0301", "<",       "\x00"};
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (size_t i = rng() % 12; i > 0; --i) text += parts[rng() % std::size(parts)];
    ASSERT_EQ(tokenizer->Decode(tokenizer->Encode(text)), text);
    const Ids plain = tokenizer->Encode(text, {.added_tokens = false});
    ASSERT_EQ(tokenizer->Decode(plain), text);
    for (const int32_t id : plain) ASSERT_GE(id, kSmallByteId);
  }
  for (int round = 0; round < 3000; ++round) {
    std::string bytes;
    for (size_t i = rng() % 12; i > 0; --i) bytes.push_back(static_cast<char>(rng()));
    std::string repaired;
    ASSERT_EQ(tokenizer->Decode(tokenizer->Encode(bytes)), RepairUtf8(bytes, repaired));
  }
}

// A quadratic step would take hours here, and recursion would end the stack.
TEST(Tokenizer, MegabytesOfOneCharacterAreQuick) {
  const auto tokenizer = Small();
  const auto start = std::chrono::steady_clock::now();
  for (const char* unit : {"a", " ", "\n", "1", "<", "\u4E2D", "<s", "l"}) {
    std::string text;
    while (text.size() < (1 << 20)) text += unit;
    ASSERT_EQ(tokenizer->Decode(tokenizer->Encode(text)), text);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

struct BadFile {
  const char* from;
  const char* to;
  const char* message;
};

TEST(Tokenizer, BrokenFilesAreRefusedInOneLine) {
  const BadFile cases[] = {
      {"{\"version\"", "{,\"version\"", "broken JSON"},
      {"\"version\":\"1.0\"", "\"version\":\"\xFF\"", "broken JSON"},
      {"\"version\":\"1.0\"", "\"version\":1e999", "broken JSON"},
      {"\"model\":", "\"modle\":", "no \"model\": not a tokenizer.json"},
      {"\"type\":\"BPE\"", "\"type\":\"Unigram\"",
       "model type \"Unigram\" is not supported, only BPE"},
      {"\"type\":\"BPE\"", "\"kind\":\"BPE\"", "an object with a \"type\" was expected"},
      {"\"dropout\":null", "\"dropout\":0.1", "model.dropout 0.1 is not supported"},
      {"\"byte_fallback\":false", "\"byte_fallback\":true", "model.byte_fallback true"},
      {"\"end_of_word_suffix\":null", "\"end_of_word_suffix\":\"</w>\"",
       "model.end_of_word_suffix"},
      {"\"vocab\":{", "\"vocabulary\":{", "model has no object \"vocab\""},
      {"\"vocab\":{", "\"vocab\":{\"x y\":-1,",
       "id of token \"x y\" is -1, a number from 0 to 4194303"},
      {"\"vocab\":{", "\"vocab\":{\"xy\":4194304,", "id of token \"xy\" is 4194304"},
      {"\"vocab\":{", "\"vocab\":{\"xy\":1.5,", "id of token \"xy\" is 1.5"},
      {"\"vocab\":{", "\"vocab\":{\"xy\":7,", "id 7 is given to"},
      {"\"vocab\":{", "\"vocab\":{\"\":500,", "vocab has an empty token"},
      {"\"vocab\":{", "\"vocab\":{\"<s>\":500,", "token \"<s>\" has two ids, 500 and 0"},
      {"\"A\":71", "\"AB\":71", "byte 65 has no token"},
      {"\"merges\":[", "\"mergers\":[", "model has no list \"merges\""},
      {"\"h e\"", "\"h \"", "merge 0 is \"h \", \"left right\" or"},
      {"\"h e\"", "[\"h\"]", "merge 0 is [\"h\"], \"left right\" or"},
      {"\"h e\"", "\"h e l\"", "merge 0 is \"h e l\""},
      {"\"h e\"", "\"h qq\"", "merge 0 uses \"qq\", which is not in the vocabulary"},
      {"\"h e\"", "\"h q\"", "merge 0 makes \"hq\", which is not in the vocabulary"},
      {"\"id\":5,", "\"id\":4,", "id 4 is given to \"</think>\" and to \"<image>\""},
      {"<image>", "", "is empty"},
      {"\"id\":5,", "", "needs \"content\" and \"id\""},
      {"\"lstrip\":false", "\"lstrip\":1", "\"lstrip\" is 1, true or false was expected"},
      {"\"normalizers\":[]", "\"normalizers\":[{\"type\":\"NFC\"}]",
       "normalizer {\"type\":\"NFC\"} is not"},
      {"\"truncation\":null", "\"truncation\":{\"max_length\":9}", "truncation {\"max_length\":9}"},
      {"\"behavior\":\"Isolated\"", "\"behavior\":\"Removed\"",
       "only Split with behavior Isolated"},
      {"{\"Regex\":\"\\\\p{N}{1,2}\"}", "{\"String\":\"a\"}", "only Split with a pattern"},
      {"\\\\p{N}{1,2}", "(a", "split pattern 0: pattern (a: missing closing parenthesis at byte 2"},
      {"\\\\p{N}{1,2}", "\\\\bx",
       "split pattern 0: pattern \\bx: \"\\b\" at byte 0 is not supported"},
      {"{\"type\":\"Split\"", "{\"type\":\"Digits\"", "pre_tokenizer {"},
      {"\"add_prefix_space\":false", "\"add_prefix_space\":true",
       "ByteLevel with add_prefix_space false"},
      {"{\"type\":\"ByteLevel\",\"add_prefix_space\":false", "{\"type\":\"Split\"",
       "is not supported, only Split with"},
      {"\"decoder\":{\"type\":\"ByteLevel\"", "\"decoder\":{\"type\":\"WordPiece\"", "decoder {"},
      {"\"decoder\":", "\"encoder\":", "decoder has 0 steps"},
      {"\"post_processor\":{\"type\":\"ByteLevel\"",
       "\"post_processor\":{\"type\":\"TemplateProcessing\"",
       "is not supported, only ByteLevel or none"},
  };
  for (const BadFile& bad : cases) {
    const auto result =
        Tokenizer::Parse(Replaced(SmallTokenizerJson(), bad.from, bad.to), "dir/t.json");
    ASSERT_FALSE(result.ok()) << bad.from << " -> " << bad.to;
    const std::string message = MessageOf(result.status());
    EXPECT_NE(message.find(bad.message), std::string::npos) << message;
    EXPECT_EQ(message.find("dir/t.json: "), 0u) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_EQ(message.find('\xFF'), std::string::npos) << message;
    EXPECT_LT(message.size(), 400u) << message;
  }
}

// Printing a value for a message takes stack for each level.
TEST(Tokenizer, DeepFilesAreRefused) {
  const std::string deep(1 << 20, '[');
  const std::string file = "{\"model\":" + deep + std::string(deep.size(), ']') + "}";
  EXPECT_EQ(MessageOf(Tokenizer::Parse(file, "t.json").status()),
            "t.json: nested deeper than 256 levels");
}

// Truncated, cut up and scrambled files end in an error or in a tokenizer, never in a crash.
TEST(Tokenizer, DamagedFilesNeverCrash) {
  const std::string json = SmallTokenizerJson();
  std::mt19937 rng(5);
  for (int round = 0; round < 300; ++round) {
    std::string damaged = json;
    if (round % 2 == 0) damaged.resize(rng() % json.size());
    for (size_t i = rng() % 4; i > 0 && !damaged.empty(); --i) {
      damaged[rng() % damaged.size()] = "\"{}[],:0a\\"[rng() % 10];
    }
    const auto result = Tokenizer::Parse(damaged, "t.json");
    if (result.ok()) (*result)->Encode("hello <s> 12 \u4E2D");
  }
}

TEST(Tokenizer, LoadsFromADisk) {
  SimulatedDisk disk;
  ASSERT_TRUE(disk.WriteText("m/tokenizer.json", SmallTokenizerJson()).ok());
  const auto loaded = Tokenizer::Load(disk, "m/tokenizer.json");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)->sha256(), Small()->sha256());
  const auto missing = Tokenizer::Load(disk, "m/other.json");
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
  EXPECT_NE(MessageOf(missing.status()).find("m/other.json"), std::string::npos);
}

}  // namespace
}  // namespace deepinfer
