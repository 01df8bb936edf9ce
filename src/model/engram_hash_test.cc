// Vectors: model.md 3.9, 1.5 and 7b.
#include "model/engram_hash.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

ModelConfig RealShape() {
  ModelConfig config;
  config.engram_layer_ids = {1, 14};
  config.engram_max_ngram_size = 4;
  config.engram_n_heads = 8;
  config.engram_vocab_size = 16000000;
  config.engram_compressed_vocab_size = 99092;
  return config;
}

// Columns {2g h0, 2g h7, 3g h0, 3g h7, 4g h0, 4g h7} at the last of `classes` (oldest first).
std::vector<int32_t> Corners(const EngramHash& hash, int32_t table, std::vector<int32_t> classes) {
  std::vector<int32_t> history(4, -1), rows(24);
  for (size_t back = 0; back < std::min<size_t>(4, classes.size()); ++back) {
    history[back] = classes[classes.size() - 1 - back];
  }
  hash.Rows(table, history, rows.data());
  return {rows[0], rows[7], rows[8], rows[15], rows[16], rows[23]};
}

TEST(EngramHash, DerivesTheConstantsOfTheRealModel) {
  const EngramHash hash(RealShape(), 2);
  EXPECT_EQ(hash.multipliers(0),
            (std::vector<int64_t>{76632096046245, 4839876093313, 35959672319349, 73987337458391}));
  EXPECT_EQ(hash.multipliers(1),
            (std::vector<int64_t>{67716810739261, 51510806800915, 30921347202721, 82619226485591}));
  EXPECT_EQ(hash.num_rows(0), 384006168);
  EXPECT_EQ(hash.num_rows(1), 384016682);
  EXPECT_EQ(hash.primes(0).front(), 16000057);
  EXPECT_EQ(hash.primes(0).back(), 16000463);
  EXPECT_EQ(hash.primes(1).front(), 16000477);
  EXPECT_EQ(hash.primes(1).back(), 16000889);
}

TEST(EngramHash, DerivesTheConstantsOfTheTinyModel) {
  ModelConfig config;
  config.engram_layer_ids = {1, 3};
  config.engram_max_ngram_size = 4;
  config.engram_n_heads = 2;
  config.engram_vocab_size = 1000;
  config.engram_compressed_vocab_size = 384;
  const EngramHash hash(config, 2);
  EXPECT_EQ(hash.multipliers(0), (std::vector<int64_t>{19775072034933939, 1248940108954747,
                                                       9279468357992093, 19092586571424545}));
  EXPECT_EQ(hash.multipliers(1), (std::vector<int64_t>{7103393517263957, 21072337324090931,
                                                       2807072806331147, 18140272803099203}));
  EXPECT_EQ(hash.primes(0), (std::vector<int64_t>{1009, 1013, 1019, 1021, 1031, 1033}));
  EXPECT_EQ(hash.primes(1), (std::vector<int64_t>{1039, 1049, 1051, 1061, 1063, 1069}));
}

TEST(EngramHash, RowsEqualTheVectors) {
  const EngramHash hash(RealShape(), 2);
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(Corners(hash, 0, {0}),
            (Ids{5702652, 121476532, 131476717, 247482304, 257520185, 380066193}));
  EXPECT_EQ(Corners(hash, 0, {0, 1000, 2000}),
            (Ids{1677522, 116918472, 141943127, 255730487, 260549859, 368228002}));
  EXPECT_EQ(Corners(hash, 0, {0, 1000, 2000, 3000, 99091}),
            (Ids{9269172, 113170070, 139254896, 249285847, 267192101, 369543647}));
  EXPECT_EQ(Corners(hash, 1, {0}),
            (Ids{14361964, 120604547, 132225184, 252505246, 261362261, 372375971}));
  EXPECT_EQ(Corners(hash, 1, {0, 1000, 2000, 3000, 99091}),
            (Ids{15375077, 113427231, 138792741, 248082575, 269839604, 383234265}));
}

TEST(EngramHash, LookBackStopsAtAnImageSpan) {
  const EngramHash hash(RealShape(), 2);
  std::vector<int32_t> rows(24);
  // Classes [0, dead, 2000] at the last position: the 0 behind the dead token is not seen.
  hash.Rows(0, std::vector<int32_t>{2000, -1, 0, -1}, rows.data());
  EXPECT_EQ(rows[0], 12893668);
  EXPECT_EQ(rows[8], 142647407);
  EXPECT_EQ(rows[16], 261691768);
  EXPECT_EQ(rows[23], 382814683);
}

}  // namespace
}  // namespace deepinfer
