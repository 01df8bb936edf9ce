// Case 16: prompts are those of DeepSeek's own encoder, byte for byte and token for token.
//
// tests/prompts/conversations.jsonl holds the inputs, digests.json what the official encoder made
// of them (tests/prompts/official_digests.py). Its own texts are not here; with DI_TEST_V41_ENCODER
// naming the encoder's file the same comparison runs with them. DI_TEST_V41_TOKENIZER names the
// real tokenizer.json.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/sha256.h"
#include "tokens/conversation_json.h"
#include "tokens/json_fields.h"
#include "tokens/prompt_encoder.h"

namespace deepinfer {
namespace {

const std::string kPromptsDir = DI_SOURCE_DIR "/tests/prompts";
const std::string kTinyDir = DI_SOURCE_DIR "/tools/tiny";

std::string ReadFile(const std::string& path) {
  StatusOr<std::string> text = RealDisk().ReadText(path);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.value_or("");
}

struct NamedConversation {
  std::string name;
  Conversation conversation;
};

std::vector<NamedConversation> ReadConversations() {
  std::vector<NamedConversation> conversations;
  const std::string text = ReadFile(kPromptsDir + "/conversations.jsonl");
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    const StatusOr<JsonValue> line = ParseJson(text.substr(begin, end - begin));
    EXPECT_TRUE(line.ok()) << line.status();
    StatusOr<Conversation> conversation = ReadConversation(*line);
    EXPECT_TRUE(conversation.ok()) << line->Find("name")->text << ": " << conversation.status();
    conversations.push_back({line->Find("name")->text, *std::move(conversation)});
    begin = end + 1;
  }
  return conversations;
}

PromptTexts OurTexts() {
  const std::string path = kTinyDir + "/prompt_texts.json";
  StatusOr<PromptTexts> texts = ParsePromptTextsJson(ReadFile(path), path);
  EXPECT_TRUE(texts.ok()) << texts.status();
  return *texts;
}

void ExpectOfficialDigests(const PromptTexts& texts, std::string_view table) {
  const StatusOr<JsonValue> digests = ParseJson(ReadFile(kPromptsDir + "/digests.json"));
  ASSERT_TRUE(digests.ok()) << digests.status();
  const std::vector<NamedConversation> conversations = ReadConversations();
  ASSERT_EQ(conversations.size(), digests->Find(table)->members.size());
  for (const auto& [name, conversation] : conversations) {
    const JsonValue* expected = digests->Find(table)->Find(name);
    ASSERT_NE(expected, nullptr) << name;
    const StatusOr<RenderedPrompt> prompt = RenderPrompt(conversation, texts);
    ASSERT_TRUE(prompt.ok()) << name << ": " << prompt.status();
    const std::string text = prompt->Text();
    EXPECT_EQ(std::to_string(text.size()), expected->Find("bytes")->text) << name << "\n" << text;
    EXPECT_EQ(ToHex(Sha256Of(text)), expected->Find("sha256")->text) << name << "\n" << text;
    EXPECT_EQ(std::to_string(prompt->image_urls.size()), expected->Find("images")->text) << name;
  }
}

// The ids are those of the whole string, tokenised with added tokens, as the official way is.
void ExpectIdsOfWholeText(const PromptTexts& texts, const Tokenizer& tokenizer) {
  for (const auto& [name, conversation] : ReadConversations()) {
    const StatusOr<RenderedPrompt> prompt = RenderPrompt(conversation, texts);
    ASSERT_TRUE(prompt.ok()) << name << ": " << prompt.status();
    const StatusOr<EncodedPrompt> encoded = EncodePrompt(*prompt, tokenizer);
    ASSERT_TRUE(encoded.ok()) << name << ": " << encoded.status();
    EXPECT_EQ(encoded->ids, tokenizer.Encode(prompt->Text())) << name << "\n" << prompt->Text();
    ASSERT_EQ(encoded->image_idxs.size(), prompt->image_urls.size()) << name;
    for (const int64_t idx : encoded->image_idxs) {
      EXPECT_EQ(tokenizer.TokenText(encoded->ids[static_cast<size_t>(idx)]),
                "<｜deepseek_image｜>");
    }
  }
}

TEST(PromptDigests, case_16_prompts_equal_the_official_encoders_with_our_texts) {
  ExpectOfficialDigests(OurTexts(), "our_texts");
}

TEST(PromptDigests, case_16_prompts_equal_the_official_encoders_with_its_own_texts) {
  const char* path = std::getenv("DI_TEST_V41_ENCODER");
  if (path == nullptr) GTEST_SKIP() << "DI_TEST_V41_ENCODER does not name the official encoder";
  const StatusOr<PromptTexts> texts = ParseEncodingPy(ReadFile(path), path);
  ASSERT_TRUE(texts.ok()) << texts.status();
  EXPECT_EQ(OfficialDigestMismatch(*texts), "");
  ExpectOfficialDigests(*texts, "official_texts");
}

TEST(PromptDigests, case_16_ids_are_those_of_the_whole_text) {
  const auto tokenizer = Tokenizer::Load(RealDisk(), kTinyDir + "/tokenizer.json");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  ExpectIdsOfWholeText(OurTexts(), **tokenizer);
}

TEST(PromptDigests, case_16_ids_are_those_of_the_whole_text_with_the_real_tokenizer) {
  const char* path = std::getenv("DI_TEST_V41_TOKENIZER");
  if (path == nullptr) GTEST_SKIP() << "DI_TEST_V41_TOKENIZER does not name the real tokenizer";
  const auto tokenizer = Tokenizer::Load(RealDisk(), path);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  ExpectIdsOfWholeText(OurTexts(), **tokenizer);
}

}  // namespace
}  // namespace deepinfer
