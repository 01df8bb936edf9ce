#include "eval/json_equality.h"

#include "eval/dialogue_test_util.h"
#include "eval/grading.h"

namespace deepinfer {
namespace {

bool Same(std::string_view a, std::string_view b) { return IsSameJsonText(a, b); }

TEST(JsonEquality, ComparesByValue) {
  EXPECT_TRUE(Same(R"({"a": 1, "b": [true, null]})", R"({"b":[true,null],"a":1.0})"));
  EXPECT_TRUE(Same("12.50", "12.5"));
  EXPECT_TRUE(Same(" [1]\n", "[1]"));
  EXPECT_FALSE(Same(R"({"a": 1})", R"({"a": 2})"));
  EXPECT_FALSE(Same(R"({"a": 1})", R"({"a": "1"})"));
  EXPECT_FALSE(Same(R"({"a": true})", R"({"a": false})"));
  EXPECT_FALSE(Same("9007199254740993", "9007199254740992"));
}

TEST(JsonEquality, WantsTheSameMembersAndItems) {
  EXPECT_FALSE(Same(R"({"a": 1, "b": 2})", R"({"a": 1})"));
  EXPECT_FALSE(Same(R"({"a": 1})", R"({"a": 1, "b": 2})"));
  EXPECT_FALSE(Same(R"({"a": 1})", R"({"b": 1})"));
  EXPECT_FALSE(Same("[1, 2]", "[2, 1]"));
  EXPECT_FALSE(Same("[1]", "[1, 1]"));
}

TEST(JsonEquality, MalformedTextIsNothing) {
  EXPECT_FALSE(Same(R"({"a": 1)", R"({"a": 1})"));
  EXPECT_FALSE(Same(R"({"a": 1}})", R"({"a": 1})"));
  EXPECT_FALSE(Same(R"(Here: {"a": 1})", R"({"a": 1})"));
  EXPECT_FALSE(Same("", "{}"));
}

class CallGrading : public testing::Test {
 protected:
  CallGrading() {
    exercise_.grading = Grading::kCalls;
    exercise_.conversation.messages.push_back(AssistantMessage(""));
    Expect("get_time", R"({"city": "Oslo"})");
    Expect("send", R"({"to": "Ben", "count": 2})");
  }

  void Expect(std::string name, std::string_view arguments) {
    exercise_.conversation.messages.back().tool_calls.push_back(
        {.name = std::move(name), .arguments = *ParseJson(arguments)});
  }

  bool Right(std::vector<ParsedCall> calls, std::string content = "") {
    ParsedAnswer answer;
    answer.content = std::move(content);
    answer.ended = true;
    answer.calls = std::move(calls);
    return IsRight(exercise_, answer);
  }

  const ParsedCall time_{"", "get_time", R"({"city":"Oslo"})"};
  const ParsedCall send_{"", "send", R"({"count": 2.0, "to": "Ben"})"};
  Exercise exercise_;
};

TEST_F(CallGrading, WantsAllCallsInOrder) {
  EXPECT_TRUE(Right({time_, send_}));
  EXPECT_FALSE(Right({send_, time_}));
  EXPECT_FALSE(Right({time_}));
  EXPECT_FALSE(Right({}));
  EXPECT_FALSE(Right({time_, send_, send_}));
}

TEST_F(CallGrading, WantsNamesAndArguments) {
  EXPECT_FALSE(Right({time_, {"", "sent", send_.arguments}}));
  EXPECT_FALSE(Right({time_, {"mail", "send", send_.arguments}}));
  EXPECT_FALSE(Right({time_, {"", "send", R"({"to": "Ben"})"}}));
  EXPECT_FALSE(Right({time_, {"", "send", R"({"to": "Ben", "count": 3})"}}));
  EXPECT_FALSE(Right({time_, {"", "send", R"({"to": "Ben", "count": 2, "more": 1})"}}));
}

TEST_F(CallGrading, NoCallIsRightWhereNoToolFits) {
  exercise_.conversation.messages.back() = AssistantMessage("I have no tool for that.");
  EXPECT_TRUE(Right({}, "I have no tool for that."));
  EXPECT_FALSE(Right({}, "Yes."));
  EXPECT_FALSE(Right({time_}, "I have no tool for that."));
}

TEST(JsonGrading, ReadsTheContentAlone) {
  Exercise exercise;
  exercise.grading = Grading::kJson;
  exercise.conversation.messages.push_back(AssistantMessage(R"({"a": 1})"));
  ParsedAnswer answer;
  answer.ended = true;
  answer.content = R"({"a": 1.0})";
  EXPECT_TRUE(IsRight(exercise, answer));
  answer.calls.push_back({"", "f", "{}"});
  EXPECT_FALSE(IsRight(exercise, answer));
  answer.calls.clear();
  answer.ended = false;
  EXPECT_FALSE(IsRight(exercise, answer));
  answer.ended = true;
  answer.content = "a is 1";
  EXPECT_FALSE(IsRight(exercise, answer));
}

}  // namespace
}  // namespace deepinfer
