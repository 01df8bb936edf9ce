// The input is the body of an HTTP request; its first byte chooses the endpoint. A scripted engine
// answers what gets that far.
#include "base/clock.h"
#include "base/disk.h"
#include "base/rng.h"
#include "fuzz.h"
#include "request/api_state.h"
#include "request/testing/fake_reply.h"
#include "request/testing/fake_timers.h"
#include "request/testing/scripted_engine_client.h"

namespace deepinfer::fuzz {
namespace {

using Handler = void (*)(const SharedApi&, HttpRequest, const std::shared_ptr<HttpReply>&);
constexpr Handler kHandlers[] = {&HandleChat, &HandleCompletion, &HandleTokenize, &HandleDetokenize,
                                 &HandleRender};

ServedModel Model() {
  static const PromptTexts texts =
      *ParsePromptTextsJson(RepositoryFile("tools/tiny/prompt_texts.json"), "prompt_texts.json");
  return {.names = {"deepseek-flash", "tiny"},
          .fingerprint = "fp",
          .max_model_len = 4096,
          .vocab_size = TinyTokenizer().vocab_size(),
          .tokenizer = &TinyTokenizer(),
          .texts = &texts};
}

// What the engine may rely on.
void CheckSubmitted(const Request& request) {
  const auto num_prompt = static_cast<int64_t>(request.prompt_ids.size());
  CHECK(num_prompt > 0 && num_prompt <= 4096);
  for (const int32_t id : request.prompt_ids) {
    CHECK(id >= 0 && id < TinyTokenizer().vocab_size());
  }
  if (request.max_tokens) CHECK_LE(*request.max_tokens + num_prompt, 4096);
  CHECK_LE(request.stop.size(), 16u);
  CHECK(request.tenant == "tenant");
}

void CheckError(const JsonValue& body) {
  const JsonValue* error = body.Find("error");
  CHECK(error != nullptr);
  for (const std::string_view key : {"message", "type", "param", "code"}) {
    CHECK(error->Find(key) != nullptr);
  }
  CheckLine(error->Find("message")->text);
}

void CheckAnswer(const testing::FakeReply& reply) {
  CHECK(reply.ended());
  CHECK(IsUtf8(reply.body()));
  if (reply.head().content_type != "application/json") {
    CHECK(reply.body().ends_with("\n\ndata: [DONE]\n\n"));
    return;
  }
  const auto body = ParseJson(reply.body(), 2 * kMaxJsonDepth);
  CHECK(body.ok());
  if (reply.status() == 200) return;
  CHECK(reply.status() == 400 || reply.status() == 404);
  CheckError(*body);
}

}  // namespace
}  // namespace deepinfer::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace deepinfer;
  if (size == 0) return 0;
  const auto handler = fuzz::kHandlers[data[0] % std::size(fuzz::kHandlers)];
  // An engine that has many choices to answer says the same, so it answers only few.
  testing::ScriptedEngineClient engine(fuzz::Model(), [](const Request& request) {
    fuzz::CheckSubmitted(request);
    if (request.num_choices < 1 || request.num_choices > 8) {
      return std::vector<Event>{
          FailureEvent{.error = {ErrorCode::kInvalidArgument, "n: found too many"}}};
    }
    return testing::Saying("Hi \xC3\xA9\n\n<", fuzz::TinyTokenizer())(request);
  });
  testing::FakeTimers timers;
  testing::FakeBackground background;
  SimulatedClock clock;
  SeededRng rng(1);
  const auto api = std::make_shared<ApiState>(ApiContext{.engine = &engine,
                                                         .timers = &timers,
                                                         .background = &background,
                                                         .clock = &clock,
                                                         .rng = &rng,
                                                         .options = {.scripted = true}});
  const auto reply = std::make_shared<testing::FakeReply>();
  handler(api, {.body = std::string(fuzz::AsText(data + 1, size - 1)), .tenant = "tenant"}, reply);
  while (background.RunOne()) {
  }
  engine.DeliverAll();
  fuzz::CheckAnswer(*reply);
  return 0;
}
