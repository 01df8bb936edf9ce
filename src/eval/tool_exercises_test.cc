#include "eval/tool_exercises.h"

#include <algorithm>
#include <set>

#include "eval/dialogue_test_util.h"
#include "eval/material.h"
#include "eval/real_tools.h"

namespace deepinfer {
namespace {

constexpr Split kSplits[] = {Split::kTraining, Split::kHeldOut};

const ToolDefinition* Offered(const Exercise& exercise, const std::string& name) {
  for (const ToolDefinition& tool : exercise.conversation.tools) {
    if (tool.name == name) return &tool;
  }
  return nullptr;
}

std::vector<ToolCall> CallsOf(const Exercise& exercise) {
  std::vector<ToolCall> calls;
  for (const Message& message : exercise.conversation.messages) {
    calls.insert(calls.end(), message.tool_calls.begin(), message.tool_calls.end());
  }
  return calls;
}

std::unique_ptr<const Material> ToolMaterial() {
  const std::string tools =
      R"({"name": "CreateTable", "description": "Creates a table. It may take long.", )"
      R"("parameters": {"type": "object", "properties": {"TableName": {"type": "string"}, )"
      R"("Billing": {"type": "string", "enum": ["A_B", "C_D"]}, "Keys": {"type": "array", )"
      R"("items": {"type": "string"}}, "Deep": {"type": "object"}}, "required": ["TableName"]}})"
      "\n"
      R"({"name": "Odd", "description": "", "parameters": {"type": "object", "properties": )"
      R"({"x": {"type": "object"}}, "required": ["x"]}})"
      "\n"
      R"({"name": "Bare", "parameters": {"properties": {"n": {"type": "integer"}}}})";
  return *Material::Parse(
      {.hay = "a\n", .glosses = "a\tnoun\tb\t\t1\n", .tools = tools, .words = "a\n"});
}

TEST(ToolExercises, SplitsAreDisjointAndRepeatable) { CheckSplits(DrawTools, "tools", 20'000); }

TEST(ToolExercises, CallsAreOfferedAndSatisfyTheirSchema) {
  for (const Split split : kSplits) {
    for (const Exercise& exercise : Drawn(DrawTools, split, 21, 2000)) {
      for (const ToolCall& call : CallsOf(exercise)) {
        const ToolDefinition* const tool = Offered(exercise, call.name);
        ASSERT_NE(tool, nullptr) << call.name;
        EXPECT_TRUE(Satisfies(call.arguments, *tool->function.Find("parameters")))
            << DumpJson(tool->function) << DumpJson(call.arguments);
        EXPECT_FALSE(call.arguments.members.empty());
      }
    }
  }
}

TEST(ToolExercises, ArgumentsStandInTheRequest) {
  for (const Exercise& exercise : Drawn(DrawTools, Split::kHeldOut, 22, 2000)) {
    for (const ToolCall& call : exercise.answer().tool_calls) {
      EXPECT_TRUE(IsSpelledIn(call.arguments, AskOf(exercise)))
          << AskOf(exercise) << DumpJson(call.arguments);
    }
  }
}

// Values of strings and numbers, one behind the other.
bool IsInOrderOf(const JsonValue& arguments, const std::string& request) {
  size_t at = 0;
  for (const JsonMember& argument : arguments.members) {
    if (argument.value.text.empty()) continue;  // a list, true or false
    at = request.find(argument.value.text, at);
    if (at == std::string::npos) return false;
    at += argument.value.text.size();
  }
  return true;
}

TEST(ToolExercises, ACallIsWrittenWhileReadingItsRequest) {
  const auto material = ToolMaterial();
  int num_long = 0;
  for (const Exercise& exercise : Drawn(DrawTools, Split::kTraining, 28, 2000, material.get())) {
    if (exercise.answer().tool_calls.size() != 1) continue;
    const JsonValue& arguments = exercise.answer().tool_calls[0].arguments;
    EXPECT_TRUE(IsInOrderOf(arguments, AskOf(exercise))) << AskOf(exercise) << DumpJson(arguments);
    num_long += arguments.members.size() >= 3 ? 1 : 0;
  }
  EXPECT_GT(num_long, 100);
}

TEST(ToolExercises, PublishedToolsOfTheEvaluationAreThoseItIsGiven) {
  const std::vector<std::string_view> published = {
      R"({"name": "OpenGate", "description": "Opens a gate.", "parameters": {"type": "object", )"
      R"("properties": {"GateName": {"type": "string"}}, "required": ["GateName"]}})"};
  static const auto* const kTokenizer = Tokenizer::Parse(SmallTokenizerJson(), "small")->release();
  SeededRng rng(29);
  DrawContext context{rng, Split::kHeldOut, 2048, *kTokenizer};
  EXPECT_EQ(DrawRealTools(context).status().code(), StatusCode::kFailedPrecondition);
  context.published_tools = published;
  for (int i = 0; i < 200; ++i) {
    const StatusOr<Exercise> exercise = DrawRealTools(context);
    ASSERT_TRUE(exercise.ok());
    ASSERT_EQ(exercise->conversation.tools.size(), 1u);
    ASSERT_FALSE(exercise->answer().tool_calls.empty());
    EXPECT_EQ(exercise->answer().tool_calls[0].name, "OpenGate");
  }
}

TEST(ToolExercises, OfferedNamesDiffer) {
  for (const Exercise& exercise : Drawn(DrawTools, Split::kTraining, 23, 1000)) {
    std::set<std::string> names;
    for (const ToolDefinition& tool : exercise.conversation.tools) names.insert(tool.name);
    EXPECT_EQ(names.size(), exercise.conversation.tools.size());
    EXPECT_LE(names.size(), 4U);
  }
}

TEST(ToolExercises, HeldOutItemsAskForOneTwoOrNoCalls) {
  int counts[3] = {};
  for (const Exercise& exercise : Drawn(DrawTools, Split::kHeldOut, 24, 1000)) {
    ASSERT_LE(exercise.answer().tool_calls.size(), 2U);
    ++counts[exercise.answer().tool_calls.size()];
    EXPECT_EQ(exercise.answer().tool_calls.empty(), !AnswerOf(exercise).empty());
    EXPECT_EQ(exercise.grading, Grading::kCalls);
  }
  EXPECT_GT(counts[0], 80);
  EXPECT_GT(counts[1], 500);
  EXPECT_GT(counts[2], 120);
}

TEST(ToolExercises, ReportsSayWhatTheToolAnswered) {
  int num_reports = 0;
  for (const Exercise& exercise : Drawn(DrawTools, Split::kTraining, 25, 1000)) {
    const std::vector<Message>& messages = exercise.conversation.messages;
    if (messages[messages.size() - 2].role != Role::kTool) continue;
    ++num_reports;
    EXPECT_EQ(exercise.grading, Grading::kExactText);
    JsonValue result = *ParseJson(TextOf(messages[messages.size() - 2]));
    result.Remove("status");
    EXPECT_TRUE(IsSpelledIn(result, AnswerOf(exercise))) << AnswerOf(exercise);
  }
  EXPECT_GT(num_reports, 200);
}

TEST(ToolExercises, StayShort) {
  for (const Exercise& exercise : Drawn(DrawTools, Split::kTraining, 26, 2000)) {
    EXPECT_LT(PromptOf(exercise).size(), 4500U);
  }
}

TEST(ToolExercises, TrainingAlsoOffersToolsOfTheMaterial) {
  const auto material = ToolMaterial();
  int num_real = 0;
  for (const Exercise& exercise : Drawn(DrawTools, Split::kTraining, 27, 400, material.get())) {
    EXPECT_EQ(Offered(exercise, "Odd"), nullptr);
    std::set<std::string> names;
    for (const ToolDefinition& tool : exercise.conversation.tools) {
      EXPECT_TRUE(names.insert(tool.name).second) << tool.name;
    }
    if (Offered(exercise, "CreateTable") == nullptr) continue;
    ++num_real;
    for (const ToolCall& call : exercise.answer().tool_calls) {
      EXPECT_TRUE(IsSpelledIn(call.arguments, AskOf(exercise))) << AskOf(exercise);
      if (call.name != "CreateTable") continue;
      EXPECT_NE(call.arguments.Find("TableName"), nullptr);
      EXPECT_EQ(call.arguments.Find("Deep"), nullptr);
    }
  }
  EXPECT_GT(num_real, 40);
}

TEST(RealTools, RefusesWhatNoRequestCanSpell) {
  EXPECT_FALSE(ReadRealTool("no JSON").has_value());
  EXPECT_FALSE(ReadRealTool(R"({"description": "no name"})").has_value());
  EXPECT_FALSE(ReadRealTool(R"({"name": "f"})").has_value());
  const auto tool = ReadRealTool(R"({"name": "f", "parameters": {"properties": {}}})");
  ASSERT_TRUE(tool.has_value());
  SeededRng rng(1);
  EXPECT_FALSE(DrawRealUse(rng, *tool).has_value());
}

}  // namespace
}  // namespace deepinfer
