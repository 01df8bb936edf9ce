#include "tokens/output_constraint.h"

#include "base/rng.h"
#include "tokens/grammar_test_util.h"

namespace deepinfer {
namespace {

constexpr int32_t kA = kSmallByteId + 'a', kB = kSmallByteId + 'b', kX = kSmallByteId + 'x';

// Outputs of "ab" and then an end, behind what `start` says.
OutputConstraint Constraint(StructuredOutput start) {
  start.kind = StructuredOutput::Kind::kRegex;
  start.text = "ab";
  return OutputConstraint(CompileSmall(start), start);
}

std::vector<uint32_t> EmptyMask() {
  return std::vector<uint32_t>(static_cast<size_t>(SmallVocabulary()->mask_words()));
}

// What may come next, of a few ids.
std::vector<int32_t> Next(OutputConstraint& constraint) {
  std::vector<uint32_t> mask = EmptyMask();
  const bool some = constraint.FillMask(mask);
  std::vector<int32_t> allowed;
  for (const int32_t id : {kSmallEnd, kSmallThinkEnd, kSmallMarker, kA, kB, kX}) {
    if (!some || Allows(mask, id)) allowed.push_back(id);
  }
  return allowed;
}

TEST(OutputConstraint, WithoutAConditionTheGrammarStartsAtOnce) {
  OutputConstraint constraint = Constraint({});
  EXPECT_EQ(Next(constraint), std::vector{kA});
  EXPECT_FALSE(constraint.Accept(kB));
  EXPECT_TRUE(constraint.Accept(kA));
  EXPECT_TRUE(constraint.Accept(kB));
  EXPECT_EQ(Next(constraint), std::vector{kSmallEnd});
  EXPECT_TRUE(constraint.Accept(kSmallEnd));
  EXPECT_TRUE(constraint.ended());
  // Asked on behind the end inside a draft.
  EXPECT_EQ(Next(constraint), std::vector{kSmallEnd});
  EXPECT_FALSE(constraint.Accept(kA));
  EXPECT_TRUE(constraint.Accept(kSmallEnd));
}

TEST(OutputConstraint, BeforeTheBoundTokenEverythingButAnEndIsAllowed) {
  OutputConstraint constraint = Constraint({.bound_token_id = kSmallThinkEnd});
  EXPECT_EQ(Next(constraint), (std::vector{kSmallThinkEnd, kSmallMarker, kA, kB, kX}));
  EXPECT_TRUE(constraint.Accept(kX));
  EXPECT_FALSE(constraint.Accept(kSmallEnd));
  EXPECT_TRUE(constraint.Accept(kSmallThinkEnd));
  EXPECT_EQ(Next(constraint), std::vector{kA});
}

TEST(OutputConstraint, ATriggerIsFoundWhereverItStands) {
  OutputConstraint constraint = Constraint({.trigger_token_ids = {kX, kX, kA}});
  EXPECT_EQ(Next(constraint).size(), 6u);
  for (const int32_t id : {kX, kX, kX}) EXPECT_TRUE(constraint.Accept(id));
  EXPECT_FALSE(constraint.in_grammar());
  EXPECT_TRUE(constraint.Accept(kA));  // x [x x a]
  EXPECT_TRUE(constraint.in_grammar());
  EXPECT_EQ(Next(constraint), std::vector{kA});
}

TEST(OutputConstraint, ATriggerBehindABoundIsForced) {
  OutputConstraint constraint =
      Constraint({.trigger_token_ids = {kX, kSmallMarker}, .bound_token_id = kSmallThinkEnd});
  EXPECT_TRUE(constraint.Accept(kA));
  EXPECT_TRUE(constraint.Accept(kSmallThinkEnd));
  EXPECT_EQ(Next(constraint), std::vector{kX});
  EXPECT_FALSE(constraint.Accept(kSmallMarker));
  EXPECT_TRUE(constraint.Accept(kX));
  EXPECT_EQ(Next(constraint), std::vector{kSmallMarker});
  EXPECT_TRUE(constraint.Accept(kSmallMarker));
  EXPECT_EQ(Next(constraint), std::vector{kA});
}

// case_22, the library's half: the bound token at every place of a block of up to 6 tokens; the
// mask is on from the next token, and the token behind it is fed to the grammar.
TEST(OutputConstraint, Case22TheBoundTokenAtEveryPlaceOfABlock) {
  for (int length = 1; length <= 6; ++length) {
    for (int place = 0; place < length; ++place) {
      OutputConstraint constraint = Constraint({.bound_token_id = kSmallThinkEnd});
      std::vector<int32_t> block(static_cast<size_t>(place), kX);
      block.push_back(kSmallThinkEnd);
      for (const int32_t id : {kA, kB, kSmallEnd, kSmallEnd, kSmallEnd}) block.push_back(id);
      block.resize(static_cast<size_t>(length));
      for (int i = 0; i < length; ++i) {
        const std::vector<int32_t> allowed = Next(constraint);
        EXPECT_EQ(allowed.size() == 1, i > place) << length << " " << place << " " << i;
        EXPECT_TRUE(constraint.Accept(block[static_cast<size_t>(i)]));
      }
      constraint.Rollback(length);
      EXPECT_EQ(Next(constraint).size(), 5u);
    }
  }
}

// 1,000 random ways forward and back: the masks only depend on what is accepted now.
TEST(OutputConstraint, RollbackLeavesNoTrace) {
  SeededRng rng(22);
  const std::vector<int32_t> ids{kSmallEnd, kSmallThinkEnd, kSmallMarker, kA, kB, kX};
  for (int round = 0; round < 1000; ++round) {
    StructuredOutput start;
    if (rng.Uniform(2) == 0) start.bound_token_id = kSmallThinkEnd;
    if (rng.Uniform(2) == 0) start.trigger_token_ids = {kX, kA};
    OutputConstraint constraint = Constraint(start);
    std::vector<int32_t> accepted;
    for (int step = 0; step < 20; ++step) {
      if (!accepted.empty() && rng.Uniform(3) == 0) {
        const auto count = static_cast<int32_t>(1 + rng.Uniform(accepted.size()));
        constraint.Rollback(count);
        accepted.resize(accepted.size() - static_cast<size_t>(count));
      }
      const int32_t id = ids[rng.Uniform(ids.size())];
      const std::vector<int32_t> allowed = Next(constraint);
      const bool may = std::find(allowed.begin(), allowed.end(), id) != allowed.end();
      ASSERT_EQ(constraint.Accept(id), may);
      if (may) accepted.push_back(id);
      OutputConstraint fresh = Constraint(start);
      for (const int32_t earlier : accepted) ASSERT_TRUE(fresh.Accept(earlier));
      ASSERT_EQ(Next(constraint), Next(fresh));
    }
  }
}

}  // namespace
}  // namespace deepinfer
