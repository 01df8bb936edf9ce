#include "request/testing/api_fixture.h"

#include <gtest/gtest.h>

#include "base/disk.h"

namespace deepinfer::testing {

const Tokenizer& TinyTokenizer() {
  static const std::unique_ptr<Tokenizer> tokenizer =
      Tokenizer::Load(RealDisk(), DI_SOURCE_DIR "/tools/tiny/tokenizer.json").value();
  return *tokenizer;
}

const PromptTexts& TinyTexts() {
  static const PromptTexts texts = *ParsePromptTextsJson(
      *RealDisk().ReadText(DI_SOURCE_DIR "/tools/tiny/prompt_texts.json"), "prompt_texts.json");
  return texts;
}

ServedModel TinyModel() {
  return {.names = {"deepseek-flash", "tiny"},
          .fingerprint = "fp_test",
          .created = 1'600'000'000,
          .max_model_len = 4096,
          .vocab_size = TinyTokenizer().vocab_size(),
          .tokenizer = &TinyTokenizer(),
          .texts = &TinyTexts(),
          .thinking = {.enabled = false}};
}

ApiFixture::ApiFixture(ApiOptions options)
    : api(std::make_shared<ApiState>(ApiContext{.engine = &engine,
                                                .timers = &timers,
                                                .background = &background,
                                                .clock = &clock,
                                                .rng = &rng,
                                                .options = std::move(options)})) {}

std::shared_ptr<FakeReply> ApiFixture::Begin(ApiHandler handler, std::string_view body,
                                             std::string_view tenant) {
  auto reply = std::make_shared<FakeReply>();
  handler(api, {.method = "POST", .body = std::string(body), .tenant = std::string(tenant)}, reply);
  return reply;
}

std::shared_ptr<FakeReply> ApiFixture::Post(ApiHandler handler, std::string_view body) {
  auto reply = Begin(handler, body);
  while (background.RunOne()) {
  }
  engine.DeliverAll();
  return reply;
}

const Request& ApiFixture::submitted() const {
  static const Request none;
  if (engine.requests().empty()) ADD_FAILURE() << "nothing was submitted";
  return engine.requests().empty() ? none : engine.requests().back();
}

JsonValue Json(std::string_view text) {
  StatusOr<JsonValue> value = ParseJson(text);
  EXPECT_TRUE(value.ok()) << value.status() << "\n" << text;
  return value.ok() ? *std::move(value) : JsonValue();
}

const JsonValue* At(const JsonValue& value, std::string_view path) {
  const JsonValue* at = &value;
  while (at != nullptr && !path.empty()) {
    if (path[0] == '[') {
      const size_t end = path.find(']');
      const size_t idx = std::stoul(std::string(path.substr(1, end - 1)));
      at = idx < at->items.size() ? &at->items[idx] : nullptr;
      path.remove_prefix(end + 1);
    } else {
      if (path[0] == '.') path.remove_prefix(1);
      const size_t end = std::min(path.find_first_of(".["), path.size());
      at = at->Find(path.substr(0, end));
      path.remove_prefix(end);
    }
  }
  return at;
}

std::string TextAt(const JsonValue& value, std::string_view path) {
  const JsonValue* at = At(value, path);
  if (at == nullptr) return "<absent>";
  if (at->IsString()) return at->text;
  return DumpJson(*at);
}

std::string ChatBody(std::string_view members) {
  return StrCat(R"({"messages": [{"role": "user", "content": "Hi"}])", members.empty() ? "" : ", ",
                members, "}");
}

}  // namespace deepinfer::testing
