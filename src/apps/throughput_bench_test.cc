#include "apps/throughput_bench.h"

#include <gtest/gtest.h>

#include "apps/throughput_report.h"
#include "base/log.h"
#include "tokens/json.h"

namespace deepinfer {
namespace {

Matrix OfShape(WeightFormat format, int32_t rows, int32_t cols) {
  return {.format = format, .rows = rows, .cols = cols};
}

// One layer with two experts a token out of eight, one draft block, a head.
TEST(TokenWork, CountsWhatOneRowMultiplies) {
  ModelConfig config;
  config.hidden_size = 64;
  config.moe_intermediate_size = 32;
  config.num_experts_per_tok = 2;
  config.hc_mult = 4;
  ModelWeights weights;
  BlockWeights layer;
  layer.wq_a = OfShape(WeightFormat::kFp8, 32, 64);
  layer.gate = OfShape(WeightFormat::kBf16, 8, 64);
  layer.shared_experts = {OfShape(WeightFormat::kFp8, 32, 64), OfShape(WeightFormat::kFp8, 32, 64),
                          OfShape(WeightFormat::kFp8, 64, 32)};
  layer.experts.resize(8);  // how many there are plays no part
  weights.layers = {layer};
  BlockWeights draft = layer;
  draft.wkv = OfShape(WeightFormat::kFp8, 16, 64);
  weights.mtp = {draft};
  weights.main_proj = OfShape(WeightFormat::kFp8, 64, 192);
  weights.head = OfShape(WeightFormat::kBf16, 512, 64);

  const TokenWork work = CountTokenWork(config, weights);
  const int64_t hyper = 2 * (2 + 4) * 4 * 4 * 64, expert = 3 * 32 * 64;
  EXPECT_EQ(work.macs, hyper + 32 * 64 + 8 * 64 + 3 * expert + 64 * 192 + 16 * 64 + 512 * 64);
  // FP8: a byte and a scale for 32; FP4: half a byte and the same scale; BF16: two bytes.
  const int64_t fp8 = 32 * 64 + expert + 64 * 192 + 16 * 64, fp4 = 2 * expert;
  EXPECT_GE(work.bytes, 4 * hyper + fp8 + fp4 / 2 + 2 * (8 * 64 + 512 * 64));
  EXPECT_LE(work.bytes, work.macs * 4);
}

TEST(ThroughputOptions, NoPartMeansAll) {
  EXPECT_TRUE(ThroughputOptions{}.Runs("load"));
  const ThroughputOptions some = {.parts = {"single", "plan"}};
  EXPECT_TRUE(some.Runs("plan"));
  EXPECT_FALSE(some.Runs("load"));
}

TEST(ThroughputBench, ARateThatIsNoNumberIsNamed) {
  for (const std::string rate : {"fast", "-1", "0", "2x", "inf"}) {
    const auto bench =
        BenchThroughput({}, {.rates = {"1", rate}}, {{}, {}, RealDisk(), RealClock(), RealRng()});
    ASSERT_FALSE(bench.ok());
    EXPECT_EQ(MessageOf(bench.status()),
              "--rate: found \"" + rate + "\", expected requests/s above 0");
  }
}

LoadFigures Load(const std::string& mix, double rate, double ttft_p99) {
  LoadFigures figures{.mix = mix, .requests_per_s = rate, .tokens_per_s = 10 * rate};
  figures.ttft_s = {.p50 = 0.1, .p90 = 0.2, .p99 = ttft_p99};
  figures.tpot_s = {.p50 = 0.01, .p90 = 0.02, .p99 = 0.03};
  return figures;
}

TEST(ThroughputReport, FiguresFollowFromWhatWasMeasured) {
  ThroughputBench bench;
  bench.single.engine_token_s = 0.002;
  bench.single.bare_step_s = 0.0019;
  bench.batch.num_requests = 32;
  bench.batch.step_s = 0.008;
  bench.bounded_hit = {.prompt_tokens = 4100, .first_s = 2, .second_s = 0.1};
  bench.plans_in_time = 99;
  bench.plans_late = 1;
  const JsonValue json = ParseJson(ThroughputJson(bench)).value();
  const auto number = [&](const char* key) { return std::stod(json.Find(key)->text); };
  EXPECT_DOUBLE_EQ(number("single_tokens_per_s"), 500);
  EXPECT_DOUBLE_EQ(number("single_step_fraction"), 0.95);
  EXPECT_DOUBLE_EQ(number("batch_tokens_per_s"), 4000);
  EXPECT_DOUBLE_EQ(number("ttft_hit_ratio_bounded"), 0.05);
  EXPECT_DOUBLE_EQ(number("plan_late_fraction"), 0.01);
  EXPECT_DOUBLE_EQ(std::stod(json.Find("batch")->Find("times_single")->text), 8);
  // What was not measured is null, not zero.
  for (const char* key : {"ttft_hit_ratio_exact", "plan_us_p99", "dot_fraction"}) {
    ASSERT_NE(json.Find(key), nullptr) << key;
    EXPECT_TRUE(json.Find(key)->IsNull()) << key;
  }
}

TEST(ThroughputReport, TableLeavesOutWhatWasNotMeasured) {
  ThroughputBench bench;
  bench.batch = {.num_requests = 32, .step_s = 0.008, .dot_fraction = 0.5};
  const std::string alone = ThroughputTable(bench);
  EXPECT_NE(alone.find("32 requests together: 4000.0 tokens/s;"), std::string::npos) << alone;
  EXPECT_EQ(alone.find("nan"), std::string::npos) << alone;
  bench.single = {.prompt_tokens = 128, .engine_token_s = 0.002, .bare_step_s = 0.0019};
  bench.single.read_fraction = 0.5;
  const std::string both = ThroughputTable(bench);
  EXPECT_NE(both.find("8.00 times one"), std::string::npos) << both;
  EXPECT_NE(both.find("95.0 % of the engine's token"), std::string::npos) << both;
}

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(ThroughputReport, PlotHasACurveForEachPercentileAndMix) {
  ThroughputBench bench;
  bench.load = {Load("chat", 0, 9),  Load("chat", 1, 0.3),  Load("chat", 2, 0.6),
                Load("agent", 0, 9), Load("agent", 1, 0.3), Load("agent", 4, 0.4)};
  const std::string svg = ThroughputPlot(bench);
  EXPECT_TRUE(svg.starts_with("<svg "));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_EQ(Count(svg, "<polyline"), 14u);  // 3 + 3 + 1 a mix
  EXPECT_EQ(Count(svg, "<circle"), 28u);    // two rates each; not what arrived at once
  EXPECT_NE(svg.find("agent: TTFT, ms"), std::string::npos);
  // The highest value lies at the panel's top, the highest rate at its right.
  EXPECT_NE(svg.find("<circle cx=\"360\" cy=\"60\""), std::string::npos) << svg;
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

}  // namespace
}  // namespace deepinfer
