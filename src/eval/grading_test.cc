#include "eval/grading.h"

#include <gtest/gtest.h>

#include "eval/gloss_check.h"

namespace deepinfer {
namespace {

Exercise TextExercise(std::string answer) {
  Exercise exercise;
  exercise.conversation.messages = {UserMessage("?"), AssistantMessage(std::move(answer))};
  return exercise;
}

ParsedAnswer Ended(std::string content) { return {.content = std::move(content), .ended = true}; }

TEST(Grading, TextIsRightWhenItIsTheSame) {
  const Exercise exercise = TextExercise("48213");
  EXPECT_TRUE(IsRight(exercise, Ended("48213")));
  EXPECT_TRUE(IsRight(exercise, Ended(" 48213\n")));
  for (const char* wrong : {"", "4821", "482130", "48 213", "The code is 48213"}) {
    EXPECT_FALSE(IsRight(exercise, Ended(wrong))) << wrong;
  }
  EXPECT_FALSE(IsRight(TextExercise("Lamp"), Ended("lamp")));
}

TEST(Grading, ReasoningDoesNotCount) {
  EXPECT_TRUE(IsRight(TextExercise("7"), {.reasoning = "8", .content = "7", .ended = true}));
  EXPECT_FALSE(IsRight(TextExercise("7"), {.reasoning = "7", .content = "8", .ended = true}));
}

TEST(Grading, AnAnswerWithoutItsEndIsWrong) {
  EXPECT_FALSE(IsRight(TextExercise("7"), {.content = "7", .ended = false}));
}

TEST(Grading, CallsThatNobodyAskedForAreWrong) {
  EXPECT_FALSE(IsRight(TextExercise("7"), {.content = "7", .calls = {{}}, .ended = true}));
  EXPECT_FALSE(IsRight(TextExercise("7"), {.content = "7", .num_malformed = 1, .ended = true}));
}

TEST(Grading, WhereNoCallIsRightTheTextIsWhatCounts) {
  Exercise exercise = TextExercise("I am sorry, I have no tool for that.");
  exercise.grading = Grading::kCalls;
  EXPECT_TRUE(IsRight(exercise, Ended("I am sorry, I have no tool for that.\n")));
  EXPECT_FALSE(IsRight(exercise, Ended("I will do that at once.")));
  EXPECT_FALSE(IsRight(exercise, Ended("")));
  EXPECT_FALSE(IsRight(
      exercise, {.content = "I am sorry, I have no tool for that.", .calls = {{}}, .ended = true}));
}

TEST(Grading, CallsAreTheSameInWhateverOrderTheirArgumentsStand) {
  Exercise exercise = TextExercise("");
  exercise.grading = Grading::kCalls;
  ToolCall call{.name = "f", .arguments = *ParseJson(R"({"a": 1, "b": "x"})")};
  exercise.conversation.messages.back().tool_calls = {call};
  const auto answer = [](std::string arguments) {
    return ParsedAnswer{.calls = {{.name = "f", .arguments = std::move(arguments)}}, .ended = true};
  };
  EXPECT_TRUE(IsRight(exercise, answer(R"({"b": "x", "a": 1})")));
  EXPECT_FALSE(IsRight(exercise, answer(R"({"b": "x"})")));
  EXPECT_FALSE(IsRight(exercise, answer(R"({"b": "x", "a": 1, "c": 2})")));
}

TEST(Grading, HalfOfTheContentWordsMakeAGloss) {
  Exercise exercise = TextExercise("");
  exercise.grading = Grading::kGlossWords;
  exercise.gloss_words = ContentWordHashes("a frame with paper that flies in wind");
  ASSERT_EQ(exercise.gloss_words.size(), 4u);
  EXPECT_TRUE(IsRight(exercise, Ended("papers for framing")));
  EXPECT_FALSE(IsRight(exercise, Ended("paper, paper and paper")));
  EXPECT_FALSE(IsRight(exercise, Ended("")));
  exercise.gloss_words = ContentWordHashes("paper wind frame");
  EXPECT_FALSE(IsRight(exercise, Ended("paper")));
}

}  // namespace
}  // namespace deepinfer
