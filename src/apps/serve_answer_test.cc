#include "apps/serve_answer.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

constexpr char kEvents[] = "text/event-stream; charset=utf-8";

// One answer, fed by hand; the clock stands where the test puts it.
class Fed {
 public:
  explicit Fed(bool streams = true)
      : answer_({.streams = streams, .keeps_text = true}, clock_, clock_.Now(), request_,
                [this] { ++num_done_; }) {}

  Fed& Head(int status, const char* type) {
    answer_.OnHead(status, type);
    return *this;
  }
  Fed& Body(const std::string& piece, int ms = 0) {
    clock_.Advance(std::chrono::milliseconds(ms));
    answer_.OnBody(piece);
    return *this;
  }
  const ServedRequest& End() {
    answer_.OnEnd();
    EXPECT_EQ(num_done_, 1);
    return request_;
  }
  const ServedRequest& Failed(const Status& status) {
    answer_.OnFailed(status);
    EXPECT_EQ(num_done_, 1);
    return request_;
  }

 private:
  SimulatedClock clock_;
  ServedRequest request_;
  int num_done_ = 0;
  ServeAnswer answer_;
};

std::string Event(const std::string& data) { return "data: " + data + "\n\n"; }

const std::string kUsage = R"({"choices":[],"usage":{"prompt_tokens":90,"completion_tokens":5,)"
                           R"("prompt_tokens_details":{"cached_tokens":64}}})";

TEST(ServeAnswer, TimesTheVisiblePiecesOfAChat) {
  Fed fed;
  const ServedRequest& request =
      fed.Head(200, kEvents)
          .Body(Event(R"({"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]})"), 10)
          .Body(Event(R"({"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]})"), 10)
          .Body(": keep-alive\n\n", 10)
          .Body(Event(R"({"choices":[{"index":0,"delta":{"content":"Hi"}}],"usage":null})"), 10)
          .Body(Event(R"({"choices":[{"index":0,"delta":{"tool_calls":[{"index":0}]}}]})"), 10)
          .Body(Event(R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})"), 10)
          .Body(Event(kUsage) + Event("[DONE]"), 10)
          .End();
  EXPECT_EQ(request.error, "");
  EXPECT_EQ(request.piece_s, (std::vector<double>{0.02, 0.04, 0.05}));
  EXPECT_EQ(request.text, "Hi");
  EXPECT_EQ(request.prompt_tokens, 90);
  EXPECT_EQ(request.cached_tokens, 64);
  EXPECT_EQ(request.NumOutput(), 5);
  EXPECT_DOUBLE_EQ(request.Ttft(), 0.02);
  EXPECT_DOUBLE_EQ(request.Tpot(), 0.03 / 4);
  EXPECT_DOUBLE_EQ(request.Latency(), 0.07);
}

TEST(ServeAnswer, ReadsACompletionCutAnywhere) {
  const std::string stream = Event(R"({"choices":[{"index":0,"text":"a\u00e9"}]})") +
                             Event(R"({"choices":[{"index":1,"text":"other"}]})") +
                             Event(R"({"choices":[{"index":0,"text":"b"}]})") + Event("[DONE]");
  for (size_t i = 0; i <= stream.size(); ++i) {
    Fed fed;
    const ServedRequest& request =
        fed.Head(200, kEvents).Body(stream.substr(0, i)).Body(stream.substr(i)).End();
    ASSERT_EQ(request.error, "") << "cut at " << i;
    ASSERT_EQ(request.text,
              "a\xc3\xa9"
              "b")
        << "cut at " << i;
    ASSERT_EQ(request.NumOutput(), 3) << "pieces, when the server counts nothing";
    ASSERT_EQ(request.prompt_tokens, kNotReported);
  }
}

TEST(ServeAnswer, ReadsAWholeAnswer) {
  Fed fed(false);
  const ServedRequest& request =
      fed.Head(200, "application/json")
          .Body(R"({"choices":[{"message":{"content":"Hello"}}],)")
          .Body(R"("usage":{"prompt_tokens":7,"completion_tokens":2,"prompt_cache_hit_tokens":3}})")
          .End();
  EXPECT_EQ(request.error, "");
  EXPECT_EQ(request.text, "Hello");
  EXPECT_EQ(request.output_tokens, 2);
  EXPECT_EQ(request.cached_tokens, 3);
  EXPECT_TRUE(request.piece_s.empty());
}

// What fails, and how it is told.
TEST(ServeAnswer, TellsWhatTheServerSaid) {
  EXPECT_EQ(Fed()
                .Head(429, "application/json")
                .Body(R"({"error":{"message":"too many","type":"rate_limit_error"}})")
                .End()
                .error,
            "HTTP 429: too many");
  EXPECT_EQ(Fed().Head(502, "text/html").Body("<html>\nbad gateway").End().error,
            "HTTP 502: <html>\\nbad gateway");
}

TEST(ServeAnswer, AStreamThatBreaksIsNotServed) {
  const std::string token = Event(R"({"choices":[{"index":0,"text":"a"}]})");
  const auto error = [&](const std::string& rest) {
    return Fed().Head(200, kEvents).Body(token + rest).End().error;
  };
  EXPECT_EQ(error(Event("[DONE]")), "");
  EXPECT_EQ(error(""), "the stream ended without [DONE]");
  EXPECT_EQ(error(Event(R"({"error":{"message":"lost"}})") + Event("[DONE]")), "lost");
  EXPECT_NE(error(Event("{oops")).find("an event of the stream is not JSON"), std::string::npos);
  EXPECT_EQ(Fed().Head(200, kEvents).Body(token).Failed(DataLoss("cut off")).error, "cut off");
  EXPECT_EQ(Fed().Head(200, "application/json").Body(R"({"choices":[{"text":"a"}]})").End().error,
            "the answer was not streamed");
  EXPECT_NE(Fed(false).Head(200, "text/html").Body("<html>").End().error.find("with choices"),
            std::string::npos);
}

}  // namespace
}  // namespace deepinfer
