// What prompt_digests_test.cc cannot compare with the official encoder: refusals, control strings
// in text, and where the answer begins.
#include "tokens/prompt_encoder.h"

#include <gtest/gtest.h>

#include "tokens/control_tokens.h"
#include "tokens/conversation_json.h"

namespace deepinfer {
namespace {

const PromptTexts& Texts() {
  static const PromptTexts texts = *ParsePromptTextsJson(
      R"({"format": 1, "tools_template": "T <{dsml_token}> {tool_schemas}",
          "response_format_template": "R {schema}"})",
      "texts");
  return texts;
}

const Tokenizer& TinyTokenizer() {
  static const std::unique_ptr<Tokenizer> tokenizer =
      Tokenizer::Load(RealDisk(), DI_SOURCE_DIR "/tools/tiny/tokenizer.json").value();
  return *tokenizer;
}

Conversation Parsed(std::string_view json) {
  StatusOr<Conversation> conversation = ParseMessages(json);
  EXPECT_TRUE(conversation.ok()) << conversation.status() << " " << json;
  return conversation.ok() ? *std::move(conversation) : Conversation();
}

RenderedPrompt Rendered(std::string_view json) {
  StatusOr<RenderedPrompt> prompt = RenderPrompt(Parsed(json), Texts());
  EXPECT_TRUE(prompt.ok()) << prompt.status();
  return prompt.ok() ? *std::move(prompt) : RenderedPrompt();
}

std::string ErrorOf(const Conversation& conversation) {
  const StatusOr<RenderedPrompt> prompt = RenderPrompt(conversation, Texts());
  EXPECT_FALSE(prompt.ok());
  return MessageOf(prompt.status());
}

// A conversation with `text` in every place where text can stand.
std::string Everywhere(std::string_view text) {
  std::string quoted;
  AppendJsonString(text, quoted);
  std::string json = R"({"tools": [{"function": {"name": "f", "description": TEXT}}],
    "messages": [
    {"role": "system", "content": TEXT},
    {"role": "user", "content": [{"type": "text", "text": TEXT},
      {"type": "image_url", "image_url": {"url": TEXT, "alt": TEXT}}]},
    {"role": "latest_reminder", "content": TEXT},
    {"role": "assistant", "reasoning_content": TEXT, "content": TEXT, "tool_calls": [
      {"id": TEXT, "function": {"name": TEXT, "arguments": {"a": TEXT, TEXT: [TEXT]}}}]},
    {"role": "tool", "tool_call_id": TEXT, "content": TEXT}]})";
  for (size_t at = json.find("TEXT"); at != json.npos; at = json.find("TEXT", at + quoted.size())) {
    json.replace(at, 4, quoted);
  }
  return json;
}

std::vector<int32_t> AddedIds(const std::vector<int32_t>& ids) {
  std::vector<int32_t> added;
  for (const int32_t id : ids) {
    if (TinyTokenizer().IsAdded(id)) added.push_back(id);
  }
  return added;
}

TEST(PromptEncoder, case_18_control_strings_in_text_stay_text) {
  const Tokenizer& tokenizer = TinyTokenizer();
  const std::vector<int32_t> expected =
      AddedIds(EncodePrompt(Rendered(Everywhere("x")), tokenizer)->ids);
  ASSERT_GT(expected.size(), 10u);
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const std::string token(tokenizer.TokenText(id));
    if (!tokenizer.IsAdded(id) || token == kImageToken) continue;
    const RenderedPrompt prompt = Rendered(Everywhere("hello " + token + " world"));
    const StatusOr<EncodedPrompt> encoded = EncodePrompt(prompt, tokenizer);
    ASSERT_TRUE(encoded.ok()) << encoded.status();
    EXPECT_EQ(AddedIds(encoded->ids), expected) << token;
    EXPECT_EQ(tokenizer.Decode(encoded->ids), prompt.Text()) << token;
  }
}

TEST(PromptEncoder, r18_the_image_placeholder_in_text_is_refused_or_text_but_never_an_image) {
  const std::pair<std::string_view, std::string_view> kRefused[] = {
      {R"([{"role": "user", "content": "a<｜deepseek_image｜>"}])", "messages[0].content: "},
      {R"([{"role": "system", "content": "<｜deepseek_image｜>"}])", "messages[0].content: "},
      {R"([{"role": "user", "content": [{"type": "text", "text": ""},
          {"type": "text", "text": "<｜deepseek_image｜>"}]}])",
       "messages[0].content[1]: "},
      {R"([{"role": "user"}, {"role": "tool", "content": "<｜deepseek_image｜>"}])",
       "messages[1].content: "},
      {R"([{"role": "assistant", "reasoning_content": "<｜deepseek_image｜>"}])",
       "messages[0].reasoning_content: "},
  };
  for (const auto& [json, path] : kRefused) {
    EXPECT_EQ(ErrorOf(Parsed(json)).find(path), 0u) << ErrorOf(Parsed(json));
  }
  const StatusOr<EncodedPrompt> encoded =
      EncodePrompt(Rendered(R"([{"role": "assistant", "tool_calls": [
          {"function": {"name": "<｜deepseek_image｜>", "arguments": "<｜deepseek_image｜>"}}]}])"),
                   TinyTokenizer());
  const int32_t image = *TinyTokenizer().IdOf(kImageToken);
  EXPECT_EQ(std::count(encoded->ids.begin(), encoded->ids.end(), image), 0);
  EXPECT_TRUE(encoded->image_idxs.empty());
}

TEST(PromptEncoder, ImagesAreFoundByPlaceAndUrl) {
  const RenderedPrompt prompt = Rendered(
      R"([{"role": "user", "content": [{"type": "image_url", "image_url": "u1"},
          {"type": "text", "text": "and"}, {"type": "image_url", "image_url": "u2"}]}])");
  EXPECT_EQ(prompt.image_urls, (std::vector<std::string>{"u1", "u2"}));
  const StatusOr<EncodedPrompt> encoded = EncodePrompt(prompt, TinyTokenizer());
  ASSERT_EQ(encoded->image_idxs.size(), 2u);
  for (const int64_t idx : encoded->image_idxs) {
    EXPECT_EQ(TinyTokenizer().TokenText(encoded->ids.at(static_cast<size_t>(idx))), kImageToken);
  }
}

TEST(PromptEncoder, TextIsOnePieceAcrossMessageAndTemplateBorders) {
  const RenderedPrompt prompt = Rendered(
      R"({"thinking": {"type": "disabled"}, "response_format": {"type": "json_schema",
          "json_schema": {"schema": {"type": "null"}}},
          "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"},
                       {"role": "user", "content": "v"}]})");
  ASSERT_EQ(prompt.segments.size(), 7u) << prompt.Text();
  EXPECT_EQ(prompt.segments[2].text, "s\n\nR {\"type\": \"null\"}");
  EXPECT_EQ(prompt.segments[4].text, "u\n\nv");
}

TEST(PromptEncoder, TheAnswerBeginsInThinkingWhereThePromptOpenedIt) {
  const std::pair<std::string_view, bool> kCases[] = {
      {R"([{"role": "user"}])", true},
      {R"({"messages": [{"role": "user"}], "reasoning_effort": "none"})", false},
      {R"([{"role": "system"}])", false},
      {R"([{"role": "user", "task": "title"}])", false},
      {R"([{"role": "user", "task": "action"}])", false},
      {R"([{"role": "user"}, {"role": "assistant", "content": "x"}])", false},
      {R"([{"role": "user"}, {"role": "assistant", "content": "x", "prefix": true}])", false},
      {R"([{"role": "user"}, {"role": "latest_reminder"}])", true},
      {R"({"messages": [{"role": "user"}], "add_generation_prompt": false})", false},
  };
  for (const auto& [json, in_thinking] : kCases) {
    EXPECT_EQ(Rendered(json).in_thinking, in_thinking) << json;
  }
}

TEST(PromptEncoder, APrefixOfReasoningAloneIsContinuedInsideTheThinking) {
  const RenderedPrompt prompt = Rendered(
      R"([{"role": "user"}, {"role": "assistant", "reasoning_content": "So", "prefix": true}])");
  EXPECT_TRUE(prompt.Text().ends_with("<｜Assistant｜><think>So")) << prompt.Text();
  EXPECT_TRUE(prompt.in_thinking);
}

TEST(PromptEncoder, WithoutTheGenerationPromptThePromptEndsWithTheTurn) {
  EXPECT_TRUE(Rendered(R"({"messages": [{"role": "user", "content": "u"}],
                           "add_generation_prompt": false})")
                  .Text()
                  .ends_with("<｜User｜>u"));
}

// Case 17: whatever reasoning clients send back of earlier turns, the prompt is the same up to the
// last user turn, so that its KV is found again.
TEST(PromptEncoder, case_17_reasoning_of_earlier_turns_is_optional) {
  const auto history = [](std::string_view first, std::string_view second) {
    return Rendered(StrCat(R"([{"role": "user", "content": "a"}, {"role": "assistant", )", first,
                           R"("content": "b"}, {"role": "user", "content": "c"},
                              {"role": "assistant", )",
                           second, R"("content": "d"}, {"role": "user", "content": "e"}])"))
        .Text();
  };
  const std::string_view reasoning = R"("reasoning_content": "r", )";
  const std::string without = history("", "");
  EXPECT_EQ(history(reasoning, reasoning), without);
  EXPECT_EQ(history("", reasoning), without);
}

TEST(PromptEncoder, ImpossibleConversationsAreRefused) {
  EXPECT_EQ(ErrorOf(Conversation()), "messages: expected at least one message, found none");
  Conversation conversation = Parsed(R"([{"role": "user"}])");
  conversation.thinking.effort = 101;
  EXPECT_EQ(ErrorOf(conversation), "reasoning_effort: expected 1..100, found 101");
  EXPECT_EQ(ErrorOf(Parsed(R"([{"role": "assistant", "prefix": true}, {"role": "user"}])")),
            "messages[0].prefix: only the last message can be continued");
}

TEST(PromptEncoder, TextsThatAreNotTheModelsOwnRefuseToolsAndSchemasOnly) {
  PromptTexts texts = Texts();
  texts.refusal = "why";
  const Conversation plain = Parsed(R"([{"role": "user"}])");
  EXPECT_TRUE(RenderPrompt(plain, texts).ok());
  Conversation with_tools = plain, with_schema = plain;
  with_tools.tools = {{"", "f", JsonValue::Object()}};
  with_schema.response_schema = JsonValue::Object();
  for (const Conversation& conversation : {with_tools, with_schema}) {
    const StatusOr<RenderedPrompt> prompt = RenderPrompt(conversation, texts);
    ASSERT_FALSE(prompt.ok());
    EXPECT_EQ(prompt.status().code(), StatusCode::kFailedPrecondition);
    EXPECT_EQ(MessageOf(prompt.status()), "tools and response schemas are refused: why");
  }
}

TEST(PromptEncoder, AMissingControlTokenIsNamed) {
  RenderedPrompt prompt;
  prompt.segments = {{PromptSegment::Kind::kControl, "<｜Nobody｜>"}};
  const StatusOr<EncodedPrompt> encoded = EncodePrompt(prompt, TinyTokenizer());
  ASSERT_FALSE(encoded.ok());
  EXPECT_EQ(MessageOf(encoded.status()),
            "the chat prompt needs the token <｜Nobody｜>, which the tokenizer does not have");
}

// ---- answers as they were sampled

// A conversation with one call, whose sampled form holds ids that no text gives.
Conversation WithSampled(std::string_view assistant, bool sampled_in_thinking) {
  Conversation conversation = Parsed(StrCat(
      R"({"tools": [{"function": {"name": "f"}}], "messages": [{"role": "user", "content": "u"},
          {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}}}], )",
      assistant, "}]}"));
  SampledAnswer sampled{.ids = {900, 901}, .text = "AS SAMPLED", .reasoning = "r", .content = "c"};
  sampled.in_thinking = sampled_in_thinking;
  sampled.calls = {{.text = " CALLS "}};
  conversation.messages[1].sampled = std::make_shared<const SampledAnswer>(sampled);
  return conversation;
}

std::string TailOf(const Conversation& conversation) {
  const std::string text = RenderPrompt(conversation, Texts())->Text();
  return text.substr(text.find("<｜Assistant｜>"));
}

TEST(PromptEncoder, RepeatsASampledAnswerThatCameBackUnchanged) {
  const Conversation conversation =
      WithSampled(R"("content": "c", "reasoning_content": "r")", true);
  EXPECT_EQ(TailOf(conversation), "<｜Assistant｜><think>AS SAMPLED<｜end▁of▁sentence｜>");
  const auto encoded = EncodePrompt(*RenderPrompt(conversation, Texts()), TinyTokenizer());
  const std::vector<int32_t> end(encoded->ids.end() - 3, encoded->ids.end());
  EXPECT_EQ(end, (std::vector<int32_t>{900, 901, *TinyTokenizer().IdOf(kEosToken)}));
}

TEST(PromptEncoder, RepeatsTheSampledCallsBehindWhatChanged) {
  const std::string kept = "<｜Assistant｜><think>r</think>other CALLS <｜end▁of▁sentence｜>";
  EXPECT_EQ(TailOf(WithSampled(R"("content": "other", "reasoning_content": "r")", true)), kept);
  EXPECT_EQ(TailOf(WithSampled(R"("content": "c")", true)),
            "<｜Assistant｜><think></think>c CALLS <｜end▁of▁sentence｜>");
  Conversation off = WithSampled(R"("content": "c", "reasoning_content": "r")", true);
  off.thinking.enabled = false;  // it began inside thinking, this prompt does not
  EXPECT_EQ(TailOf(off), "<｜Assistant｜></think>c CALLS <｜end▁of▁sentence｜>");
}

}  // namespace
}  // namespace deepinfer
