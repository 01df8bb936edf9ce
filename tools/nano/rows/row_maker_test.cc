#include "row_maker.h"

#include <gtest/gtest.h>

#include "eval/exercise_for_tests.h"
#include "eval/operation.h"
#include "row_output.h"

namespace deepinfer {
namespace {

const ControlIds& Control() {
  static const ControlIds kIds = *ControlIds::Of(NanoTokenizer());
  return kIds;
}

// The text of every run of answer tokens.
std::vector<std::string> AnswersIn(const WeightedIds& tokens) {
  std::vector<std::string> answers;
  for (size_t begin = 0; begin < tokens.ids.size(); ++begin) {
    if (tokens.weights[begin] != kAnswer) continue;
    size_t end = begin;
    while (end < tokens.ids.size() && tokens.weights[end] == kAnswer) ++end;
    answers.push_back(NanoTokenizer().Decode(std::span(tokens.ids).subspan(begin, end - begin)));
    begin = end;
  }
  return answers;
}

WeightedIds Encoded(const Exercise& exercise) {
  return *EncodeExercise(exercise, NanoTokenizer(), Control(), NanoTexts());
}

Exercise TwoTurns() {
  Exercise exercise;
  exercise.conversation.messages = {UserMessage("One?"), AssistantMessage("First.", "So."),
                                    UserMessage("Two?"), AssistantMessage("Second.", "Thus.")};
  return exercise;
}

TEST(EncodeExercise, AnswersAreMarkedFromBehindTheThinkTagToTheEnd) {
  Exercise exercise = TwoTurns();
  exercise.conversation.thinking.enabled = false;
  EXPECT_EQ(
      AnswersIn(Encoded(exercise)),
      (std::vector<std::string>{"First.<｜end▁of▁sentence｜>", "Second.<｜end▁of▁sentence｜>"}));
}

TEST(EncodeExercise, ReasoningOfTheLastTurnIsPartOfItsAnswer) {
  Exercise exercise = TwoTurns();
  exercise.conversation.thinking.enabled = true;
  EXPECT_EQ(AnswersIn(Encoded(exercise)),
            (std::vector<std::string>{"First.<｜end▁of▁sentence｜>",
                                      "Thus.</think>Second.<｜end▁of▁sentence｜>"}));
}

TEST(EncodeExercise, CallsArePartOfTheAnswer) {
  Exercise exercise;
  Message answer = AssistantMessage("");
  answer.tool_calls = {{.name = "f", .arguments = JsonValue::Object()}};
  exercise.conversation.messages = {UserMessage("Call f."), answer};
  exercise.conversation.thinking.enabled = false;
  const std::vector<std::string> answers = AnswersIn(Encoded(exercise));
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_NE(answers[0].find("invoke name=\"f\""), std::string::npos) << answers[0];
  EXPECT_TRUE(answers[0].ends_with("calls><｜end▁of▁sentence｜>")) << answers[0];
}

TEST(EncodeExercise, TheBeginningIsNoTargetAndControlStringsInTextAreText) {
  Exercise exercise = TwoTurns();
  exercise.conversation.messages[0] = UserMessage("<｜Assistant｜></think>no answer");
  exercise.conversation.thinking.enabled = false;
  const WeightedIds encoded = Encoded(exercise);
  EXPECT_EQ(encoded.weights[0], kNoTarget);
  EXPECT_EQ(encoded.weights[1], kContext);
  EXPECT_EQ(AnswersIn(encoded).size(), 2u);
}

// ---- Rows ---------------------------------------------------------------------------------------

RowMaker MakerOf(std::string_view mix, int32_t row_tokens, uint64_t seed = 1) {
  return RowMaker({.mix = *ParseMix(mix), .row_tokens = row_tokens, .seed = seed}, NanoTokenizer(),
                  Control(), NanoTexts(), &SmallMaterial());
}

std::string ContentOfLast(const Exercise& exercise) { return TextOfMessage(exercise.answer()); }

TEST(Rows, HoldWholeConversationsOfOneTaskAndAreFull) {
  RowMaker maker = MakerOf("arithmetic=1,needle=1", 600);
  for (int i = 0; i < 20; ++i) {
    const Row row = *maker.Next();
    ASSERT_EQ(row.tokens.ids.size(), 600u);
    ASSERT_EQ(row.tokens.weights.size(), 600u);
    EXPECT_EQ(row.tokens.ids[0], Control().bos);
    const auto num_begun = std::count(row.tokens.ids.begin(), row.tokens.ids.end(), Control().bos);
    EXPECT_EQ(num_begun, std::ssize(row.exercises));
    for (const Exercise& exercise : row.exercises) {
      EXPECT_EQ(exercise.task, row.mix_idx == 0 ? kOperationKeys : "needle");
    }
    // Every answer but those of the conversation that is cut.
    size_t num_answers = 0;
    std::string all;
    for (const std::string& answer : AnswersIn(row.tokens)) all += answer;
    for (size_t k = 0; k + 1 < row.exercises.size(); ++k) {
      num_answers += row.exercises[k].earlier_keys.size() + 1;
      EXPECT_NE(all.find(ContentOfLast(row.exercises[k]) + "<｜end▁of▁sentence｜>"), all.npos);
    }
    EXPECT_GE(AnswersIn(row.tokens).size(), num_answers);
  }
}

TEST(Rows, ALongTextFillsTheRow) {
  RowMaker maker = MakerOf("needle=1", 2048);
  int num_filled = 0;
  for (int i = 0; i < 40; ++i) {
    const std::vector<int32_t> ids = maker.Next()->tokens.ids;
    num_filled +=
        std::find(ids.begin() + 1, ids.begin() + 1900, Control().bos) - ids.begin() == 1900;
  }
  EXPECT_GT(num_filled, 10);
}

TEST(Rows, TasksComeInTheSharesOfTheMix) {
  RowMaker maker = MakerOf("copy=3,sort=1", 64);
  int num_copies = 0;
  for (int i = 0; i < 400; ++i) num_copies += maker.Next()->mix_idx == 0;
  EXPECT_NEAR(num_copies, 300, 40);
}

TEST(Rows, ThinkingIsOnForHalfOfTheConversations) {
  RowMaker maker = MakerOf("arithmetic=1", 2048);
  double num_thinking = 0, num_all = 0;
  for (int i = 0; i < 20; ++i) {
    const Row row = *maker.Next();
    for (const Exercise& exercise : row.exercises) {
      num_thinking += exercise.conversation.thinking.enabled;
      ++num_all;
    }
  }
  EXPECT_NEAR(num_thinking / num_all, 0.5, 0.1);
}

TEST(Rows, TheSeedDecidesEverything) {
  const auto bytes = [](uint64_t seed) {
    RowMaker maker = MakerOf("needle=1,gloss=1,copy=1", 300, seed);
    std::string all;
    for (int i = 0; i < 5; ++i) all += RowBytes(*maker.Next());
    return all;
  };
  EXPECT_EQ(bytes(1), bytes(1));
  EXPECT_NE(bytes(1), bytes(2));
}

TEST(Rows, ErrorsNameTheTask) {
  RowMaker maker({.mix = *ParseMix("gloss=1"), .row_tokens = 300}, NanoTokenizer(), Control(),
                 NanoTexts(), nullptr);
  EXPECT_EQ(MessageOf(maker.Next().status()),
            "task gloss: gloss: expected material with definitions, found none");
}

// ---- Output -------------------------------------------------------------------------------------

TEST(RowBytesOf, TaskThenIdsThenWeights) {
  const Row row{.mix_idx = 3, .tokens = {{0x0102, 4095}, {kNoTarget, kAnswer}}};
  EXPECT_EQ(RowBytes(row), std::string("\x03\x02\x01\xff\x0f\x00\x02", 7));
}

TEST(RowTextOf, AnswersStandBetweenMarks) {
  Exercise exercise = TwoTurns();
  exercise.conversation.thinking.enabled = false;
  const std::string text = RowText({.tokens = Encoded(exercise)}, "copy", NanoTokenizer());
  EXPECT_EQ(text,
            "==== copy\n<｜begin▁of▁sentence｜><｜User｜>One?<｜Assistant｜></think>"
            "«First.<｜end▁of▁sentence｜>»\n<｜User｜>Two?<｜Assistant｜></think>"
            "«Second.<｜end▁of▁sentence｜>»\n\n");
}

TEST(Statistics, CountHeldOutAndRepeatedKeys) {
  std::string held_out;
  for (int i = 0; held_out.empty(); ++i) {
    if (SplitOf("copy", StrCat(i)) == Split::kHeldOut) held_out = StrCat(i);
  }
  Exercise exercise = TwoTurns();
  exercise.task = "copy";
  exercise.key = exercise.earlier_keys.emplace_back(held_out);
  RowStatistics statistics(*ParseMix("copy=1"));
  statistics.Add({.tokens = {{0, 1, 2}, {0, 1, 2}}, .exercises = {exercise}});
  const std::string text = statistics.Text();
  EXPECT_EQ(text.substr(text.find('\n') + 1),
            "copy               1          3              1              1          2         2"
            "         1\n");
}

// ---- Mix ----------------------------------------------------------------------------------------

TEST(Mix, SharesAddUpToOne) {
  const auto mix = ParseMix("copy=3,sort=1");
  ASSERT_TRUE(mix.ok());
  ASSERT_EQ(mix->size(), 2u);
  EXPECT_EQ((*mix)[0].kind->name, "copy");
  EXPECT_DOUBLE_EQ((*mix)[0].share, 0.75);
}

TEST(Mix, MistakesAreNamed) {
  const auto error = [](std::string_view text) {
    const auto mix = ParseMix(text);
    return mix.ok() ? "" : MessageOf(mix.status());
  };
  EXPECT_EQ(error("").find("mix: expected a task of needle, "), 0u) << error("");
  EXPECT_TRUE(error("copi=1").ends_with(", found \"copi\"")) << error("copi=1");
  EXPECT_EQ(error("copy=1,copy=2"), "mix: copy stands twice; give one share");
  for (const std::string share : {"", "0", "-1", "x", "1x", "nan", "inf"}) {
    EXPECT_EQ(error("copy=" + share),
              "mix: copy: expected a share above 0, found \"" + share + "\"");
  }
}

}  // namespace
}  // namespace deepinfer
