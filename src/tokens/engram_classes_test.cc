#include "tokens/engram_classes.h"

#include <gtest/gtest.h>

#include "base/sha256.h"
#include "base/simulated_disk.h"
#include "tokens/engram_key.h"
#include "tokens/small_tokenizer_for_tests.h"

namespace deepinfer {
namespace {

using Table = std::vector<int32_t>;

TEST(EngramKey, FoldsWhatLooksAlike) {
  EXPECT_EQ(EngramKey("Hello"), "hello");
  EXPECT_EQ(EngramKey(" Caf\u00E9\n"), "cafe");
  EXPECT_EQ(EngramKey("\u0130\u0130"), "ii");            // its full lower case has two characters
  EXPECT_EQ(EngramKey("\u03A3\u03A3"), "\u03C3\u03C3");  // no rule for a final sigma
  EXPECT_EQ(EngramKey("\uFB01\uFF21\u00B2"), "fia2");    // compatibility forms
  EXPECT_EQ(EngramKey("\u0BBE\u20DD"), "");              // Mc and Me are marks too
  EXPECT_EQ(EngramKey("\uD55C"), "\u1112\u1161\u11AB");  // Hangul decomposed
  EXPECT_EQ(EngramKey("a \t\r\n b"), "a b");
  EXPECT_EQ(EngramKey("a \u0301 b"), "a b");  // blanks that meet once the mark is gone
  EXPECT_EQ(EngramKey("a\v\vb"), "a\v\vb");   // only blanks, tabs and line ends collapse
}

TEST(EngramKey, OneBlankStaysOtherWhiteSpaceAtTheEndsGoes) {
  EXPECT_EQ(EngramKey(" "), " ");
  EXPECT_EQ(EngramKey("\n\n"), " ");
  EXPECT_EQ(EngramKey("\u00A0"), " ");  // a blank after NFKC
  EXPECT_EQ(EngramKey("\u2028"), "");
  EXPECT_EQ(EngramKey("\v a \u2029"), "a");
  EXPECT_EQ(EngramKey("\x1C"), "\x1C");  // white space to Python only
  EXPECT_EQ(EngramKey(""), "");
}

class EngramClassesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto tokenizer = Tokenizer::Parse(SmallTokenizerJson(), "m/tokenizer.json");
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    tokenizer_ = std::move(tokenizer).value();
    computed_ = ComputeEngramClasses(*tokenizer_, kSmallVocabSize);
    spec_ = {kSmallVocabSize, 1 + *std::max_element(computed_.begin(), computed_.end()), 2};
    ASSERT_TRUE(disk_.CreateDirectories("m").ok());
  }

  void WriteTable(const Table& table) {
    const std::string_view bytes(reinterpret_cast<const char*>(table.data()), 4 * table.size());
    ASSERT_TRUE(disk_.WriteText("m/engram_classes.bin", bytes).ok());
  }
  StatusOr<Table> Load() { return LoadEngramClasses(disk_, "m", tokenizer_.get(), spec_); }
  std::string Error() { return MessageOf(Load().status()); }
  int32_t Class(char byte) const {
    return computed_[static_cast<size_t>(kSmallByteId + static_cast<uint8_t>(byte))];
  }

  SimulatedDisk disk_;
  std::unique_ptr<Tokenizer> tokenizer_;
  Table computed_;
  EngramClassSpec spec_;
};

TEST_F(EngramClassesTest, ComputedInOrderOfFirstAppearance) {
  EXPECT_EQ((Table(computed_.begin(), computed_.begin() + 7)), (Table{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(Class('a'), Class('A'));
  EXPECT_EQ(Class(' '), Class('\n'));
  EXPECT_NE(Class('\xE4'), Class('\xE5'));  // half characters: each its own
  EXPECT_EQ(computed_[266], Class('w'));    // " w"
  int32_t next = 0;
  for (const int32_t c : computed_) {
    EXPECT_LE(c, next);
    next += c == next;
  }
}

TEST_F(EngramClassesTest, IdsWithoutATokenShareAClass) {
  const Table table = ComputeEngramClasses(*tokenizer_, kSmallVocabSize + 3);
  EXPECT_EQ(table[kSmallVocabSize], spec_.num_classes);
  EXPECT_EQ(table[kSmallVocabSize + 2], spec_.num_classes);
}

// A cache file with another table in it shows whether it is read.
TEST_F(EngramClassesTest, ComputedOnceThenReadFromTheCache) {
  EXPECT_EQ(*Load(), computed_);
  const std::string path = "m/engram_classes.cache.bin";
  std::string file = *disk_.ReadText(path);
  Table other = computed_;
  std::swap(other[10], other[11]);
  const std::string_view bytes(reinterpret_cast<const char*>(other.data()), 4 * other.size());
  file.resize(file.size() - 64 - bytes.size());  // the table's digest and the table
  ASSERT_TRUE(disk_.WriteText(path, StrCat(file, ToHex(Sha256Of(bytes)), bytes)).ok());
  EXPECT_EQ(*Load(), other);
}

TEST_F(EngramClassesTest, ACacheOfAnotherTokenizerOrADamagedOneIsMadeAnew) {
  ASSERT_TRUE(Load().ok());
  const std::string path = "m/engram_classes.cache.bin";
  const std::string good = *disk_.ReadText(path);
  std::string other_tokenizer = good, damaged = good;
  other_tokenizer[40] = other_tokenizer[40] == 'a' ? 'b' : 'a';
  damaged.back() ^= 1;
  for (const std::string& bad :
       {other_tokenizer, damaged, good.substr(0, good.size() - 1), std::string()}) {
    ASSERT_TRUE(disk_.WriteText(path, bad).ok());
    const StatusOr<Table> table = Load();
    ASSERT_TRUE(table.ok()) << table.status();
    EXPECT_EQ(*table, computed_);
    EXPECT_EQ(*disk_.ReadText(path), good);
  }
}

TEST_F(EngramClassesTest, AFullDiskCostsOnlyTheCache) {
  disk_.set_capacity_bytes(10);
  const StatusOr<Table> table = Load();
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(*table, computed_);
  EXPECT_FALSE(disk_.IsFile("m/engram_classes.cache.bin"));
}

TEST_F(EngramClassesTest, TheCheckpointsOwnTableIsUsedWithAndWithoutATokenizer) {
  Table own(kSmallVocabSize);
  for (int32_t id = 0; id < kSmallVocabSize; ++id) own[static_cast<size_t>(id)] = id % 100;
  WriteTable(own);
  spec_.num_classes = 100;
  EXPECT_EQ(*Load(), own);
  tokenizer_.reset();
  EXPECT_EQ(*Load(), own);
}

TEST_F(EngramClassesTest, WithoutTableAndTokenizerSaysWhatIsMissing) {
  tokenizer_.reset();
  EXPECT_EQ(Load().status().code(), StatusCode::kNotFound);
  EXPECT_EQ(Error(),
            "m: neither tokenizer.json nor engram_classes.bin is there, one of them is needed "
            "for the engram token classes");
}

TEST_F(EngramClassesTest, case_R19_WrongLengthIsRefusedNamingBoth) {
  WriteTable(Table(5));
  EXPECT_EQ(Error(),
            "m/engram_classes.bin: 20 bytes, expected 1092 (an int32 for each of 273 token ids)");
}

TEST_F(EngramClassesTest, case_R19_WrongCountIsRefusedNamingBoth) {
  spec_.num_classes += 418;
  EXPECT_EQ(Error(), StrCat("engram token classes of m/tokenizer.json: ", spec_.num_classes - 418,
                            " classes, the highest is ", spec_.num_classes - 419,
                            ", but engram_compressed_vocab_size in config.json says ",
                            spec_.num_classes, ": tokenizer and weights do not belong together"));
  EXPECT_FALSE(disk_.IsFile("m/engram_classes.cache.bin"));
}

TEST_F(EngramClassesTest, case_R19_ClassesOutOfRangeAreRefused) {
  Table table = computed_;
  table[7] = -3;
  WriteTable(table);
  const std::string expected = StrCat(", expected 0 to ", spec_.num_classes - 1);
  EXPECT_EQ(Error(),
            "engram token classes of m/engram_classes.bin: class -3 of token 7" + expected);
  table[7] = 2'000'000'000;  // must not size anything by it
  WriteTable(table);
  EXPECT_EQ(Error(),
            "engram token classes of m/engram_classes.bin: class 2000000000 of token 7" + expected);
}

TEST_F(EngramClassesTest, case_R19_WrongPadClassIsRefusedNamingBoth) {
  Table table = computed_;
  std::swap(table[1], table[2]);
  WriteTable(table);
  EXPECT_EQ(
      Error(),
      "engram token classes of m/engram_classes.bin: the pad token 2 has class 1, expected 2");
}

TEST_F(EngramClassesTest, case_R19_WrongDigestBesideTheRealTokenizerIsRefusedNamingBoth) {
  const std::string real = "c90dfa01249db1be4245780a052ede752e1361c612ac6d08e2bdada7d599476b";
  EXPECT_TRUE(CheckEngramClasses(computed_, spec_, std::string(64, '0'), "t").ok());
  const std::string message = MessageOf(CheckEngramClasses(computed_, spec_, real, "t"));
  EXPECT_NE(message.find("SHA-256 of the table is "), std::string::npos) << message;
  EXPECT_NE(
      message.find("expected c60a86322ec17b4142bfef3c57a8d81fb428550cdf487f88a4320cb59fe46481"),
      std::string::npos)
      << message;
}

TEST_F(EngramClassesTest, case_R19_ATokenizerWithMoreIdsThanTheModelIsRefused) {
  spec_.vocab_size = 200;
  EXPECT_EQ(Error(), "m/tokenizer.json: ids up to 272, but vocab_size in config.json is 200");
}

}  // namespace
}  // namespace deepinfer
