// How an answer reaches its client: signs of life, failures before and after the headers, clients
// that leave, long prompts beside the server's thread.
#include "request/answer_session.h"

#include <gtest/gtest.h>

#include "request/testing/api_fixture.h"
#include "request/testing/stream_check.h"

namespace deepinfer::testing {
namespace {

using std::chrono::seconds;

const std::string kStreamed = ChatBody(R"("stream": true)");

Script FailingAfter(std::vector<Event> events, ErrorCode code) {
  events.emplace_back(FailureEvent{.error = {code, "layer 3: not a number"}});
  return [events](const Request&) { return events; };
}

TEST(AnswerSession, AFailureBeforeTheHeadersIsAStatus) {
  const std::pair<ErrorCode, int> kCodes[] = {{ErrorCode::kInvalidArgument, 400},
                                              {ErrorCode::kUnsupportedSchema, 400},
                                              {ErrorCode::kFailedPrecondition, 400},
                                              {ErrorCode::kResourceExhausted, 503},
                                              {ErrorCode::kDeadlineExceeded, 503},
                                              {ErrorCode::kDataLoss, 500},
                                              {ErrorCode::kInternal, 500}};
  for (const auto& [code, status] : kCodes) {
    for (const std::string& body : {kStreamed, ChatBody()}) {
      ApiFixture fixture;
      fixture.engine.set_script(FailingAfter({}, code));
      const auto reply = fixture.Chat(body);
      EXPECT_EQ(reply->status(), status);
      EXPECT_FALSE(reply->streaming());
      EXPECT_EQ(TextAt(Json(reply->body()), "error.message"), "layer 3: not a number");
      EXPECT_EQ(reply->head().headers.empty(), status != 503);  // Retry-After
    }
  }
}

TEST(AnswerSession, AFailureInsideAStreamIsItsLastEvent) {
  ApiFixture fixture;
  fixture.engine.set_script(
      FailingAfter({ReadyEvent{}, TokensEvent{.ids = {300}, .text = "H", .pieces = {"H"}}},
                   ErrorCode::kDataLoss));
  const auto reply = fixture.Chat(kStreamed);
  EXPECT_EQ(reply->status(), 200);
  const std::vector<std::string> events = DataOf(reply->body());
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(TextAt(Json(events[2]), "error.code"), "internal");
  EXPECT_TRUE(reply->ended());
}

TEST(AnswerSession, AWholeAnswerFailsAsAWhole) {
  ApiFixture fixture;
  fixture.engine.set_script(
      FailingAfter({ReadyEvent{}, TokensEvent{.ids = {300}, .text = "H", .pieces = {"H"}}},
                   ErrorCode::kDataLoss));
  EXPECT_EQ(fixture.Chat(ChatBody())->status(), 500);
}

TEST(AnswerSession, OneChoiceThatFailsEndsAll) {
  ApiFixture fixture;
  fixture.engine.set_script([](const Request&) {
    return std::vector<Event>{ReadyEvent{},
                              FailureEvent{.choice = 0, .error = {ErrorCode::kInternal, "x"}},
                              FinishEvent{.choice = 1}};
  });
  EXPECT_EQ(fixture.Chat(ChatBody(R"("n": 2)"))->status(), 500);
  EXPECT_EQ(fixture.engine.num_cancelled(), 1);
}

TEST(AnswerSession, TheServerCancelsWithAStatusToTryAgain) {
  ApiFixture fixture;
  fixture.engine.set_script([](const Request&) {
    return std::vector<Event>{FinishEvent{.reason = FinishReason::kCancelled}};
  });
  EXPECT_EQ(fixture.Chat(ChatBody())->status(), 503);
}

TEST(AnswerSession, SilentStreamsGetComments) {
  ApiFixture fixture({.keep_alive = seconds(15)});
  const auto reply = fixture.Begin(&HandleChat, kStreamed);
  fixture.timers.Advance(seconds(14));
  EXPECT_FALSE(reply->streaming());
  fixture.timers.Advance(seconds(1));
  EXPECT_EQ(reply->body(), ": keep-alive\n\n");
  fixture.timers.Advance(seconds(30));
  EXPECT_EQ(reply->body(), ": keep-alive\n\n: keep-alive\n\n: keep-alive\n\n");
  fixture.engine.DeliverAll();
  EXPECT_EQ(ReadChatStream(reply->body(), false).choices[0].content, "Hi");
  EXPECT_EQ(fixture.timers.num_waiting(), 0u);
}

TEST(AnswerSession, StreamsThatSayThingsGetNone) {
  ApiFixture fixture({.keep_alive = seconds(15)});
  const auto reply = fixture.Begin(&HandleChat, kStreamed);
  fixture.engine.DeliverOne();  // the role
  fixture.timers.Advance(seconds(15));
  EXPECT_EQ(reply->body().find("keep-alive"), std::string::npos);
  fixture.timers.Advance(seconds(15));
  EXPECT_NE(reply->body().find("keep-alive"), std::string::npos);
}

TEST(AnswerSession, SilentWholeAnswersGetEmptyLines) {
  ApiFixture fixture({.keep_alive = seconds(15)});
  const auto reply = fixture.Begin(&HandleChat, ChatBody());
  fixture.timers.Advance(seconds(31));
  EXPECT_EQ(reply->body(), "\n\n");
  EXPECT_EQ(reply->head().content_type, "application/json");
  fixture.engine.DeliverAll();
  EXPECT_TRUE(reply->ended());
  EXPECT_EQ(ReadWholeChat(reply->body()).choices[0].content, "Hi");
}

TEST(AnswerSession, AFailureAfterSignsOfLifeIsTheBody) {
  ApiFixture fixture({.keep_alive = seconds(15)});
  fixture.engine.set_script(FailingAfter({}, ErrorCode::kDeadlineExceeded));
  const auto whole = fixture.Begin(&HandleChat, ChatBody());
  const auto stream = fixture.Begin(&HandleChat, kStreamed);
  fixture.timers.Advance(seconds(16));
  fixture.engine.DeliverAll();
  EXPECT_EQ(TextAt(Json(whole->body()), "error.code"), "overloaded");
  EXPECT_EQ(DataOf(stream->body()).size(), 2u);
  EXPECT_TRUE(whole->ended() && stream->ended());
}

TEST(AnswerSession, AClientThatLeavesCancels) {
  for (const int delivered : {0, 1, 2}) {
    ApiFixture fixture;
    const auto reply = fixture.Begin(&HandleChat, kStreamed);
    for (int i = 0; i < delivered; ++i) fixture.engine.DeliverOne();
    reply->Leave();
    EXPECT_EQ(fixture.engine.num_cancelled(), 1);
    EXPECT_EQ(fixture.engine.num_running(), 0u);
    EXPECT_EQ(fixture.timers.num_waiting(), 0u);
  }
}

TEST(AnswerSession, AnAnsweredClientCancelsNothing) {
  ApiFixture fixture;
  const auto reply = fixture.Chat(ChatBody());
  reply->Leave();
  EXPECT_EQ(fixture.engine.num_cancelled(), 0);
}

TEST(AnswerSession, LongBodiesAreReadBesideTheServersThread) {
  ApiFixture fixture({.background_prompt_bytes = 1000});
  const std::string body =
      StrCat(R"({"messages": [{"role": "user", "content": ")", std::string(2000, 'x'), R"("}]})");
  const auto reply = fixture.Begin(&HandleChat, body);
  EXPECT_TRUE(fixture.engine.requests().empty());
  EXPECT_TRUE(fixture.background.RunOne());  // reads
  EXPECT_TRUE(fixture.engine.requests().empty());
  EXPECT_TRUE(fixture.background.RunOne());  // makes tokens
  EXPECT_EQ(fixture.engine.requests().size(), 1u);
  EXPECT_FALSE(fixture.background.RunOne());
  fixture.engine.DeliverAll();
  EXPECT_EQ(reply->status(), 200);
}

TEST(AnswerSession, AClientThatLeavesMeanwhileSubmitsNothing) {
  ApiFixture fixture({.background_prompt_bytes = 10});
  const auto reply = fixture.Begin(&HandleChat, ChatBody());
  fixture.background.RunOne();
  reply->Leave();
  while (fixture.background.RunOne()) {
  }
  EXPECT_TRUE(fixture.engine.requests().empty());
}

struct Heard : RequestObserver {
  void OnModel(std::string_view model, bool stream) override { log += StrCat(model, stream, " "); }
  void OnReady(int32_t prompt, int32_t cached) override { log += StrCat(prompt, "/", cached, " "); }
  void OnTokens(int32_t count) override { tokens += count; }
  void OnFinish(std::string_view reason) override { log += reason; }
  std::string log;
  int32_t tokens = 0;
};

TEST(AnswerSession, TheObserverHearsWhatHappens) {
  ApiFixture fixture;
  fixture.Say("Hello");
  auto heard = std::make_shared<Heard>();
  HandleChat(fixture.api, {.body = kStreamed, .observer = heard}, std::make_shared<FakeReply>());
  fixture.engine.DeliverAll();
  const std::string prompt = StrCat(fixture.submitted().prompt_ids.size());
  EXPECT_EQ(heard->log, StrCat("deepseek-flashtrue ", prompt, "/0 stop"));
  EXPECT_EQ(heard->tokens, static_cast<int32_t>(TinyTokenizer().Encode("Hello").size()) + 1);
}

}  // namespace
}  // namespace deepinfer::testing
