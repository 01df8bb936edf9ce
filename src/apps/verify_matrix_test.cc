#include "apps/verify_matrix.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/testing/fake_engine.h"
#include "engine/testing/fake_grammar.h"

namespace deepinfer {
namespace {

using testing::FakeEngine;
using testing::FakeGrammarSource;
using testing::FakeModel;
using testing::FakeOptions;

constexpr int32_t kVocab = 16;

// What is wrong with an engine. Each makes some rows red, and leaves the others green.
enum class Fault { kNone, kBatchMatters, kNoCache, kAlwaysSaves };

class FakeVerifyEngine : public VerifyEngine {
 public:
  FakeVerifyEngine(const VerifySetting& setting, Fault fault) : fault_(fault) {
    FakeOptions options;
    options.vocab_size = kVocab;
    const int32_t pages = setting.longest / kTokensPerPage + 1;
    options.num_pages = pages * (setting.pages_for > 0 ? setting.pages_for : 8);
    const bool host = setting.host_memory || fault == Fault::kAlwaysSaves;
    options.num_host_pages = host ? 200 : 0;
    options.num_saves = host ? setting.max_num_seqs : 0;
    options.num_slots = 40;
    options.scheduler = {.max_num_seqs = setting.max_num_seqs,
                         .max_num_batched_tokens = setting.max_num_batched_tokens,
                         .max_model_len = 700,
                         .replay = *ParseReplayMode(setting.replay),
                         .prefix_cache = setting.prefix_cache && fault != Fault::kNoCache};
    options.async = setting.async;
    options.grammars = &grammars_;
    options.logits = [this](std::span<const int32_t> tokens) { return Logits(tokens); };
    engine_ = std::make_unique<FakeEngine>(options);
  }

  EngineCore& core() override { return engine_->core(); }

 private:
  std::vector<float> Logits(std::span<const int32_t> tokens) const {
    std::vector<float> row = FakeModel::LogitsAfter(tokens, kVocab);
    const bool alone = engine_->pass_rows().back() == 1;
    if (fault_ == Fault::kBatchMatters && !alone && tokens.size() % 16 == 0) {
      row[3] = std::nextafter(row[3], 100.0f);
    }
    return row;
  }

  const Fault fault_;
  FakeGrammarSource grammars_{kVocab};
  std::unique_ptr<FakeEngine> engine_;
};

std::vector<VerifyRow> RowsWith(Fault fault) {
  const auto rows = RunVerifyMatrix(
      {.num_requests = 8,
       .output_tokens = 30,
       .vocab_size = kVocab,
       .max_model_len = 700,
       .window = FakeModel::kWindow,
       .replay_keep = FakeModel::kKeep,
       .min_token = 2,
       .structured = true},
      [fault](const VerifySetting& setting) -> StatusOr<std::unique_ptr<VerifyEngine>> {
        return std::make_unique<FakeVerifyEngine>(setting, fault);
      });
  EXPECT_TRUE(rows.ok()) << rows.status();
  return rows.ok() ? *rows : std::vector<VerifyRow>();
}

const VerifyRow& RowOf(const std::vector<VerifyRow>& rows, std::string_view name) {
  const auto at = std::find_if(rows.begin(), rows.end(),
                               [name](const VerifyRow& row) { return row.name == name; });
  EXPECT_NE(at, rows.end()) << name;
  return *at;
}

TEST(VerifyMatrix, EveryRowIsGreenAndSawWhatItIsAbout) {
  for (const VerifyRow& row : RowsWith(Fault::kNone)) {
    EXPECT_TRUE(row.ok) << row.name << ": " << row.problem;
    EXPECT_EQ(row.tokens, 8 * 30) << row.name;
  }
}

TEST(VerifyMatrix, AnUlpThatDependsOnTheBatchTurnsItsRowsRed) {
  const std::vector<VerifyRow> rows = RowsWith(Fault::kBatchMatters);
  EXPECT_TRUE(RowOf(rows, "alone").ok);
  EXPECT_FALSE(RowOf(rows, "batch").ok);
  EXPECT_NE(RowOf(rows, "batch").problem.find("log-probabilities"), std::string::npos);
}

TEST(VerifyMatrix, ARowWithoutItsHitsFails) {
  const std::vector<VerifyRow> rows = RowsWith(Fault::kNoCache);
  EXPECT_EQ(RowOf(rows, "cache-hit").problem, "nothing was found in the cache");
  EXPECT_EQ(RowOf(rows, "host-tier").problem, "nothing was found in the cache");
  EXPECT_TRUE(RowOf(rows, "batch").ok);
}

TEST(VerifyMatrix, ARowInWhichNothingIsComputedAgainFails) {
  const std::vector<VerifyRow> rows = RowsWith(Fault::kAlwaysSaves);
  EXPECT_EQ(RowOf(rows, "recomputed").problem, "nothing was computed again");
  EXPECT_TRUE(RowOf(rows, "preempted").ok);
}

TEST(VerifyMatrix, MoreOutputThanCanBeIsRefused) {
  const auto rows = RunVerifyMatrix({.output_tokens = 1 << 30, .max_model_len = 1 << 30}, nullptr);
  EXPECT_EQ(MessageOf(rows.status()), "output_tokens: found 1073741824, expected at most 1048576");
}

}  // namespace
}  // namespace deepinfer
