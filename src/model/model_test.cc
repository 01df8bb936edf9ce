// The engine against itself: a row's result depends on its own sequence and on nothing else.
// The engine against the official arithmetic: tests/golden.
#include "model/model.h"

#include <gtest/gtest.h>

#include "model/testing/test_model.h"

namespace deepinfer {
namespace {

std::span<const float> Row(const std::vector<float>& logits, int64_t row, int64_t vocab) {
  return std::span(logits).subspan(static_cast<size_t>(row * vocab), static_cast<size_t>(vocab));
}

// Bit for bit, so that -0 against 0 and NaN count too.
::testing::AssertionResult SameBits(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << a.size() << " vs " << b.size();
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i])) {
      return ::testing::AssertionFailure() << "element " << i << ": " << a[i] << " vs " << b[i];
    }
  }
  return ::testing::AssertionSuccess();
}

class Chunks : public ::testing::TestWithParam<std::vector<int32_t>> {};

TEST_P(Chunks, AnyCutGivesTheSameBits) {
  TestModel model("tiny");
  const std::vector<int32_t> tokens = TestTokens(200, model.config().vocab_size, 1);
  const std::vector<float> whole = TestSequence(model, tokens).Run(0, 200);
  EXPECT_TRUE(SameBits(whole, TestSequence(model, tokens).RunInChunks(GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Model, Chunks,
                         ::testing::Values(std::vector<int32_t>{1}, std::vector<int32_t>{2},
                                           std::vector<int32_t>{3}, std::vector<int32_t>{7},
                                           std::vector<int32_t>{64}, std::vector<int32_t>{63, 1},
                                           std::vector<int32_t>{1, 2, 5, 3, 7, 16, 31},
                                           std::vector<int32_t>{199, 1}));

// Case 41: the logits of position t - 1 by decode are those of a prefill of t tokens.
TEST(Model, case_41_DecodeEqualsPrefillAt600Positions) {
  TestModel model("tiny");
  const int64_t vocab = model.config().vocab_size;
  const std::vector<int32_t> tokens = TestTokens(600, model.config().vocab_size, 2);
  const std::vector<float> steps = TestSequence(model, tokens).RunInChunks({1});
  // One pass has all rows of a prefill: row t - 1 of it is the last row of a prefill of t tokens,
  // because rows do not see later ones. Some lengths are run as prefills of their own to show just
  // that.
  EXPECT_TRUE(SameBits(steps, TestSequence(model, tokens).Run(0, 600)));
  for (const int32_t length : {1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 300, 599}) {
    TestSequence prefix(model, {tokens.begin(), tokens.begin() + length});
    const std::vector<float> logits = prefix.Run(0, length);
    EXPECT_TRUE(SameBits(Row(logits, length - 1, vocab), Row(steps, length - 1, vocab))) << length;
  }
}

// The selection really filters here: 600 entries against 8 candidate blocks of 4. A test of the
// test.
TEST(Model, ContextsPassTheCandidateFilter) {
  const TestModel model("tiny");
  const ModelConfig& config = model.config();
  EXPECT_LT(config.candidate_topk_blocks * config.candidate_block_size, 600);
  EXPECT_LT(config.index_topk, 600 / 2);
}

TEST(Model, RealAttentionShapeChunksPastTheFilter) {
  TestModel model("stress_b");
  const std::vector<int32_t> tokens = TestTokens(200, model.config().vocab_size, 3);
  const std::vector<float> whole = TestSequence(model, tokens).Run(0, 200);
  EXPECT_TRUE(SameBits(whole, TestSequence(model, tokens).RunInChunks({1, 130, 7, 5})));
}

TEST(Model, ManySequencesInOnePassChangeNothing) {
  TestModel model("tiny");
  const int64_t vocab = model.config().vocab_size;
  std::vector<std::unique_ptr<TestSequence>> sequences;
  std::vector<std::vector<float>> alone;
  ForwardBatch batch;
  for (int32_t i = 0; i < 7; ++i) {
    const auto tokens =
        TestTokens(20 + 13 * i, model.config().vocab_size, 10 + static_cast<uint64_t>(i));
    const auto length = static_cast<int32_t>(tokens.size());
    alone.push_back(TestSequence(model, tokens).Run(0, length));
    sequences.push_back(std::make_unique<TestSequence>(model, tokens));
    // Half of them are in the middle of their prompt, as decode rows and chunks are.
    const int32_t begin = i % 2 == 0 ? 0 : length - i;
    if (begin > 0) sequences.back()->Run(0, begin);
    batch.segments.push_back(sequences.back()->Segment(begin, length));
  }
  const std::span<const float> together = model.model().Forward(batch).value();
  int64_t row = 0;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const ForwardSegment& segment = batch.segments[i];
    const int64_t count = segment.end - segment.begin;
    EXPECT_TRUE(SameBits(
        together.subspan(static_cast<size_t>(row * vocab), static_cast<size_t>(count * vocab)),
        std::span(alone[i]).last(static_cast<size_t>(count * vocab))));
    row += count;
  }
}

TEST(Model, ThreadsChangeNothing) {
  TestModel one("tiny", kCpuVariant, 1), three("tiny", kCpuVariant, 3);
  const std::vector<int32_t> tokens = TestTokens(90, one.config().vocab_size, 4);
  EXPECT_TRUE(
      SameBits(TestSequence(one, tokens).Run(0, 90), TestSequence(three, tokens).Run(0, 90)));
}

// A verification of v rows that is rejected leaves nothing behind: the next rows overwrite by
// position.
TEST(Model, RejectedRowsLeaveNoTrace) {
  TestModel model("tiny");
  const int32_t width = model.model().kv_shape().verify_width;
  const std::vector<int32_t> right = TestTokens(120, model.config().vocab_size, 5);
  const std::vector<float> whole = TestSequence(model, right).Run(0, 120);
  TestSequence sequence(model, right);
  sequence.Run(0, 70);
  for (int32_t position = 70; position < 120; ++position) {
    // The anchor is right, the drafts behind it are not, and they are run with full KV semantics.
    const int32_t end = std::min(120, position + width);
    for (int32_t p = position + 1; p < end; ++p) sequence.tokens[static_cast<size_t>(p)] ^= 5;
    const std::vector<float> rows = sequence.Run(position, end);
    for (int32_t p = position + 1; p < end; ++p) sequence.tokens[static_cast<size_t>(p)] ^= 5;
    ASSERT_TRUE(SameBits(Row(rows, 0, model.config().vocab_size),
                         Row(whole, position, model.config().vocab_size)))
        << position;
  }
}

class Bounded : public ::testing::TestWithParam<const char*> {};

// Bounded replay runs the decoder on the last KEEP rows only; `mask` runs every row with windows
// narrowed. The kept rows and the draft that follows must agree bit for bit, wherever the prompt is
// cut.
TEST_P(Bounded, DecoderEqualsItsMaskOracle) {
  TestModel model(GetParam());
  const int32_t length = 100, keep = model.model().kv_shape().ring_rows;
  const int64_t vocab = model.config().vocab_size;
  const std::vector<int32_t> tokens = TestTokens(length, model.config().vocab_size, 6);
  const auto run = [&](int32_t cut, bool compact) {
    TestSequence sequence(model, tokens);
    std::vector<float> results;
    for (const auto& [begin, end] : {std::pair{0, cut}, std::pair{cut, length}}) {
      ForwardSegment segment = sequence.Segment(begin, end);
      segment.decoder_window_begin = length - keep;
      if (compact) segment.decoder_begin = length - keep;
      segment.logits_begin = length - keep;
      const ForwardBatch batch = {{segment}};
      const std::span<const float> logits = model.model().Forward(batch).value();
      results.insert(results.end(), logits.begin(), logits.end());
    }
    const DraftRequest request = {&sequence.kv(), 17, length};
    const auto record = [&](int32_t, int32_t, std::span<const float> logits) {
      results.insert(results.end(), logits.begin(), logits.end());
      return 5;
    };
    CHECK(model.model().Propose(std::span(&request, 1), record).ok());
    return results;
  };
  const std::vector<float> oracle = run(length, /*compact=*/false);
  ASSERT_EQ(std::ssize(oracle), (keep + model.config().dspark_block_size) * vocab);
  for (int32_t cut = 0; cut <= length; ++cut) {
    ASSERT_TRUE(SameBits(oracle, run(cut, true))) << "cut at " << cut;
  }
  // The narrowed windows do change results, or the comparison would prove nothing.
  const std::vector<float> exact = TestSequence(model, tokens).Run(0, length);
  const auto kept = static_cast<size_t>(keep * vocab);
  EXPECT_FALSE(SameBits(std::span(oracle).first(kept), std::span(exact).last(kept)));
}

// stress_a: a draft target lies below the decoder half.
INSTANTIATE_TEST_SUITE_P(Model, Bounded, ::testing::Values("tiny", "stress_a"));

// After a prefix hit the encoder replays from R: pages below H are not rewritten, windows start at
// R.
TEST(Model, ReplayKeepsPagesAndRebuildsRings) {
  TestModel model("tiny");
  const int32_t length = 128, replay_from = 40;
  const std::vector<int32_t> tokens = TestTokens(length + 1, model.config().vocab_size, 7);
  TestSequence sequence(model, tokens);
  sequence.Run(0, length);
  const PagedSource source = sequence.kv().Source(1);
  const int64_t bytes = source.page_bytes * 2;
  const std::vector<uint8_t> before(source.pool, source.pool + bytes);
  ForwardSegment segment = sequence.Segment(replay_from, length);
  segment.window_begin = segment.decoder_window_begin = replay_from;
  segment.keep_entries_below = length;
  const ForwardBatch batch = {{segment}};
  ASSERT_TRUE(model.model().Forward(batch).ok());
  EXPECT_EQ(before, std::vector<uint8_t>(source.pool, source.pool + bytes));

  // A negative control: without keep_entries_below the narrowed windows do rewrite entries.
  segment.keep_entries_below = 0;
  const ForwardBatch rewriting = {{segment}};
  ASSERT_TRUE(model.model().Forward(rewriting).ok());
  EXPECT_NE(before, std::vector<uint8_t>(source.pool, source.pool + bytes));
}

TEST(Model, OracleAndPlainFormAgreeEndToEnd) {
  TestModel oracle("tiny", kRefVariant), plain("tiny", kCpuVariant);
  const std::vector<int32_t> tokens = TestTokens(60, oracle.config().vocab_size, 8);
  const std::vector<float> want = TestSequence(oracle, tokens).Run(0, 60);
  const std::vector<float> got = TestSequence(plain, tokens).Run(0, 60);
  double diff = 0, norm = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    diff += std::pow(static_cast<double>(got[i]) - static_cast<double>(want[i]), 2);
    norm += std::pow(static_cast<double>(want[i]), 2);
  }
  EXPECT_LT(std::sqrt(diff / norm), 5e-2);
}

TEST(Model, DraftsDoNotDependOnTheBatch) {
  TestModel model("tiny");
  const auto greedy = [](int32_t, int32_t, std::span<const float> logits) {
    return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  };
  std::vector<std::unique_ptr<TestSequence>> sequences;
  std::vector<DraftRequest> requests;
  std::vector<Draft> alone;
  for (int32_t i = 0; i < 3; ++i) {
    const int32_t length = 9 + 40 * i;
    sequences.push_back(std::make_unique<TestSequence>(
        model, TestTokens(length, model.config().vocab_size, 20 + static_cast<uint64_t>(i))));
    sequences.back()->Run(0, length);
    requests.push_back({&sequences.back()->kv(), 17 + i, length});
    alone.push_back(model.model().Propose(std::span(&requests.back(), 1), greedy).value()[0]);
  }
  const std::vector<Draft> together = model.model().Propose(requests, greedy).value();
  for (size_t i = 0; i < alone.size(); ++i) {
    EXPECT_EQ(together[i].tokens, alone[i].tokens);
    EXPECT_TRUE(SameBits(together[i].confidences, alone[i].confidences));
    EXPECT_EQ(std::ssize(alone[i].tokens), model.config().dspark_block_size);
  }
  EXPECT_NE(alone[0].tokens, alone[1].tokens);
}

}  // namespace
}  // namespace deepinfer
