// The text files that make_tiny puts beside the weights: they load, and ids are what tiny.json
// says.
#include <gtest/gtest.h>

#include "base/disk.h"
#include "base/simulated_disk.h"
#include "model/config.h"
#include "tokens/control_tokens.h"
#include "tokens/prompt_texts.h"
#include "tokens/tokenizer.h"

namespace deepinfer {
namespace {

std::string ReadTiny(const std::string& name) {
  return RealDisk().ReadText(StrCat(DI_SOURCE_DIR, "/tools/tiny/", name)).value();
}

TEST(TinyTokenizer, SpecialIdsEqualTheConfiguration) {
  const auto tokenizer = Tokenizer::Parse(ReadTiny("tokenizer.json"), "tokenizer.json").value();
  const ModelConfig config = ParseModelConfig(ReadTiny("tiny.json"), "tiny.json").value();
  EXPECT_EQ(tokenizer->vocab_size(), config.vocab_size);
  EXPECT_EQ(tokenizer->IdOf(kBosToken), config.bos_token_id);
  EXPECT_EQ(tokenizer->IdOf(kEosToken), config.eos_token_id);
  EXPECT_EQ(tokenizer->IdOf(kImageToken), config.image_token_id);
  EXPECT_EQ(tokenizer->IdOf(kSystemToken), config.dspark_noise_token_id);
  for (const std::string_view token : {kUserToken, kAssistantToken, kReminderToken,
                                       kThinkStartToken, kThinkEndToken, kDsmlToken}) {
    ASSERT_TRUE(tokenizer->IdOf(token).has_value()) << token;
    EXPECT_TRUE(tokenizer->IsAdded(*tokenizer->IdOf(token))) << token;
  }
  for (const char* task : {"action", "query", "authority", "domain", "title", "read_url"}) {
    EXPECT_TRUE(tokenizer->IdOf(StrCat("<｜", task, "｜>")).has_value()) << task;
  }
}

TEST(TinyTokenizer, EveryTextComesBack) {
  const auto tokenizer = Tokenizer::Parse(ReadTiny("tokenizer.json"), "tokenizer.json").value();
  for (const std::string text : {"Hello, how are you?", "模型 12345\n\n\té😀", ""}) {
    EXPECT_EQ(tokenizer->Decode(tokenizer->Encode(text)), text);
  }
  EXPECT_LT(tokenizer->Encode("the engine reads the weights").size(), 16u);  // merges are used
}

TEST(TinyPromptTexts, LoadFromTheEncodingFolder) {
  SimulatedDisk disk;
  ASSERT_TRUE(
      disk.WriteText("tiny/encoding/prompt_texts.json", ReadTiny("prompt_texts.json")).ok());
  const StatusOr<PromptTexts> texts = LoadPromptTexts(disk, "tiny");
  ASSERT_TRUE(texts.ok()) << texts.status();
  EXPECT_FALSE(texts->tools.before.empty());
  EXPECT_FALSE(texts->tools.after.empty());
  EXPECT_FALSE(texts->response_format.before.empty());
  EXPECT_EQ(texts->refusal, "");
}

}  // namespace
}  // namespace deepinfer
