// Faults that users of other engines reported: tool calls, thinking, chunks. Over a scripted
// engine, so that every byte of the answer is chosen here; each case runs streamed and whole.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "request/testing/api_fixture.h"
#include "request/testing/stream_check.h"
#include "tokens/answer_test_util.h"

namespace deepinfer::testing {
namespace {

const std::string kThinkEnd = "</think>";

// Body of a chat with a tool and these members, streamed or not.
std::string ToolBody(bool stream, std::string_view more = "") {
  return ChatBody(
      StrCat(kWeatherTools, stream ? R"(, "stream": true)" : "", more.empty() ? "" : ", ", more));
}

// The one choice, whichever way it came. Both ways must say the same.
AssembledChoice BothWays(std::string_view answer, std::string_view members = kWeatherTools,
                         FinishReason reason = FinishReason::kStop,
                         const std::vector<size_t>& cuts = {}) {
  ApiFixture fixture;
  fixture.engine.set_script([&](const Request& request) {
    std::vector<Event> events = {ReadyEvent{.seed = 7, .prompt_tokens = 3}};
    const ScriptedAnswer script{.text = std::string(answer),
                                .cuts = cuts,
                                .reason = reason,
                                .logprobs = request.sampling.logprobs.has_value()};
    for (Event& event : EventsOf(script, TinyTokenizer(), request)) {
      events.push_back(std::move(event));
    }
    return events;
  });
  const auto streamed = fixture.Chat(ChatBody(StrCat(members, R"(, "stream": true)")));
  const auto whole = fixture.Chat(ChatBody(members));
  EXPECT_EQ(streamed->status(), 200) << streamed->body();
  EXPECT_EQ(whole->status(), 200) << whole->body();
  AssembledChat a = Comparable(ReadChatStream(streamed->body(), false));
  const AssembledChat b = Comparable(ReadWholeChat(whole->body()));
  a.usage = b.usage;  // of the whole answer alone
  EXPECT_EQ(a, b) << answer;
  for (const std::string* text : {&a.choices[0].content, &a.choices[0].reasoning}) {
    EXPECT_FALSE(HasMarkup(*text)) << *text << "\nof " << answer;
  }
  return a.choices[0];
}

// Where a cut falls on no control token's inside.
std::vector<size_t> CutsOf(std::string_view text) {
  std::vector<size_t> cuts;
  size_t at = 0;
  for (const AnswerToken& token : AsTokens(text)) {
    at += token.text.size();
    cuts.push_back(at);
  }
  return cuts;
}

const std::string kSeoul = Block(Invoke("get_weather", TextParameter("city", "Seoul")));

TEST(ChatCases, case_01_a_call_survives_every_cut) {
  for (const size_t cut : CutsOf(kSeoul)) {
    const AssembledChoice choice = BothWays(kSeoul, kWeatherTools, FinishReason::kStop, {cut});
    EXPECT_EQ(choice.content, "");
    ASSERT_EQ(choice.calls.size(), 1u) << "cut at " << cut;
    EXPECT_EQ(choice.calls[0].name, "get_weather");
    EXPECT_EQ(choice.calls[0].arguments, R"({"city": "Seoul"})");
    EXPECT_EQ(choice.finish_reason, "tool_calls");
  }
}

TEST(ChatCases, case_01_every_token_alone) {
  const std::string text = "Let me look.\n\n" + kSeoul.substr(2);
  const AssembledChoice choice = BothWays(text, kWeatherTools, FinishReason::kStop, CutsOf(text));
  EXPECT_EQ(choice.content, "Let me look.");
  ASSERT_EQ(choice.calls.size(), 1u);
}

TEST(ChatCases, case_02_values_come_through_byte_for_byte) {
  std::string big = "x";
  while (big.size() < (1 << 17)) big += big;
  for (const std::string& value :
       {std::string("Paris"), std::string("ls 2>&1"), std::string("a<b"), std::string("</"),
        std::string("x｜y"), std::string("< parameter"), big, std::string(),
        std::string("\"\\\n")}) {
    const std::string text = Block(Invoke("get_weather", TextParameter("city", value)));
    const AssembledChoice choice = BothWays(text);
    ASSERT_EQ(choice.calls.size(), 1u) << value.substr(0, 20);
    EXPECT_EQ(TextAt(Json(choice.calls[0].arguments), "city"), value);
  }
}

// {wrapper or not} x {closed or not} x {three names of the block} x {0-3 calls} x {text around it}
// x {self-closing calls}
TEST(ChatCases, case_03_no_shape_of_markup_leaks) {
  int num_shapes = 0;
  for (const std::string_view wrapper : {"", "calls", "tool_calls", "function_calls"}) {
    for (const bool closed : {true, false}) {
      for (int num_calls = 0; num_calls <= 3; ++num_calls) {
        for (int prose = 0; prose < 8; ++prose) {
          for (const bool self_closing : {false, true}) {
            std::string text = prose & 1 ? "Before." : "";
            if (!wrapper.empty()) text += "\n\n" + Open(wrapper) + "\n";
            for (int i = 0; i < num_calls; ++i) {
              text += self_closing ? "<" + kM + " invoke name=\"f\"/>"
                                   : Invoke("f", TextParameter("a", "b"));
              if (prose & 2) text += "Between.";
              text += "\n";
            }
            if (closed && !wrapper.empty()) text += Close(wrapper);
            if (prose & 4) text += "After.";
            const AssembledChoice choice = BothWays(text);
            EXPECT_EQ(choice.calls.size(), static_cast<size_t>(num_calls)) << text;
            EXPECT_EQ(choice.finish_reason, num_calls > 0 ? "tool_calls" : "stop");
            ++num_shapes;
          }
        }
      }
    }
  }
  EXPECT_EQ(num_shapes, 512);
}

TEST(ChatCases, case_05_end_of_thinking_and_first_tag_in_one_event) {
  const std::string thoughts = "I shall call the tool.";
  const std::string text = thoughts + kThinkEnd + kSeoul;
  const std::string members = StrCat(kWeatherTools, R"(, "thinking": {"type": "enabled"})");
  const std::vector<size_t> cuts = CutsOf(text);
  for (const size_t begin : cuts) {  // an event from every place on that holds six tokens
    std::vector<size_t> ends;
    for (const size_t cut : cuts) {
      if (cut <= begin || cut > begin + kThinkEnd.size() + kM.size() + 4) ends.push_back(cut);
    }
    const AssembledChoice choice = BothWays(text, members, FinishReason::kStop, ends);
    EXPECT_EQ(choice.reasoning, thoughts);
    EXPECT_EQ(choice.content, "");
    EXPECT_EQ(choice.calls.size(), 1u);
    EXPECT_EQ(choice.finish_reason, "tool_calls");
  }
}

TEST(ChatCases, case_06_a_block_inside_thinking_ends_it) {
  const std::string members = StrCat(kWeatherTools, R"(, "thinking": {"type": "enabled"})");
  const std::string text = "Hmm, the tool." + kSeoul;
  const AssembledChoice choice = BothWays(text, members, FinishReason::kStop, CutsOf(text));
  EXPECT_EQ(choice.reasoning, "Hmm, the tool.");
  EXPECT_EQ(choice.content, "");
  EXPECT_EQ(choice.calls.size(), 1u);
}

TEST(ChatCases, case_07_cut_anywhere_no_broken_call) {
  const std::string first = Invoke("get_weather", TextParameter("city", "Seoul"));
  const std::string second = Invoke("get_weather", JsonParameter("city", R"({"a": [1, "x"]})"));
  const std::string text = "\n\n" + Open("calls") + "\n" + first + "\n" + second + "\n";
  const size_t first_ends = text.find(first) + first.size();
  for (const size_t cut : CutsOf(text)) {
    const AssembledChoice choice =
        BothWays(text.substr(0, cut), kWeatherTools, FinishReason::kLength);
    EXPECT_EQ(choice.finish_reason, "length");
    EXPECT_EQ(choice.content.find_first_not_of("\n<"), choice.content.npos) << choice.content;
    for (const AssembledCall& call : choice.calls) Json(call.arguments);
    EXPECT_EQ(choice.calls.empty(), cut < first_ends) << text.substr(0, cut);
  }
}

TEST(ChatCases, TextThatWasHeldForATagComesAtTheEnd) {
  const AssembledChoice choice = BothWays("a\n\n<", kWeatherTools, FinishReason::kLength);
  EXPECT_EQ(choice.content, "a\n\n<");
}

TEST(ChatCases, case_10_required_and_named_are_asked_of_the_engine) {
  const std::string two_tools =
      R"("tools": [{"function": {"name": "a"}}, {"function": {"name": "ns::b", "strict": true}}])";
  for (const bool thinking : {false, true}) {
    const std::string more = thinking ? R"(, "thinking": {"type": "enabled"})" : "";
    ApiFixture fixture;
    fixture.Chat(ChatBody(StrCat(two_tools, R"(, "tool_choice": "required")", more)));
    const StructuredOutput& required = fixture.submitted().structured;
    EXPECT_EQ(required.kind, StructuredOutput::Kind::kToolCalls);
    EXPECT_TRUE(required.trigger_token_ids.empty());
    EXPECT_EQ(required.bound_token_id.has_value(), thinking);
    EXPECT_EQ(TextAt(Json(required.text), "required"), "true");
    EXPECT_EQ(At(Json(required.text), "tools")->items.size(), 2u);

    fixture.Chat(ChatBody(
        StrCat(two_tools, R"(, "tool_choice": {"type": "function", "function": {"name": "ns::b"}})",
               more)));
    const JsonValue named = Json(fixture.submitted().structured.text);
    EXPECT_EQ(At(named, "tools")->items.size(), 1u);
    EXPECT_EQ(TextAt(named, "tools[0].name"), "ns::b");
    EXPECT_EQ(TextAt(named, "tools[0].strict"), "true");
    EXPECT_EQ(TextAt(named, "required"), "true");
  }
}

TEST(ChatCases, case_10_none_gives_no_call_whatever_the_model_writes) {
  for (const std::string& members :
       {StrCat(kWeatherTools, R"(, "tool_choice": "none")"), std::string(R"("n": 1)")}) {
    const AssembledChoice choice = BothWays("Text." + kSeoul, members);
    EXPECT_TRUE(choice.calls.empty());
    EXPECT_EQ(choice.content, "Text.");
    EXPECT_EQ(choice.finish_reason, "stop");
    ApiFixture fixture;
    fixture.Chat(ChatBody(members));
    EXPECT_EQ(fixture.submitted().sampling.banned_token_ids,
              std::vector<int32_t>{*TinyTokenizer().IdOf(kDsmlToken)});
    EXPECT_EQ(fixture.submitted().structured.kind, StructuredOutput::Kind::kNone);
  }
}

TEST(ChatCases, one_call_at_most_without_parallel_calls) {
  const std::string text = Block(Invoke("get_weather", "") + "\n" + Invoke("get_weather", ""));
  const std::string members = StrCat(kWeatherTools, R"(, "parallel_tool_calls": false)");
  EXPECT_EQ(BothWays(text, members).calls.size(), 1u);
  EXPECT_EQ(BothWays(text).calls.size(), 2u);
}

TEST(ChatCases, case_13_thinking_that_never_ends_is_reasoning) {
  const AssembledChoice choice = BothWays("Good morning!", R"("thinking": {"type": "enabled"})");
  EXPECT_EQ(choice.reasoning, "Good morning!");
  EXPECT_EQ(choice.content, "");
  EXPECT_EQ(choice.finish_reason, "stop");
}

TEST(ChatCases, case_13_the_end_of_the_answer_is_in_no_field) {
  ApiFixture fixture;
  fixture.Say("Good morning!");
  for (const std::string_view more :
       {R"("logprobs": true)", R"("include_stop_str_in_output": true)"}) {
    for (const std::string_view stream : {"", R"(, "stream": true)"}) {
      const auto reply = fixture.Chat(ChatBody(StrCat(more, stream)));
      EXPECT_EQ(reply->body().find("end"), reply->body().npos) << reply->body();
    }
  }
}

TEST(ChatCases, case_14_content_is_always_there) {
  ApiFixture fixture;
  fixture.engine.set_script([](const Request& request) {
    std::vector<Event> events = {ReadyEvent{}};
    const ScriptedAnswer script{.text = "I think", .reason = FinishReason::kLength};
    for (Event& e : EventsOf(script, TinyTokenizer(), request)) events.push_back(std::move(e));
    return events;
  });
  const JsonValue thinking = Json(fixture.Chat(ChatBody(R"("reasoning_effort": "low")"))->body());
  EXPECT_EQ(TextAt(thinking, "choices[0].message.content"), "");
  EXPECT_EQ(TextAt(thinking, "choices[0].message.reasoning_content"), "I think");
  EXPECT_EQ(TextAt(thinking, "choices[0].finish_reason"), "length");
  const JsonValue plain = Json(fixture.Chat(ChatBody(R"("reasoning_effort": "none")"))->body());
  EXPECT_EQ(TextAt(plain, "choices[0].message.content"), "I think");
  EXPECT_EQ(TextAt(plain, "choices[0].message.reasoning_content"), "<absent>");
  fixture.Say(kSeoul);
  const JsonValue call = Json(fixture.Chat(ToolBody(false))->body());
  EXPECT_EQ(TextAt(call, "choices[0].message.content"), "null");
}

TEST(ChatCases, case_15_efforts_are_those_of_the_checkpoint) {
  const std::pair<std::string_view, int> kEfforts[] = {
      {R"("low")", 50},   {R"("minimal")", 50}, {R"("medium")", 75}, {R"("high")", 75},
      {R"("xhigh")", 75}, {R"("max")", 100},    {R"("ultra")", 100}, {"33", 33}};
  ApiFixture fixture;
  for (const auto& [effort, number] : kEfforts) {
    const auto reply =
        fixture.Post(&HandleRender, ChatBody(StrCat("\"reasoning_effort\": ", effort)));
    const std::string prompt = TextAt(Json(reply->body()), "prompt");
    EXPECT_NE(prompt.find(StrCat("Reasoning Effort: ", number, " ")), prompt.npos) << prompt;
  }
  const auto none = fixture.Post(&HandleRender, ChatBody(R"("reasoning_effort": "none")"));
  EXPECT_EQ(TextAt(Json(none->body()), "prompt").find("Effort"), std::string::npos);
  const auto wrong = fixture.Chat(ChatBody(R"("reasoning_effort": "huge")"));
  EXPECT_EQ(wrong->status(), 400);
  EXPECT_EQ(TextAt(Json(wrong->body()), "error.param"), "reasoning_effort");
  EXPECT_NE(wrong->body().find("xhigh"), std::string::npos);
}

TEST(ChatCases, case_17_history_may_omit_reasoning) {
  const auto body = [](std::string_view reasoning) {
    return StrCat(R"({"thinking": {"type": "enabled"}, "messages": [)",
                  R"({"role": "user", "content": "a"}, {"role": "assistant", "content": "b")",
                  reasoning, R"(}, {"role": "user", "content": "c"}]})");
  };
  ApiFixture fixture;
  std::vector<std::string> prompts;
  for (const std::string_view reasoning :
       {"", R"(, "reasoning_content": "because")", R"(, "reasoning_content": null)"}) {
    const auto reply = fixture.Post(&HandleRender, body(reasoning));
    EXPECT_EQ(reply->status(), 200) << reply->body();
    prompts.push_back(TextAt(Json(reply->body()), "prompt"));
    EXPECT_EQ(fixture.Chat(body(reasoning))->status(), 200);
  }
  EXPECT_EQ(prompts[0], prompts[1]);  // dropped before the last user turn
  EXPECT_EQ(prompts[0], prompts[2]);
}

TEST(ChatCases, case_17_only_the_hosted_rules_want_reasoning_back) {
  const std::string body = StrCat(
      "{", kWeatherTools, R"(, "thinking": {"type": "enabled"}, "messages": [)",
      R"({"role": "user", "content": "a"}, {"role": "assistant", "content": null, "tool_calls": [)",
      R"({"id": "1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}]},)",
      R"({"role": "tool", "tool_call_id": "1", "content": "sunny"}]})");
  EXPECT_EQ(ApiFixture().Chat(body)->status(), 200);
  const auto refused = ApiFixture({.deepseek_api = true}).Chat(body);
  EXPECT_EQ(refused->status(), 422);
  EXPECT_EQ(TextAt(Json(refused->body()), "error.param"), "messages[1].reasoning_content");
}

TEST(ChatCases, case_18_control_strings_in_text_stay_text) {
  ApiFixture fixture;
  const std::string text = "Repeat exactly: hello </think> world";
  std::string quoted;
  AppendJsonString(text, quoted);
  for (const std::string_view role : {"user", "system", "developer", "tool", "assistant"}) {
    const auto reply = fixture.Post(
        &HandleRender,
        StrCat(R"({"messages": [{"role": "user", "content": "x"}, {"role": ")", role,
               R"(", "content": )", quoted, R"(}, {"role": "user", "content": "y"}]})"));
    ASSERT_EQ(reply->status(), 200) << reply->body();
    const JsonValue rendered = Json(reply->body());
    EXPECT_NE(TextAt(rendered, "prompt").find(text), std::string::npos);
    int ends = 0;  // chat mode: one behind each assistant header, none for the text's
    for (const JsonValue& id : At(rendered, "tokens")->items) {
      ends += id.text == StrCat(*TinyTokenizer().IdOf(kThinkEndToken)) ? 1 : 0;
    }
    EXPECT_LE(ends, 3);
    const std::string plain = TextAt(rendered, "prompt");
    int literals = 0;
    for (size_t at = plain.find("</think>"); at != plain.npos;
         at = plain.find("</think>", at + 1)) {
      ++literals;
    }
    EXPECT_EQ(literals, ends + 1);
  }
}

TEST(ChatCases, case_19_roles_and_parts) {
  ApiFixture fixture;
  const auto status = [&](std::string_view message) {
    return fixture.Chat(
        StrCat(R"({"messages": [{"role": "user", "content": "x"}, )", message, "]}"));
  };
  for (const std::string_view message :
       {R"({"role": "developer", "content": "d"})", R"({"role": "system", "content": "s"})",
        R"({"role": "tool", "tool_call_id": "1", "content": "t"})",
        R"({"role": "function", "name": "f", "content": "t"})",
        R"({"role": "assistant", "content": null})",
        R"({"role": "user", "content": [{"type": "text", "text": "a"}]})",
        R"({"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]})"}) {
    EXPECT_EQ(status(message)->status(), 200) << message;
  }
  const auto audio = status(R"({"role": "user", "content": [{"type": "input_audio"}]})");
  EXPECT_EQ(audio->status(), 400);
  EXPECT_EQ(TextAt(Json(audio->body()), "error.param"), "messages[1].content[0].type");
  const auto image = status(
      R"({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]})");
  EXPECT_EQ(image->status(), 400);
}

TEST(ChatCases, case_70_an_answer_without_tokens_is_well_formed) {
  for (const std::string_view text : {"", " "}) {
    const AssembledChoice choice = BothWays(text);
    EXPECT_EQ(choice.content, text);
    EXPECT_EQ(choice.finish_reason, "stop");
  }
}

TEST(ChatCases, case_71_cached_tokens_by_all_their_names) {
  ApiFixture fixture;
  fixture.engine.set_script([](const Request& request) {
    std::vector<Event> events = {ReadyEvent{.seed = 3, .prompt_tokens = 200, .cached_tokens = 128}};
    const ScriptedAnswer script{.text = "Hm." + kThinkEnd + "Hello"};
    for (Event& e : EventsOf(script, TinyTokenizer(), request)) events.push_back(std::move(e));
    return events;
  });
  const std::string thinking = R"("thinking": {"type": "enabled"})";
  const auto whole = fixture.Chat(ChatBody(thinking));
  const auto stream = fixture.Chat(
      ChatBody(StrCat(thinking, R"(, "stream": true, "stream_options": {"include_usage": true})")));
  const std::string usage = ReadWholeChat(whole->body()).usage;
  EXPECT_EQ(ReadChatStream(stream->body(), true).usage, usage);
  const JsonValue json = Json(usage);
  EXPECT_EQ(TextAt(json, "prompt_tokens"), "200");
  EXPECT_EQ(TextAt(json, "prompt_tokens_details.cached_tokens"), "128");
  EXPECT_EQ(TextAt(json, "prompt_cache_hit_tokens"), "128");
  EXPECT_EQ(TextAt(json, "prompt_cache_miss_tokens"), "72");
  const size_t reasoning = TinyTokenizer().Encode("Hm.").size();
  const size_t content = TinyTokenizer().Encode("Hello").size();
  EXPECT_EQ(TextAt(json, "completion_tokens_details.reasoning_tokens"), StrCat(reasoning));
  EXPECT_EQ(TextAt(json, "completion_tokens"), StrCat(reasoning + content + 2));
  EXPECT_EQ(TextAt(json, "total_tokens"), StrCat(200 + reasoning + content + 2));
}

// Pieces of all that an answer can hold, in any order, cut anywhere.
std::string RandomAnswer(Rng& rng) {
  const std::string pieces[] = {"Hello",
                                "\n\n",
                                "\n",
                                "<",
                                "</",
                                " é😀 ",
                                kThinkEnd,
                                "<think>",
                                kM,
                                Open("calls"),
                                Close("calls"),
                                Invoke("get_weather", TextParameter("city", "Seoul")),
                                Invoke("f", JsonParameter("n", "[1, 2]")),
                                Open("invoke name=\"g\""),
                                Close("invoke"),
                                JsonParameter("n", "{broken"),
                                TextParameter("a", "<b>")};
  std::string text;
  for (uint64_t i = 1 + rng.Uniform(9); i > 0; --i) {
    text += pieces[rng.Uniform(std::size(pieces))];
  }
  return text;
}

TEST(ChatCases, streams_and_whole_answers_agree_on_anything) {
  SeededRng rng(11);
  int num_calls = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string text = RandomAnswer(rng);
    std::vector<size_t> cuts;
    for (const size_t cut : CutsOf(text)) {
      if (rng.Uniform(3) == 0) cuts.push_back(cut);
    }
    std::string members(kWeatherTools);
    if (rng.Uniform(2) == 0) members += R"(, "thinking": {"type": "enabled"})";
    if (rng.Uniform(2) == 0) members += R"(, "logprobs": true, "top_logprobs": 2)";
    if (rng.Uniform(2) == 0) members += R"(, "return_token_ids": true)";
    const auto reason = rng.Uniform(2) == 0 ? FinishReason::kStop : FinishReason::kLength;
    num_calls += static_cast<int>(BothWays(text, members, reason, cuts).calls.size());
  }
  EXPECT_GT(num_calls, 50);
}

}  // namespace
}  // namespace deepinfer::testing
