#include "tokens/conversation_json.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

Conversation Parsed(std::string_view json) {
  StatusOr<Conversation> conversation = ParseMessages(json);
  EXPECT_TRUE(conversation.ok()) << conversation.status() << " " << json;
  return conversation.ok() ? *std::move(conversation) : Conversation();
}

std::string ErrorOf(std::string_view json) {
  const StatusOr<Conversation> conversation = ParseMessages(json);
  EXPECT_FALSE(conversation.ok()) << json;
  EXPECT_EQ(conversation.status().code(), StatusCode::kInvalidArgument);
  return MessageOf(conversation.status());
}

TEST(ConversationJson, case_19_roles_and_content_of_every_shape) {
  const Conversation conversation = Parsed(R"([
    {"role": "developer", "content": "d"},
    {"role": "system", "content": null},
    {"role": "user", "content": [{"type": "text", "text": "t"}, {"type": "refusal", "refusal": "no"},
      {"type": "image_url", "image_url": {"url": "u1", "detail": "low"}},
      {"type": "image_url", "image_url": "u2"}, {"type": "image", "url": "u3"},
      {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QQ=="}},
      {"type": "image", "source": {"type": "url", "url": "u4"}}]},
    {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function",
      "function": {"name": "ns::f", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "r"},
    {"role": "function", "name": "f", "content": [{"type": "text", "text": "r"}]},
    {"role": "latest_reminder", "content": ""}
  ])");
  const Role kRoles[] = {Role::kSystem, Role::kSystem, Role::kUser,          Role::kAssistant,
                         Role::kTool,   Role::kTool,   Role::kLatestReminder};
  ASSERT_EQ(conversation.messages.size(), std::size(kRoles));
  for (size_t i = 0; i < std::size(kRoles); ++i) {
    EXPECT_EQ(conversation.messages[i].role, kRoles[i]) << i;
  }
  EXPECT_EQ(conversation.messages[1].content.at(0).text, "");
  const auto& parts = conversation.messages[2].content;
  ASSERT_EQ(parts.size(), 7u);
  EXPECT_EQ(parts[1].text, "no");
  const std::string_view kUrls[] = {"u1", "u2", "u3", "data:image/png;base64,QQ==", "u4"};
  for (size_t i = 0; i < std::size(kUrls); ++i) EXPECT_EQ(parts[i + 2].image_url, kUrls[i]);
  EXPECT_EQ(conversation.messages[3].tool_calls.at(0).name_space, "ns");
  EXPECT_EQ(conversation.messages[3].tool_calls.at(0).name, "f");
  EXPECT_EQ(conversation.messages[4].tool_call_id, "c1");
  EXPECT_EQ(conversation.messages[5].tool_name, "f");
}

TEST(ConversationJson, case_19_errors_name_the_field) {
  const std::pair<std::string_view, std::string_view> kCases[] = {
      {"3", "expected an object, found \"3\""},
      {"{}", "messages: expected an array of messages, found nothing"},
      {"[]", "messages: expected at least one message, found none"},
      {R"({"messages": "hi"})", "messages: expected an array, found \"hi\""},
      {R"([{"role": "user"}, 1])", "messages[1]: expected an object, found \"1\""},
      {R"([{"content": "x"}])", "messages[0].role: expected a string, found nothing"},
      {R"([{"role": "robot"}])",
       "messages[0].role: expected system, developer, user, assistant, tool, function or "
       "latest_reminder, found \"robot\""},
      {R"([{"role": "user", "content": 1}])",
       "messages[0].content: expected null, a string or an array of parts, found \"1\""},
      {R"([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "audio"}]}])",
       "messages[0].content[1].type: expected text, refusal, image_url or image, found \"audio\""},
      {R"([{"role": "user", "content": [{"type": "text"}]}])",
       "messages[0].content[0].text: expected a string, found nothing"},
      {R"([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": ""}}]}])",
       "messages[0].content[0].image_url: expected where the image is (a URL), found nothing"},
      {R"([{"role": "assistant", "tool_calls": [{"function": {"arguments": "{}"}}]}])",
       "messages[0].tool_calls[0].function.name: expected a string, found nothing"},
      {R"([{"role": "assistant", "tool_calls": [{"function": {"name": "a::b::c"}}]}])",
       "messages[0].tool_calls[0].function.name: expected at most one \"::\", found a::b::c"},
      {R"([{"role": "assistant", "tool_calls": [{"namespace": "x", "function": {"name": "a::b"}}]}])",
       "messages[0].tool_calls[0].function.name: expected namespace x, found a::b"},
      {R"([{"role": "assistant", "tool_calls": [{}]}])",
       "messages[0].tool_calls[0].function: expected an object, found nothing"},
      {R"([{"role": "user", "task": "dance"}])",
       "messages[0].task: expected action, query, authority, domain, title, read_url, found "
       "\"dance\""},
      {R"([{"role": "user", "tools": []}])",
       "messages[0].tools: only system and developer messages have this field"},
      {R"({"messages": [{"role": "user"}], "tools": [{"type": "web_search"}]})",
       "tools[0].type: expected function, found \"web_search\""},
      {R"({"messages": [{"role": "user"}], "response_format": {"type": "xml"}})",
       "response_format.type: expected text, json_object or json_schema, found \"xml\""},
      {R"({"messages": [{"role": "user"}], "response_format": {"type": "json_schema"}})",
       "response_format.json_schema.schema: expected a JSON schema, found nothing"},
      {R"({"messages": [{"role": "user"}], "continue_final_message": true})",
       "continue_final_message: expected the last message to be the assistant's"},
      {R"({"messages": [{"role": "user"}], "add_generation_prompt": "no"})",
       "add_generation_prompt: expected true or false, found \"no\""},
  };
  for (const auto& [json, error] : kCases) EXPECT_EQ(ErrorOf(json), error);
}

// The names and numbers themselves are compared with the official encoder in
// prompt_digests_test.cc.
TEST(ConversationJson, UnknownEffortsAreRefusedWithTheKnownOnes) {
  for (const std::string_view effort :
       {"\"extreme\"", "\"\"", "0", "101", "-1", "7.5", "true", "\"High\"", "{}", "1e2"}) {
    const std::string error =
        ErrorOf(StrCat(R"({"messages": [{"role": "user"}], "reasoning_effort": )", effort, "}"));
    EXPECT_EQ(error.find(StrCat("reasoning_effort: expected ", kEffortValues, ", found ")), 0u)
        << error;
  }
}

TEST(ConversationJson, ThinkingComesFromTheCallerUnlessSaid) {
  const Thinking off{.enabled = false, .effort = 20};
  const auto thinking = [&off](std::string_view fields) {
    const StatusOr<Conversation> conversation =
        ParseMessages(StrCat(R"({"messages": [{"role": "user"}])", fields, "}"), off);
    EXPECT_TRUE(conversation.ok()) << conversation.status();
    return conversation->thinking;
  };
  EXPECT_FALSE(thinking("").enabled);
  EXPECT_EQ(thinking(R"(, "thinking": {"type": "enabled"})").effort, 20);
  EXPECT_TRUE(thinking(R"(, "thinking": {"type": "enabled"})").enabled);
  EXPECT_TRUE(thinking(R"(, "reasoning_effort": 90)").enabled);
  EXPECT_FALSE(
      thinking(R"(, "reasoning_effort": "max", "thinking": {"type": "disabled"})").enabled);
  EXPECT_FALSE(thinking(R"(, "reasoning_effort": "none")").enabled);
}

TEST(ConversationJson, ContradictionsAboutThinkingAreRefused) {
  const std::string_view kCases[] = {
      R"("thinking": {"type": "enabled"}, "chat_template_kwargs": {"thinking": false})",
      R"("chat_template_kwargs": {"thinking": false, "enable_thinking": true})",
      R"("thinking": {"type": "enabled"}, "reasoning_effort": "none")",
      R"("reasoning_effort": "low", "chat_template_kwargs": {"reasoning_effort": "max"})",
  };
  for (const std::string_view fields : kCases) {
    const std::string error = ErrorOf(StrCat(R"({"messages": [{"role": "user"}], )", fields, "}"));
    EXPECT_NE(error.find("contradicts"), std::string::npos) << error;
  }
}

TEST(ConversationJson, MessagesThatAreNotJsonSayWhere) {
  EXPECT_EQ(ErrorOf("[{\"role\": user}]").find("not JSON at byte 11: syntax error"), 0u)
      << ErrorOf("[{\"role\": user}]");
}

}  // namespace
}  // namespace deepinfer
