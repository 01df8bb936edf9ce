#include "eval/json_exercises.h"

#include "eval/dialogue_test_util.h"
#include "eval/json_breaking.h"

namespace deepinfer {
namespace {

constexpr Split kSplits[] = {Split::kTraining, Split::kHeldOut};

TEST(JsonExercises, SplitsAreDisjointAndRepeatable) { CheckSplits(DrawJson, "json", 20'000); }

TEST(JsonExercises, AnswersAreCompactJson) {
  for (const Split split : kSplits) {
    for (const Exercise& exercise : Drawn(DrawJson, split, 11, 1000)) {
      const StatusOr<JsonValue> value = ParseJson(AnswerOf(exercise));
      ASSERT_TRUE(value.ok()) << AnswerOf(exercise);
      EXPECT_EQ(DumpJson(*value), AnswerOf(exercise));
      EXPECT_EQ(exercise.grading, Grading::kJson);
    }
  }
}

TEST(JsonExercises, AnswersSatisfyTheSchema) {
  int num_schemas = 0;
  for (const Exercise& exercise : Drawn(DrawJson, Split::kTraining, 12, 2000)) {
    const auto& schema = exercise.conversation.response_schema;
    if (!schema) continue;
    ++num_schemas;
    EXPECT_TRUE(Satisfies(*ParseJson(AnswerOf(exercise)), *schema)) << AnswerOf(exercise);
  }
  EXPECT_GT(num_schemas, 500);
}

TEST(JsonExercises, ValuesStandInTheRequest) {
  for (const Exercise& exercise : Drawn(DrawJson, Split::kTraining, 13, 2000)) {
    const std::string ask = AskOf(exercise);
    EXPECT_TRUE(IsSpelledIn(*ParseJson(AnswerOf(exercise)), ask)) << ask << AnswerOf(exercise);
  }
}

TEST(JsonExercises, StayShort) {
  for (const Exercise& exercise : Drawn(DrawJson, Split::kTraining, 14, 2000)) {
    EXPECT_LT(PromptOf(exercise).size() + AnswerOf(exercise).size(), 2500U);
  }
}

TEST(JsonBreaking, LeavesWhatDoesNotParse) {
  SeededRng rng(15);
  for (const std::string json :
       {R"({"a": "b c", "n": 1, "list": ["x", "y"], "o": {"k": true}})", R"({"n": 1})"}) {
    for (int i = 0; i < 500; ++i) {
      const std::string broken = BreakJson(rng, json);
      EXPECT_FALSE(ParseJson(broken).ok()) << broken;
      EXPECT_LE(json.size(), broken.size() + 2) << broken;
      EXPECT_LE(broken.size(), json.size() + 1) << broken;
    }
  }
}

}  // namespace
}  // namespace deepinfer
