// `bench throughput` from end to end, at the smallest sizes.
#include <nlohmann/json.hpp>

#include "command_runner.h"

namespace deepinfer {
namespace {

using nlohmann::json;
using testing::ReadFile;

using Throughput = testing::CommandTest;

TEST_F(Throughput, MeasuresEveryPart) {
  const std::string out = Output(
      "deepinfer bench throughput --json --max-model-len 330 --threads 2 --prompt-tokens 20 "
      "--decode-tokens 10 --batch-requests 3 --plan-requests 8 --load-requests 3 --mix chat "
      "--rate 50 --rate 90.5 --plot out.svg --log-level warning");
  const json bench = json::parse(out);
  for (const char* key : {"single_tokens_per_s", "batch_tokens_per_s", "dot_fraction",
                          "ttft_hit_ratio_bounded", "ttft_hit_ratio_exact", "single_step_fraction",
                          "plan_us_p99", "read_bytes_per_s", "macs_per_s"}) {
    ASSERT_TRUE(bench[key].is_number()) << key << "\n" << out;
    EXPECT_GT(bench[key].get<double>(), 0) << key;
  }
  ASSERT_TRUE(bench["plan_late_fraction"].is_number());
  EXPECT_GE(bench["plan_late_fraction"].get<double>(), 0);
  EXPECT_LE(bench["plan_late_fraction"].get<double>(), 1);
  // A prompt of whole pages and four tokens, of which the pages are found.
  for (const char* mode : {"exact", "bounded"}) {
    EXPECT_EQ(bench["hits"][mode]["prompt_tokens"], 324);
    EXPECT_EQ(bench["hits"][mode]["cached_tokens"], 320);
  }
  EXPECT_EQ(bench["cold_prefill"]["prompt_tokens"], 320);
  EXPECT_GT(bench["cold_prefill"]["decoder_share"].get<double>(), 0.1);
  EXPECT_LT(bench["cold_prefill"]["decoder_share"].get<double>(), 0.9);
  ASSERT_EQ(bench["load"].size(), 3u);  // at once, and two rates
  EXPECT_EQ(bench["load"][2]["arrivals_per_s"], 90.5);
  for (const json& load : bench["load"]) {
    EXPECT_GT(load["tokens_per_s"].get<double>(), 0);
    EXPECT_GE(load["ttft_s"]["p99"].get<double>(), load["ttft_s"]["p50"].get<double>());
    EXPECT_GT(load["tpot_s"]["p50"].get<double>(), 0);
  }
  EXPECT_NE(ReadFile(Path("out.svg")).find("chat: TTFT, ms"), std::string::npos);
}

TEST_F(Throughput, PartsThatDoNotRunAreNull) {
  const json bench = json::parse(Output(
      "deepinfer bench throughput --json --part single --decode-tokens 4 --prompt-tokens 8"));
  EXPECT_GT(bench["single_tokens_per_s"].get<double>(), 0);
  EXPECT_TRUE(bench["ttft_hit_ratio_exact"].is_null());
  EXPECT_TRUE(bench["plan_late_fraction"].is_null());
  EXPECT_TRUE(bench["load"].empty());
}

TEST_F(Throughput, MistakesAreOneLine) {
  EXPECT_NE(Error("deepinfer bench throughput --rate soon", 1).find("--rate: found \"soon\""),
            std::string::npos);
  EXPECT_NE(Error("deepinfer bench throughput --part single --plot x.svg", 1).find("--plot"),
            std::string::npos);
  EXPECT_NE(Error("deepinfer bench throughput --max-model-len 100", 1)
                .find("--max-model-len: found 100, bench throughput needs 128"),
            std::string::npos);
  EXPECT_NE(Error("deepinfer bench throughput --max-model-len 200 --prompt-tokens 150", 1)
                .find("--prompt-tokens and twice --decode-tokens: found 214"),
            std::string::npos);
  Error("deepinfer bench throughput --part everything", 2);
}

}  // namespace
}  // namespace deepinfer
