// What is told of requests: metrics, percentiles, the access log.
#include "request/metrics.h"

#include <gtest/gtest.h>

#include "request/access_log.h"
#include "request/stats_json.h"
#include "request/testing/kept_reply.h"
#include "tokens/json.h"

namespace deepinfer {
namespace {

using namespace std::chrono_literals;
using testing::KeptReply;

// A request from its arrival to its end, told to metrics.
class MetricsTest : public ::testing::Test {
 protected:
  MetricsTest() {
    listener_.on_ready = [this](const ExchangeFacts&) { ++num_ready_; };
    listener_.on_first_token = [this](const ExchangeFacts& f) { metrics_.OnFirstToken(f); };
    listener_.on_end = [this](const ExchangeFacts& f) {
      last_ = f;
      metrics_.OnEnd(f);
    };
  }
  void Begin() {
    reply_ = std::make_shared<KeptReply>();
    exchange_ = std::make_shared<Exchange>(
        HttpRequest{.id = "id-1", .method = "POST", .path = "/v1/chat/completions", .peer = "p:1"},
        reply_, HttpHeaders{{"Common", "yes"}}, listener_, clock_);
    exchange_->facts().inference = true;
  }
  // 0.5 s to the first of 5 tokens, then 0.1 s a token.
  void Run() {
    exchange_->OnModel("m", true);
    exchange_->OnReady(10, 4);
    clock_.Advance(500ms);
    exchange_->BeginStream({});
    exchange_->OnTokens(1);
    for (int i = 0; i < 2; ++i) {
      clock_.Advance(200ms);
      exchange_->OnTokens(2);
      exchange_->Write("text");
    }
    exchange_->OnFinish("stop");
    clock_.Advance(100ms);
    exchange_->End();
  }
  bool Tells(const std::string& line) {
    const std::string text = metrics_.Text(context_);
    return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
  }

  SimulatedClock clock_;
  Metrics metrics_;
  ExchangeListener listener_;
  MetricsContext context_;
  ExchangeFacts last_;
  int num_ready_ = 0;
  std::shared_ptr<KeptReply> reply_;
  std::shared_ptr<Exchange> exchange_;
};

TEST_F(MetricsTest, AnAnswerIsMeasured) {
  Begin();
  Run();
  EXPECT_DOUBLE_EQ(*last_.ttft_s(), 0.5);
  EXPECT_DOUBLE_EQ(*last_.tpot_s(), 0.1);
  EXPECT_DOUBLE_EQ(last_.e2e_s(), 1.0);
  EXPECT_EQ(last_.output_tokens, 5);
  EXPECT_EQ(num_ready_, 1);
  EXPECT_EQ(metrics_.counts().ok, 1);
  EXPECT_TRUE(Tells("deepinfer_ttft_seconds_count 1"));
  EXPECT_TRUE(Tells("deepinfer_ttft_seconds_sum 0.5"));
  EXPECT_TRUE(Tells("deepinfer_ttft_seconds_bucket{le=\"0.25\"} 0"));
  EXPECT_TRUE(Tells("deepinfer_ttft_seconds_bucket{le=\"1\"} 1"));
  EXPECT_TRUE(Tells("deepinfer_tpot_seconds_count 1"));
  EXPECT_TRUE(Tells("deepinfer_e2e_seconds_sum 1"));
  EXPECT_TRUE(Tells("deepinfer_requests_total{outcome=\"ok\"} 1"));
  EXPECT_TRUE(Tells("deepinfer_http_responses_total{status=\"200\"} 1"));
  EXPECT_TRUE(Tells("deepinfer_requests_finished_total{reason=\"stop\"} 1"));
}

TEST_F(MetricsTest, OutcomesAreToldApart) {
  Begin();
  exchange_->Send({.status = 400});
  Begin();
  exchange_->Send({.status = 500});
  Begin();
  exchange_->OnTokens(1);
  reply_->Go();
  Begin();
  exchange_->BeginStream({});
  exchange_->OnFinish("error");
  exchange_->End();
  Begin();
  exchange_.reset();  // a handler that forgot it
  const RequestCounts& counts = metrics_.counts();
  EXPECT_EQ(counts.ok, 0);
  EXPECT_EQ(counts.rejected, 1);
  EXPECT_EQ(counts.failed, 3);
  EXPECT_EQ(counts.cancelled, 1);
  EXPECT_TRUE(Tells("deepinfer_aborted_total{reason=\"client_gone\"} 1"));
  EXPECT_TRUE(Tells("deepinfer_http_responses_total{status=\"none\"} 1"));
}

TEST_F(MetricsTest, EveryEndIsToldOnce) {
  Begin();
  int closed = 0;
  exchange_->OnClosed([&closed] { ++closed; });
  exchange_->Send({});
  exchange_->Send({});
  exchange_->End();
  reply_->Go();
  exchange_.reset();
  EXPECT_EQ(closed, 0);
  EXPECT_EQ(metrics_.counts().ok, 1);
  EXPECT_EQ(reply_->Header("Common"), "yes");
}

TEST_F(MetricsTest, AHandlerMayDropItsReplyWhenTheClientGoes) {
  Begin();
  exchange_->OnClosed([this] { exchange_.reset(); });
  reply_->Go();
  EXPECT_EQ(exchange_, nullptr);
  EXPECT_EQ(metrics_.counts().cancelled, 1);
}

TEST_F(MetricsTest, TheEngineIsToldFromItsSnapshot) {
  context_.engine.num_running = 3;
  context_.engine.cached_tokens = 640;
  context_.engine.steps = 4;
  context_.engine.step_seconds = 0.5;
  context_.engine.pages_total = 99;
  context_.state = "ready";
  EXPECT_TRUE(Tells("deepinfer_requests_running 3"));
  EXPECT_TRUE(Tells("deepinfer_prefix_hit_tokens_total 640"));
  EXPECT_TRUE(Tells("deepinfer_step_seconds_count 4"));
  EXPECT_TRUE(Tells("deepinfer_step_seconds_sum 0.5"));
  EXPECT_TRUE(Tells("deepinfer_kv_blocks_total 99"));
  EXPECT_TRUE(Tells("deepinfer_ready 1"));
  context_.state = "draining";
  EXPECT_TRUE(Tells("deepinfer_ready 0"));
}

TEST_F(MetricsTest, StatsAreJson) {
  Begin();
  Run();
  context_.model = "a \"model\"";
  context_.engine.pages_used = 5;
  const auto stats = ParseJson(StatsJson(context_, metrics_, {.now = clock_.Now()}));
  ASSERT_TRUE(stats.ok()) << stats.status();
  EXPECT_EQ(stats->Find("model")->text, "a \"model\"");
  EXPECT_EQ(stats->Find("pages")->Find("used")->text, "5");
  EXPECT_EQ(stats->Find("ttft_ms")->Find("p50")->text, "500");
  EXPECT_EQ(stats->Find("tpot_ms")->Find("p99")->text, "100");
  EXPECT_EQ(stats->Find("requests")->Find("ok")->text, "1");
  clock_.Advance(61s);
  const auto later = ParseJson(StatsJson(context_, metrics_, {.now = clock_.Now()}));
  EXPECT_TRUE(later->Find("ttft_ms")->Find("p50")->IsNull());
  EXPECT_EQ(later->Find("requests")->Find("ok")->text, "1");
}

TEST(RecentValues, PercentilesAreByNearestRank) {
  RecentValues values;
  EXPECT_FALSE(values.At({}));
  for (int i = 100; i >= 1; --i) values.Add({}, i);
  const auto at = values.At({});
  ASSERT_TRUE(at);
  EXPECT_EQ(at->p50, 50);
  EXPECT_EQ(at->p90, 90);
  EXPECT_EQ(at->p99, 99);
}

TEST(RecentValues, OldOnesAndTooManyAreForgotten) {
  RecentValues values;
  values.Add({}, 1);
  values.Add(MonotonicTime{} + 59s, 2);
  EXPECT_EQ(values.At(MonotonicTime{} + 60s)->p50, 1);
  EXPECT_EQ(values.At(MonotonicTime{} + 61s)->p50, 2);
  for (int i = 0; i < 10'000; ++i) values.Add(MonotonicTime{} + 61s, 3);
  EXPECT_EQ(values.At(MonotonicTime{} + 61s)->p50, 3);
}

std::string Line(const ExchangeFacts& facts, LogFormat format) {
  return LogText(format, "POST /x", AccessFields(facts));
}

TEST_F(MetricsTest, TheAccessLogHasNumbersAndNoText) {
  Begin();
  Run();
  last_.tenant = "alice";
  EXPECT_EQ(
      Line(last_, LogFormat::kText),
      "POST /x id=id-1 peer=p:1 status=200 seconds=1 bytes=8 tenant=alice model=m stream=true "
      "prompt_tokens=10 cached_tokens=4 output_tokens=5 ttft=0.5 finish=stop");
  EXPECT_TRUE(ParseJson("{" + Line(last_, LogFormat::kJson) + "}").ok());
}

TEST(AccessLog, ProbesAreQuietUnlessTheyFail) {
  const auto level = [](std::string path, int status) {
    ExchangeFacts facts;
    facts.path = std::move(path);
    facts.status = status;
    return AccessLevel(facts);
  };
  EXPECT_EQ(level("/health", 200), LogLevel::kDebug);
  EXPECT_EQ(level("/page/app.js", 200), LogLevel::kDebug);
  EXPECT_EQ(level("/ready", 503), LogLevel::kInfo);
  EXPECT_EQ(level("/v1/models", 200), LogLevel::kInfo);
}

}  // namespace
}  // namespace deepinfer
