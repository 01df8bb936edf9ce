#include "apps/perplexity.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/testing/fake_engine.h"

namespace deepinfer {
namespace {

using testing::FakeEngine;
using testing::FakeOptions;

// Token 2 has the logit of the number of tokens before it, all others 0: what a token costs tells
// how much context it was scored with.
std::vector<float> CountingLogits(std::span<const int32_t> tokens) {
  std::vector<float> row(16, 0.0f);
  row[2] = static_cast<float>(tokens.size()) / 8;
  return row;
}

double CostWithContext(int32_t length) {
  const double logit = length / 8.0;
  return std::log(std::exp(logit) + 15) - logit;
}

PerplexityResult Measure(int32_t num_tokens, int32_t window, int32_t stride) {
  FakeOptions options;
  options.scheduler.max_model_len = 64;
  options.scheduler.max_num_seqs = 4;
  options.scheduler.max_num_batched_tokens = 16;
  options.scheduler.max_waiting = 3;  // fewer than there are windows
  options.logits = CountingLogits;
  FakeEngine engine(options);
  const std::vector<int32_t> tokens(static_cast<size_t>(num_tokens), 2);
  int64_t reported = 0;
  const auto result = MeasurePerplexity(
      engine.core(), tokens,
      {.window = window, .stride = stride, .progress = [&](int64_t n) { reported += n; }});
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(reported, num_tokens);
  return result.ok() ? *result : PerplexityResult{};
}

// Each token once, with the context of the first window that holds it.
double ByHand(int32_t num_tokens, int32_t window, int32_t stride) {
  double sum = 0;
  for (int32_t i = 0; i < num_tokens; ++i) {
    int32_t begin = 0;
    while (i >= begin + window - 1) begin += stride;
    sum += CostWithContext(1 + i - begin);
  }
  return sum;
}

TEST(Perplexity, ScoresEveryTokenOnceInItsFirstWindow) {
  for (const auto& [tokens, window, stride] :
       {std::tuple(10, 64, 32), {40, 16, 8}, {41, 16, 15}, {17, 2, 1}, {50, 20, 3}, {15, 16, 8}}) {
    const PerplexityResult result = Measure(tokens, window, stride);
    const double expected = ByHand(tokens, window, stride);
    EXPECT_EQ(result.num_tokens, tokens);
    EXPECT_NEAR(result.negative_log_likelihood, expected, 1e-9) << tokens << " " << window;
    EXPECT_NEAR(result.perplexity(), std::exp(expected / tokens), 1e-9);
  }
}

TEST(Perplexity, NothingToScoreIsAnError) {
  FakeEngine engine({});
  EXPECT_FALSE(MeasurePerplexity(engine.core(), {}, {}).ok());
}

}  // namespace
}  // namespace deepinfer
