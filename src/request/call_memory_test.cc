// Calls that come back in later turns are repeated as they were sampled (case 11).
#include "request/call_memory.h"

#include <gtest/gtest.h>

#include "request/testing/api_fixture.h"
#include "tokens/answer_test_util.h"
#include "tokens/conversation_json.h"

namespace deepinfer::testing {
namespace {

// As a model may write it: keys in another order, odd white space.
const std::string kOddCall = "\n\n" + Open("calls") + "\n" + Open("invoke name=\"f\"") + "\n" +
                             JsonParameter("b", " 2") + "\n" + TextParameter("a", "x y") + "\n" +
                             Close("invoke") + "\n" + Close("calls");
constexpr std::string_view kTools = R"("tools": [{"function": {"name": "f"}}])";

std::string Thinking(bool on) {
  return StrCat(R"("thinking": {"type": ")", on ? "enabled" : "disabled", "\"}");
}

// The second turn: the call as a client sends it, and its result.
std::string SecondTurn(const std::string& call_id, std::string_view arguments,
                       std::string_view content, std::string_view reasoning, bool thinking) {
  std::string quoted;
  AppendJsonString(arguments, quoted);
  return StrCat("{", kTools, ", ", Thinking(thinking),
                R"(, "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", )",
                R"("content": )", content, reasoning, R"(, "tool_calls": [{"id": ")", call_id,
                R"(", "type": "function", "function": {"name": "f", "arguments": )", quoted,
                R"(}}]}, {"role": "tool", "tool_call_id": ")", call_id, R"(", "content": "ok"}]})");
}

struct FirstTurn {
  std::vector<int32_t> ids;  // prompt and output, without EOS
  std::string call_id;
};

FirstTurn RunFirstTurn(ApiFixture& fixture, const std::string& answer, bool thinking) {
  fixture.Say(answer);
  const JsonValue json =
      Json(fixture.Chat(ChatBody(StrCat(kTools, ", ", Thinking(thinking))))->body());
  FirstTurn turn{fixture.submitted().prompt_ids,
                 TextAt(json, "choices[0].message.tool_calls[0].id")};
  for (const int32_t id : TinyTokenizer().Encode(answer)) turn.ids.push_back(id);
  return turn;
}

std::vector<int32_t> PromptOf(ApiFixture& fixture, const std::string& body) {
  const auto reply = fixture.Chat(body);
  EXPECT_EQ(reply->status(), 200) << reply->body();
  return fixture.submitted().prompt_ids;
}

bool StartsWith(const std::vector<int32_t>& ids, const std::vector<int32_t>& prefix) {
  return ids.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), ids.begin());
}

TEST(CallMemory, case_11_the_sampled_tokens_come_back) {
  for (const bool thinking : {false, true}) {
    ApiFixture fixture;
    const std::string answer = StrCat(thinking ? "Why not.</think>" : "", "Let me see.", kOddCall);
    const FirstTurn first = RunFirstTurn(fixture, answer, thinking);
    const std::string reasoning = thinking ? R"(, "reasoning_content": "Why not.")" : "";
    const std::vector<int32_t> second = PromptOf(
        fixture,
        SecondTurn(first.call_id, R"({"a":"x y","b":2})", R"("Let me see.")", reasoning, thinking));
    EXPECT_TRUE(StartsWith(second, first.ids));
    EXPECT_EQ(second[first.ids.size()], *TinyTokenizer().IdOf(kEosToken));
  }
}

TEST(CallMemory, WithoutTheReasoningTheBlockAloneComesBack) {
  ApiFixture fixture;
  const FirstTurn first = RunFirstTurn(fixture, "Why not.</think>" + kOddCall, true);
  const auto rendered = fixture.Post(
      &HandleRender, SecondTurn(first.call_id, R"({"a":"x y","b":2})", "null", "", true));
  const std::string prompt = TextAt(Json(rendered->body()), "prompt");
  EXPECT_NE(prompt.find("<think></think>" + kOddCall + kEos), prompt.npos) << prompt;
}

TEST(CallMemory, ChangedCallsAreRenderedFromTheirJson) {
  ApiFixture fixture;
  const FirstTurn first = RunFirstTurn(fixture, kOddCall, false);
  const auto prompt = [&](const std::string& id, std::string_view arguments) {
    const auto reply = fixture.Post(&HandleRender, SecondTurn(id, arguments, "null", "", false));
    return TextAt(Json(reply->body()), "prompt");
  };
  const std::string same = prompt(first.call_id, R"({"a":"x y","b":2.0})");
  EXPECT_NE(same.find(kOddCall), same.npos);
  for (const std::string_view changed :
       {R"({"a":"x","b":2})", R"({"a":"x y","b":3})", R"({"a":"x y"})", R"({"a":"x y","b":"2"})"}) {
    EXPECT_EQ(prompt(first.call_id, changed).find(kOddCall), std::string::npos) << changed;
  }
  EXPECT_EQ(prompt("call_other", R"({"a":"x y","b":2})").find(kOddCall), std::string::npos);
}

TEST(CallMemory, TenantsAndUsersRemainApart) {
  ApiFixture fixture;
  const FirstTurn first = RunFirstTurn(fixture, kOddCall, false);
  const std::string body = SecondTurn(first.call_id, R"({"a":"x y","b":2})", "null", "", false);
  fixture.Begin(&HandleChat, body, "other");
  EXPECT_FALSE(StartsWith(fixture.submitted().prompt_ids, first.ids));
  fixture.Begin(&HandleChat, body.substr(0, body.size() - 1) + R"(, "user_id": "u"})");
  EXPECT_FALSE(StartsWith(fixture.submitted().prompt_ids, first.ids));
  fixture.Begin(&HandleChat, body);
  EXPECT_TRUE(StartsWith(fixture.submitted().prompt_ids, first.ids));
}

TEST(CallMemory, AnswersThatWereCutAreNotRemembered) {
  ApiFixture fixture;
  fixture.engine.set_script([](const Request& request) {
    std::vector<Event> events = {ReadyEvent{}};
    const ScriptedAnswer script{.text = kOddCall + "\n" + Open("invoke name=\"g"),
                                .reason = FinishReason::kLength};
    for (Event& e : EventsOf(script, TinyTokenizer(), request)) events.push_back(std::move(e));
    return events;
  });
  fixture.Chat(ChatBody(kTools));
  EXPECT_EQ(fixture.api->calls.bytes(), 0);
}

std::shared_ptr<const SampledAnswer> AnswerOf(int size) {
  auto answer = std::make_shared<SampledAnswer>();
  answer->text.assign(static_cast<size_t>(size), 'x');
  return answer;
}

TEST(CallMemory, ForgetsTheLongestUnused) {
  CallMemory memory(10'000);
  const std::vector<ParsedCall> calls = {{"", "f", "{}"}};
  const auto known = [&](const std::string& id) {
    Conversation conversation;
    conversation.messages.push_back({.role = Role::kAssistant});
    conversation.messages[0].tool_calls.push_back(
        {.id = id, .name = "f", .arguments = JsonValue::String(" { } ")});
    memory.Recall("o", conversation);
    return conversation.messages[0].sampled != nullptr;
  };
  memory.Remember("o", {"a"}, calls, AnswerOf(3000));
  memory.Remember("o", {"b"}, calls, AnswerOf(3000));
  EXPECT_TRUE(known("a"));
  memory.Remember("o", {"c"}, calls, AnswerOf(3000));
  EXPECT_LE(memory.bytes(), 10'000);
  EXPECT_TRUE(known("a"));
  EXPECT_FALSE(known("b"));
  EXPECT_TRUE(known("c"));
  memory.Remember("o", {"d"}, calls, AnswerOf(20'000));  // larger than all
  EXPECT_FALSE(known("d"));
  EXPECT_TRUE(known("c"));
}

}  // namespace
}  // namespace deepinfer::testing
