// Reported faults over the real process: tokens and drafts are scripted, the engine, its grammars
// and its prefix cache are the real ones.
#include <gtest/gtest.h>

#include <chrono>

#include "request/testing/api_fixture.h"
#include "request/testing/raw_client.h"
#include "request/testing/stream_check.h"
#include "serve_process.h"
#include "tokens/answer_test_util.h"

namespace deepinfer::testing {
namespace {

const std::string kThinkEnd = "</think>";
constexpr int kPageTokens = 64;

// One server for all tests: they leave nothing behind but cached pages.
int Port() {
  static ServeProcess server({"--model", TinyFolder() + "/tiny", "--kv-cache-bytes", "16777216",
                              "--max-num-seqs", "16", "--scripted"});
  static const int port = server.Port();
  return port;
}

std::string Ids(std::string_view text) {
  std::string quoted;
  AppendJsonString(text, quoted);
  const RawAnswer answer = Fetch(
      Port(), "/tokenize", StrCat(R"({"add_special_tokens": false, "content": )", quoted, "}"));
  EXPECT_EQ(answer.status, 200) << answer.body;
  return TextAt(Json(answer.body), "tokens");
}

// The body of a chat whose answer will be `text` and the end, if nothing forbids it.
std::string Scripted(std::string_view text, std::string_view members,
                     std::string_view user = "Hello") {
  return StrCat(R"({"messages": [{"role": "user", "content": ")", user,
                R"("}], "forced_token_ids": )", Ids(StrCat(text, kEos)), ", ", members, "}");
}

AssembledChat Ask(const std::string& body) {
  const RawAnswer answer = Fetch(Port(), "/v1/chat/completions", body);
  EXPECT_EQ(answer.status, 200) << answer.body << "\n" << body;
  return answer.status == 200 ? ReadWholeChat(answer.body) : AssembledChat();
}

AssembledChat AskStream(std::string body) {
  body.insert(1, R"("stream": true, "stream_options": {"include_usage": true}, )");
  const RawAnswer answer = Fetch(Port(), "/v1/chat/completions", body);
  EXPECT_EQ(answer.status, 200) << answer.body;
  return answer.status == 200 ? ReadChatStream(answer.body, true) : AssembledChat();
}

// Both ways, which must agree in everything but cached tokens and ids.
AssembledChoice BothWays(const std::string& body) {
  AssembledChat a = Comparable(Ask(body)), b = Comparable(AskStream(body));
  a.usage = b.usage = a.seed = b.seed = "";
  EXPECT_EQ(a, b) << body;
  const AssembledChoice choice = a.choices[0];
  EXPECT_FALSE(HasMarkup(choice.content)) << choice.content;
  EXPECT_FALSE(HasMarkup(choice.reasoning)) << choice.reasoning;
  return choice;
}

// Accepted drafts: `first` in the first step, then `rest` in each.
std::string Drafts(int first, int rest) {
  std::string list = StrCat(R"("forced_drafts": [)", first);
  for (int i = 0; i < 200; ++i) list += StrCat(", ", rest);
  return list + "]";
}

const std::string kThinking = R"("thinking": {"type": "enabled"})";
const std::string kNoThinking = R"("thinking": {"type": "disabled"})";
const std::string kSeoul = Block(Invoke("get_weather", TextParameter("city", "Seoul")));
// A tool whose arguments a model without training can get right.
constexpr std::string_view kLamp =
    R"("tools": [{"type": "function", "function": {"name": "lamp", "strict": true, "parameters":)"
    R"( {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"],)"
    R"( "additionalProperties": false}}}])";

TEST(ApiCases, case_01_a_call_survives_every_draft_block) {
  for (int first = 0; first <= 5; ++first) {
    for (const int rest : {2, 5}) {
      const AssembledChoice choice =
          BothWays(Scripted(kSeoul, StrCat(kWeatherTools, ", ", Drafts(first, rest))));
      ASSERT_EQ(choice.calls.size(), 1u) << first << " " << rest;
      EXPECT_EQ(choice.calls[0].arguments, R"({"city": "Seoul"})");
      EXPECT_EQ(choice.content, "");
      EXPECT_EQ(choice.finish_reason, "tool_calls");
    }
  }
}

TEST(ApiCases, case_05_end_of_thinking_and_first_tag_in_one_draft_block) {
  const std::string text = "So I call it." + kThinkEnd + kSeoul;
  for (int first = 0; first <= 5; ++first) {
    const AssembledChoice choice =
        BothWays(Scripted(text, StrCat(kWeatherTools, ", ", kThinking, ", ", Drafts(first, 5))));
    EXPECT_EQ(choice.reasoning, "So I call it.");
    EXPECT_EQ(choice.content, "");
    EXPECT_EQ(choice.calls.size(), 1u) << first;
    EXPECT_EQ(choice.finish_reason, "tool_calls");
  }
}

TEST(ApiCases, case_06_a_block_inside_thinking) {
  const AssembledChoice choice =
      BothWays(Scripted("Hmm." + kSeoul, StrCat(kWeatherTools, ", ", kThinking)));
  EXPECT_EQ(choice.reasoning, "Hmm.");
  EXPECT_EQ(choice.calls.size(), 1u);
}

TEST(ApiCases, case_07_cut_by_max_tokens) {
  const std::string first = Invoke("get_weather", TextParameter("city", "Seoul"));
  const std::string text = "\n\n" + Open("calls") + "\n" + first + "\n" + first + "\n";
  const auto num_tokens = static_cast<int>(At(Json(Ids(text)), "")->items.size());
  size_t most_calls = 0;
  for (int max_tokens = 1; max_tokens < num_tokens; max_tokens += 7) {
    const AssembledChoice choice =
        BothWays(Scripted(text, StrCat(kWeatherTools, ", \"max_tokens\": ", max_tokens)));
    EXPECT_EQ(choice.finish_reason, "length");
    for (const AssembledCall& call : choice.calls) {
      EXPECT_EQ(call.arguments, R"({"city": "Seoul"})");
    }
    EXPECT_GE(choice.calls.size(), most_calls);
    most_calls = std::max(most_calls, choice.calls.size());
  }
  EXPECT_GE(most_calls, 1u);
}

TEST(ApiCases, case_10_required_and_named_give_one_right_call) {
  for (const std::string_view choice_text :
       {R"("required")", R"({"type": "function", "function": {"name": "lamp"}})"}) {
    for (const bool thinking : {false, true}) {
      const std::string members =
          StrCat(kLamp, R"(, "parallel_tool_calls": false, "seed": 1, "max_tokens": 200, )",
                 R"("tool_choice": )", choice_text, ", ", thinking ? kThinking : kNoThinking);
      const std::string body =
          StrCat(R"({"messages": [{"role": "user", "content": "Light!"}], )",
                 thinking ? StrCat(R"("forced_token_ids": )", Ids("Hm." + kThinkEnd), ", ") : "",
                 members, "}");
      const AssembledChoice choice = BothWays(body);
      ASSERT_EQ(choice.calls.size(), 1u) << body;
      EXPECT_EQ(choice.calls[0].name, "lamp");
      const std::string on = TextAt(Json(choice.calls[0].arguments), "on");
      EXPECT_TRUE(on == "true" || on == "false") << choice.calls[0].arguments;
      EXPECT_EQ(choice.finish_reason, "tool_calls");
      EXPECT_EQ(choice.content, "");
      EXPECT_EQ(choice.reasoning, thinking ? "Hm." : "");
    }
  }
}

TEST(ApiCases, case_10_none_gives_no_call) {
  const AssembledChoice choice = BothWays(Scripted(
      kSeoul, StrCat(kWeatherTools, R"(, "tool_choice": "none", "max_tokens": 60, "seed": 2)")));
  EXPECT_TRUE(choice.calls.empty());
}

int CachedTokens(const AssembledChat& chat) {
  return std::stoi(TextAt(Json(chat.usage), "prompt_tokens_details.cached_tokens"));
}
int PromptTokens(const AssembledChat& chat) {
  return std::stoi(TextAt(Json(chat.usage), "prompt_tokens"));
}
int OutputTokens(const AssembledChat& chat) {
  return std::stoi(TextAt(Json(chat.usage), "completion_tokens"));
}

TEST(ApiCases, case_11_a_call_sent_back_in_other_words_is_a_hit) {
  // Keys in another order and odd white space, as the client will not write them.
  const std::string call = "\n\n" + Open("calls") + "\n" + Open("invoke name=\"f\"") + "\n" +
                           JsonParameter("b", "[ 1, 2]") + "\n" + TextParameter("a", "x y") +
                           "\n" + Close("invoke") + "\n" + Close("calls");
  const std::string tools = StrCat(
      R"("tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", )",
      R"("properties": {"b": {"type": "array"}, "a": {"type": "string"}}}}}], )", kNoThinking);
  const std::string user(300, 'u');
  const AssembledChat first = Ask(Scripted(call, tools, user));
  ASSERT_EQ(first.choices.at(0).calls.size(), 1u);
  ASSERT_EQ(first.choices.at(0).calls[0].arguments, R"({"b": [ 1, 2], "a": "x y"})");
  const AssembledCall& told = first.choices.at(0).calls[0];
  const std::string body = StrCat(
      "{", tools, R"(, "max_tokens": 4, "messages": [{"role": "user", "content": ")", user,
      R"("}, {"role": "assistant", "content": null, "tool_calls": [{"id": ")", told.id,
      R"(", "type": "function", "function": {"name": "f", "arguments": "{\"a\":\"x y\",\"b\":[1,2]}"}}]},)",
      R"({"role": "tool", "tool_call_id": ")", told.id, R"(", "content": "done"}]})");
  const AssembledChat second = Ask(body);
  EXPECT_GE(CachedTokens(second), PromptTokens(first) + OutputTokens(first) - kPageTokens);
  EXPECT_LT(CachedTokens(second), PromptTokens(second));
}

TEST(ApiCases, case_13_no_end_of_thinking) {
  const AssembledChoice choice = BothWays(Scripted("Good morning!", kThinking));
  EXPECT_EQ(choice.reasoning, "Good morning!");
  EXPECT_EQ(choice.content, "");
  EXPECT_EQ(choice.finish_reason, "stop");
}

TEST(ApiCases, case_17_history_keeps_the_prefix_cacheable) {
  const std::string first(400, 'f');
  const auto body = [&](std::string_view reasoning) {
    return StrCat("{", kThinking,
                  R"(, "max_tokens": 2, "messages": [{"role": "user", "content": ")", first,
                  R"("}, {"role": "assistant", "content": "b")", reasoning,
                  R"(}, {"role": "user", "content": "c"}]})");
  };
  Ask(body(""));
  const AssembledChat again = Ask(body(R"(, "reasoning_content": "because")"));
  EXPECT_EQ(CachedTokens(again), (PromptTokens(again) - 1) / kPageTokens * kPageTokens);
}

TEST(ApiCases, case_21_thinking_is_free_and_content_holds) {
  const std::string formats[] = {
      R"({"type": "json_object"})",
      R"({"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object",
         "properties": {"a": {"enum": ["x", 1]}}, "required": ["a"],
         "additionalProperties": false}}})"};
  for (const std::string& format : formats) {
    const std::string members =
        StrCat(kThinking, R"(, "response_format": )", format, R"(, "max_tokens": 100)");
    const AssembledChoice choice =
        BothWays(Scripted("Not JSON at all." + kThinkEnd + R"({"a": "x"})", members));
    EXPECT_EQ(choice.reasoning, "Not JSON at all.");
    EXPECT_EQ(choice.content, R"({"a": "x"})");
    EXPECT_EQ(choice.finish_reason, "stop");
  }
}

TEST(ApiCases, case_22_the_mask_holds_from_the_token_behind_the_thinking) {
  const std::string format =
      R"("response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema":
         {"type": "object", "properties": {"a": {"enum": ["x", "yy", 12]}}, "required": ["a"],
         "additionalProperties": false}}})";
  for (int first = 0; first <= 5; ++first) {
    for (const int rest : {0, 3, 5}) {
      // What is forced behind the thinking is forbidden, so the model has to find its own way.
      const AssembledChoice choice =
          BothWays(Scripted("Hm, so." + kThinkEnd + "nonsense, not JSON",
                            StrCat(kThinking, ", ", format, R"(, "seed": 3, "max_tokens": 200, )",
                                   Drafts(first, rest))));
      EXPECT_EQ(choice.reasoning, "Hm, so.");
      ASSERT_EQ(choice.finish_reason, "stop") << choice.content;
      const std::string a = TextAt(Json(choice.content), "a");
      EXPECT_TRUE(a == "x" || a == "yy" || a == "12") << choice.content;
    }
  }
}

TEST(ApiCases, case_27_bad_structures_leave_the_server_serving) {
  const std::string_view kBad[] = {
      R"("response_format": {"type": "xml"})",
      R"("guided_regex": "(")",
      R"("guided_regex": "((((a{1,1000}){1,1000}){1,1000}){1,1000})+$")",
      R"("guided_grammar": "root ::= nobody")",
      R"("guided_grammar": "root ::= \"a")",
      R"("response_format": {"type": "json_schema", "json_schema": {"schema": "x"}})"};
  for (const std::string_view members : kBad) {
    const auto start = std::chrono::steady_clock::now();
    const RawAnswer answer = Fetch(Port(), "/v1/chat/completions", ChatBody(members));
    EXPECT_EQ(answer.status, 400) << members << answer.body;
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10)) << members;
    Ask(ChatBody(R"("max_tokens": 2)"));
  }
}

TEST(ApiCases, a_second_identical_request_hits_and_another_user_does_not) {
  const std::string body = StrCat(R"({"max_tokens": 2, "messages": [{"role": "user", "content": ")",
                                  std::string(500, 'q'), R"("}]})");
  EXPECT_EQ(CachedTokens(Ask(body)), 0);
  const AssembledChat again = AskStream(body);
  EXPECT_EQ(CachedTokens(again), (PromptTokens(again) - 1) / kPageTokens * kPageTokens);
  std::string other = body;
  other.insert(1, R"("user_id": "u", )");
  EXPECT_EQ(CachedTokens(Ask(other)), 0);
}

TEST(ApiCases, a_seed_repeats_an_answer_and_is_told) {
  const std::string body = ChatBody(R"("seed": 77, "max_tokens": 12, "n": 2)");
  const AssembledChat a = Comparable(Ask(body)), b = Comparable(Ask(body));
  EXPECT_EQ(a.choices, b.choices);
  EXPECT_EQ(a.seed, "77");
  const AssembledChat drawn = Ask(ChatBody(R"("max_tokens": 12)"));
  const AssembledChat repeated = Ask(ChatBody(StrCat(R"("max_tokens": 12, "seed": )", drawn.seed)));
  EXPECT_EQ(drawn.choices, repeated.choices);
}

TEST(ApiCases, every_listed_route_is_served) {
  const JsonValue document = Json(Fetch(Port(), "/openapi.json").body);
  int num_routes = 0;
  for (const JsonMember& path : At(document, "paths")->members) {
    if (path.key.find('{') != path.key.npos) continue;
    const bool is_get = path.value.Find("get") != nullptr;
    const RawAnswer answer = Fetch(Port(), path.key, is_get ? "" : "{}");
    EXPECT_EQ(answer.status, is_get ? 200 : 400) << path.key << " " << answer.body;
    ++num_routes;
  }
  EXPECT_GE(num_routes, 18);
}

}  // namespace
}  // namespace deepinfer::testing
