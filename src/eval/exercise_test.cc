#include "eval/exercise.h"

#include <gtest/gtest.h>

#include <set>

#include "eval/exercise_for_tests.h"
#include "eval/turns.h"
#include "eval/words.h"

namespace deepinfer {
namespace {

TEST(Split, OneKeyInSixteenIsHeldOutAndTheTaskCounts) {
  int num_held_out = 0, num_different = 0;
  for (int i = 0; i < 16000; ++i) {
    const std::string key = StrCat(i, "+", i * 7);
    num_held_out += SplitOf("a", key) == Split::kHeldOut;
    num_different += SplitOf("a", key) != SplitOf("b", key);
  }
  EXPECT_NEAR(num_held_out, 1000, 100);
  EXPECT_NEAR(num_different, 16000 * 2 * 15 / 256, 200);
  EXPECT_NE(HashOfKey("ab", "c"), HashOfKey("a", "bc"));
}

// The values decide what old training shards held, so they stay.
TEST(Split, OfAKeyNeverChanges) {
  std::string held_out;
  for (int i = 0; i < 100; ++i) {
    if (SplitOf("arithmetic", StrCat(i, "+1")) == Split::kHeldOut) held_out += StrCat(i, " ");
  }
  EXPECT_EQ(held_out, "8 76 78 99 ");
}

TEST(Tasks, NamesAreUniqueAndFound) {
  std::set<std::string_view> names;
  for (const TaskKind& kind : AllTasks()) {
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
    EXPECT_EQ(FindTask(kind.name), &kind);
  }
  EXPECT_EQ(FindTask("nothing"), nullptr);
}

class EveryTask : public ::testing::TestWithParam<TaskKind> {
 protected:
  // Long enough for the kind and not longer, so that many can be drawn.
  int32_t MaxTokens() const {
    if (GetParam().name == "needle_4k") return 4096;
    return GetParam().name == "needle_8k" ? 8192 : 1024;
  }
  int NumDraws(int usual) const { return MaxTokens() > 1024 ? usual / 100 : usual; }

  Exercise Draw(Rng& rng, Split split) const {
    DrawContext context = ContextForTests(rng, split, MaxTokens());
    StatusOr<Exercise> exercise = GetParam().draw(context);
    CHECK(exercise.ok());
    return *std::move(exercise);
  }
};

TEST_P(EveryTask, KeysLieInTheSplitAskedFor) {
  if (!GetParam().split_by_key) GTEST_SKIP() << "kept apart by something else";
  SeededRng rng(1);
  for (int i = 0; i < NumDraws(20'000); ++i) {
    const Exercise exercise = Draw(rng, Split::kTraining);
    EXPECT_EQ(SplitOf(exercise.task, exercise.key), Split::kTraining) << exercise.key;
    for (const std::string& key : exercise.earlier_keys) {
      EXPECT_EQ(SplitOf(exercise.task, key), Split::kTraining) << key;
    }
  }
  if (!GetParam().evaluated) return;
  for (int i = 0; i < NumDraws(200); ++i) {
    const Exercise exercise = Draw(rng, Split::kHeldOut);
    EXPECT_EQ(SplitOf(exercise.task, exercise.key), Split::kHeldOut) << exercise.key;
  }
}

TEST_P(EveryTask, ConversationsFitWithAndWithoutThinking) {
  SeededRng rng(2);
  for (int i = 0; i < NumDraws(300); ++i) {
    for (const Split split : {Split::kTraining, Split::kHeldOut}) {
      if (split == Split::kHeldOut && !GetParam().evaluated) continue;
      Exercise exercise = Draw(rng, split);
      ASSERT_EQ(exercise.answer().role, Role::kAssistant);
      for (const int effort : {0, 100}) {
        exercise.conversation.thinking = {.enabled = effort > 0, .effort = std::max(effort, 1)};
        EXPECT_LE(std::ssize(IdsOf(exercise.conversation)), MaxTokens());
      }
    }
  }
}

TEST_P(EveryTask, TheSeedDecidesEverything) {
  const auto draw_some = [&](uint64_t seed) {
    SeededRng rng(seed);
    std::vector<std::vector<int32_t>> drawn;
    for (int i = 0; i < 5; ++i) drawn.push_back(IdsOf(Draw(rng, Split::kTraining).conversation));
    return drawn;
  };
  EXPECT_EQ(draw_some(3), draw_some(3));
  EXPECT_NE(draw_some(3), draw_some(4));
}

INSTANTIATE_TEST_SUITE_P(, EveryTask, ::testing::ValuesIn(AllTasks().begin(), AllTasks().end()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Turns, AsManyAsFitAndNotNone) {
  SeededRng rng(4);
  const auto draw = [] { return Question{.ask = "A question of some words?", .answer = "Yes."}; };
  const int32_t one = NumFrameTokens(NanoTokenizer()) + NumTurnTokens(NanoTokenizer(), draw());
  for (int i = 0; i < 20; ++i) {
    DrawContext context = ContextForTests(rng, Split::kTraining, one + 30);
    const StatusOr<Exercise> exercise = DrawTurns(context, "copy", 50, draw);
    ASSERT_TRUE(exercise.ok());
    EXPECT_LE(std::ssize(IdsOf(exercise->conversation)), one + 30);
  }
  DrawContext context = ContextForTests(rng, Split::kTraining, one - 1);
  EXPECT_EQ(MessageOf(DrawTurns(context, "copy", 50, draw).status()),
            StrCat("copy: expected room for ", one, " tokens, found max_tokens ", one - 1,
                   "; a longer row or --max-model-len has it"));
}

// ---- Words --------------------------------------------------------------------------------------

TEST(Words, NoListRepeatsAWord) {
  for (const WordList list : {FirstNames(), Surnames(), Cities(), Countries(), Animals(), Objects(),
                              Foods(), Plants(), Colours(), Adjectives(), PastVerbs(), Jobs(),
                              Places(), Months(), Weekdays(), CommonWords()}) {
    EXPECT_EQ(std::set<std::string_view>(list.begin(), list.end()).size(), list.size())
        << list.front();
  }
}

TEST(Words, ArticlesFollowTheSound) {
  EXPECT_EQ(WithArticle("apple"), "an apple");
  EXPECT_EQ(WithArticle("umbrella"), "an umbrella");
  EXPECT_EQ(WithArticle("unit"), "a unit");
  EXPECT_EQ(WithArticle("lamp"), "a lamp");
}

}  // namespace
}  // namespace deepinfer
