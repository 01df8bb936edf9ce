#include "apps/bench_service.h"

#include <gtest/gtest.h>

#include "apps/bare_passes.h"
#include "engine/testing/fake_engine.h"

namespace deepinfer {
namespace {

using testing::FakeEngine;

// A millisecond passes at every look.
class TickingClock : public Clock {
 public:
  MonotonicTime Now() const override { return {now_ns_ += 1'000'000}; }
  WallTime Wall() const override { return {}; }
  void SleepUntil(MonotonicTime when) override { now_ns_ = std::max(now_ns_, when.ns); }
  bool WaitUntil(std::unique_lock<std::mutex>&, std::condition_variable&, MonotonicTime,
                 const std::function<bool()>& ready) override {
    return ready();
  }

 private:
  mutable int64_t now_ns_ = 0;
};

TimedRequest At(double arrival_s, std::vector<int32_t> prompt, int32_t num_tokens) {
  return {.arrival_s = arrival_s, .request = FixedRequest(std::move(prompt), num_tokens)};
}

std::vector<int32_t> Prompt(int32_t length) {
  SeededRng rng(4);
  return DrawIds(length, 16, rng);
}

TEST(Serve, NotesWhenWhatHappened) {
  FakeEngine engine({});
  TickingClock clock;
  // The second prompt begins as the first; it arrives when the engine has been idle for long.
  const auto service = Serve(engine.core(), clock, {At(0, Prompt(130), 5), At(60, Prompt(140), 3)});
  ASSERT_TRUE(service.ok());
  const RequestTimes &first = service->requests[0], &second = service->requests[1];
  EXPECT_EQ(first.num_output, 5);
  EXPECT_EQ(second.num_output, 3);
  EXPECT_EQ(service->outputs[0].size(), 5u);
  EXPECT_EQ(service->num_output(), 8);
  EXPECT_EQ(first.num_cached, 0);
  EXPECT_EQ(second.num_cached, 128);
  EXPECT_DOUBLE_EQ(service->HitRate(), 128 / 270.0);
  EXPECT_LT(first.last_s, 60);
  EXPECT_GE(second.first_s, 60);
  EXPECT_EQ(second.arrival_s, 60);
  EXPECT_GT(first.Ttft(), 0);
  EXPECT_LT(second.Ttft(), 1);
  EXPECT_GT(first.Tpot(), 0);
  EXPECT_EQ(service->duration_s, second.last_s);
  EXPECT_EQ(std::ssize(service->step_times), engine.core().stats().steps);
}

TEST(Serve, TakesPeriodsOfAdjacentStepsOnly) {
  Service service;
  service.steps = {{1.0, 0}, {2.0, 2}, {2.5, 2}, {3.25, 2}, {4.0, 1}, {5.0, 2}, {6.0, 2}};
  EXPECT_EQ(service.Periods(2), (std::vector<double>{0.5, 0.75, 1.0}));
  EXPECT_EQ(service.Periods(1), std::vector<double>());
}

TEST(Serve, CountsOnlyItsOwnSteps) {
  FakeEngine engine({});
  TickingClock clock;
  ASSERT_TRUE(ServeAtOnce(engine.core(), clock, {FixedRequest(Prompt(20), 6)}).ok());
  const int64_t before = engine.core().stats().steps;
  const auto service = ServeAtOnce(engine.core(), clock, {FixedRequest(Prompt(20), 4)});
  ASSERT_TRUE(service.ok());
  EXPECT_EQ(std::ssize(service->step_times), engine.core().stats().steps - before);
}

TEST(Serve, ARequestThatFailsIsAnError) {
  FakeEngine engine({});
  engine.model().FailPass(2);
  TickingClock clock;
  EXPECT_EQ(ServeAtOnce(engine.core(), clock, {FixedRequest(Prompt(20), 6)}).status().code(),
            StatusCode::kInternal);
}

TEST(HalfTimer, SplitsPassesWhereTheDecoderBegins) {
  ModelConfig config;
  config.num_hidden_layers = 6;
  config.kv_source_layer_ids = {1, 4};
  TickingClock clock;
  HalfTimer timer(config, clock);
  for (int pass = 0; pass < 2; ++pass) {
    for (int32_t layer = 0; layer <= 6; ++layer) {
      if (layer == 5) clock.Now();  // the decoder takes twice as long
      timer.LayerInput(layer, {}, nullptr, nullptr);
    }
  }
  EXPECT_DOUBLE_EQ(timer.encoder_s(), 0.002);
  EXPECT_DOUBLE_EQ(timer.decoder_s(), 0.004);
  EXPECT_DOUBLE_EQ(timer.DecoderShare(), 2 / 3.0);
}

}  // namespace
}  // namespace deepinfer
