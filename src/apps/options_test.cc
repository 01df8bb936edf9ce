#include "apps/options.h"

#include <gtest/gtest.h>

#include "apps/environment.h"
#include "base/simulated_disk.h"

namespace deepinfer {
namespace {

struct Values {
  int32_t max_tokens = 16;
  double temperature = 1.0;
  std::string model = "tiny";
  std::string mode = "exact";
  bool json = false;
  bool progress = true;
  std::optional<uint64_t> seed;
  std::vector<std::string> stop;
};

class OptionSetTest : public ::testing::Test {
 protected:
  OptionSetTest() : options_("generate", "Produces text.") {
    options_.Add({.flag = "model",
                  .environment = "DEEPINFER_HF_MODEL_DIR",
                  .help = "checkpoint",
                  .unit = "DIR",
                  .positional = true},
                 &values_.model);
    options_.Add({.flag = "max-tokens",
                  .environment = "DEEPINFER_TEST_TOKENS",
                  .help = "most tokens",
                  .unit = "tokens",
                  .min = 1,
                  .max = 1 << 20},
                 &values_.max_tokens);
    options_.Add({.flag = "temperature", .help = "spread", .min = 0}, &values_.temperature);
    options_.Add({.flag = "mode", .help = "replay", .choices = {"exact", "bounded"}},
                 &values_.mode);
    options_.Add({.flag = "json", .environment = "DEEPINFER_TEST_JSON", .help = "as JSON"},
                 &values_.json);
    options_.Add({.flag = "progress", .help = "shows progress"}, &values_.progress);
    options_.Add({.flag = "seed", .help = "of the noise"}, &values_.seed);
    options_.Add({.flag = "stop", .environment = "DEEPINFER_TEST_STOP", .help = "stop text"},
                 &values_.stop);
  }

  Status Parse(std::vector<std::string> arguments) {
    return options_.Parse(arguments, {environment_, disk_});
  }
  std::string Refusal(std::vector<std::string> arguments) {
    const Status status = Parse(std::move(arguments));
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    const std::string message = MessageOf(status);
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    return message;
  }

  Values values_;
  OptionSet options_;
  Environment environment_;
  SimulatedDisk disk_;
};

TEST_F(OptionSetTest, NothingGivenLeavesDefaults) {
  ASSERT_TRUE(Parse({}).ok());
  EXPECT_EQ(values_.max_tokens, 16);
  EXPECT_EQ(values_.seed, std::nullopt);
  EXPECT_EQ(options_.SourceOf("seed"), OptionSource::kDefault);
}

TEST_F(OptionSetTest, FlagBeatsEnvironmentBeatsFileBeatsDefault) {
  ASSERT_TRUE(disk_.WriteText("a.toml", "max-tokens = 2\n").ok());
  ASSERT_TRUE(Parse({"--config", "a.toml"}).ok());
  EXPECT_EQ(values_.max_tokens, 2);
  EXPECT_EQ(options_.SourceOf("max-tokens"), OptionSource::kFile);

  environment_["DEEPINFER_TEST_TOKENS"] = "3";
  ASSERT_TRUE(Parse({"--config", "a.toml"}).ok());
  EXPECT_EQ(values_.max_tokens, 3);
  EXPECT_EQ(options_.SourceOf("max-tokens"), OptionSource::kEnvironment);

  ASSERT_TRUE(Parse({"--config", "a.toml", "--max-tokens", "4"}).ok());
  EXPECT_EQ(values_.max_tokens, 4);
  EXPECT_EQ(options_.SourceOf("max-tokens"), OptionSource::kFlag);
}

TEST_F(OptionSetTest, ReadsEveryForm) {
  ASSERT_TRUE(Parse({"dir", "--temperature=0.25", "--mode", "bounded", "--json", "--no-progress",
                     "--seed", "18446744073709551615", "--stop", "a,b", "--stop", "-c"})
                  .ok());
  EXPECT_EQ(values_.model, "dir");
  EXPECT_EQ(values_.temperature, 0.25);
  EXPECT_EQ(values_.mode, "bounded");
  EXPECT_TRUE(values_.json);
  EXPECT_FALSE(values_.progress);
  EXPECT_EQ(values_.seed, UINT64_MAX);
  EXPECT_EQ(values_.stop, (std::vector<std::string>{"a,b", "-c"}));
}

TEST_F(OptionSetTest, PositionalMayBeGivenByItsFlag) {
  ASSERT_TRUE(Parse({"--model", "org/name"}).ok());
  EXPECT_EQ(values_.model, "org/name");
}

TEST_F(OptionSetTest, ReadsEveryFormFromTheFile) {
  ASSERT_TRUE(disk_
                  .WriteText("a.toml",
                             "temperature = 0.5\njson = true\nstop = ['x', 'y']\nseed = 7\n"
                             "[inspect]\nplan = true\n[generate]\ntemperature = 0.75\n")
                  .ok());
  ASSERT_TRUE(Parse({"--config", "a.toml"}).ok());
  EXPECT_EQ(values_.temperature, 0.75);  // the command's own table wins
  EXPECT_TRUE(values_.json);
  EXPECT_EQ(values_.stop, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(values_.seed, 7u);
}

TEST_F(OptionSetTest, RefusalNamesSourceValueAndRange) {
  EXPECT_EQ(Refusal({"--max-tokens", "0"}),
            "--max-tokens: found \"0\", expected a whole number, 1..1048576 tokens");
  EXPECT_EQ(Refusal({"--max-tokens", "1x"}),
            "--max-tokens: found \"1x\", expected a whole number, 1..1048576 tokens");
  EXPECT_EQ(Refusal({"--temperature", "nan"}),
            "--temperature: found \"nan\", expected a number, at least 0");
  EXPECT_EQ(Refusal({"--temperature", "inf"}),
            "--temperature: found \"inf\", expected a number, at least 0");
  EXPECT_EQ(Refusal({"--max-tokens", "1048577"}),
            "--max-tokens: found \"1048577\", expected a whole number, 1..1048576 tokens");
  EXPECT_EQ(Refusal({"--seed", "-1"}), "--seed: found \"-1\", expected a whole number");
  EXPECT_EQ(Refusal({"--mode", "fast"}), "--mode: found \"fast\", expected one of exact, bounded");
  EXPECT_EQ(Refusal({"--seed"}),
            "--seed: a value is missing; `deepinfer generate --help` lists the options");
  environment_["DEEPINFER_TEST_TOKENS"] = "many";
  EXPECT_EQ(Refusal({}),
            "DEEPINFER_TEST_TOKENS: found \"many\", expected a whole number, 1..1048576 tokens");
}

TEST_F(OptionSetTest, RefusalOfTheFileNamesTheLine) {
  ASSERT_TRUE(disk_.WriteText("a.toml", "seed = 1\nmax-tokens = 0\n").ok());
  EXPECT_EQ(Refusal({"--config", "a.toml"}),
            "a.toml:2: max-tokens: found \"0\", expected a whole number, 1..1048576 tokens");
  ASSERT_TRUE(disk_.WriteText("a.toml", "maxtokens = 1\n").ok());
  EXPECT_EQ(Refusal({"--config", "a.toml"}),
            "a.toml:1: maxtokens: no such option; `deepinfer generate --help` lists the options");
  ASSERT_TRUE(disk_.WriteText("a.toml", "seed = 1\nseed\n").ok());
  EXPECT_NE(Refusal({"--config", "a.toml"}).find("a.toml:2: not valid TOML"), std::string::npos);
  ASSERT_TRUE(disk_.WriteText("a.toml", "seed = 1979-05-27\n").ok());
  EXPECT_NE(Refusal({"--config", "a.toml"}).find("a.toml:1: seed: a text"), std::string::npos);
  ASSERT_TRUE(disk_.WriteText("a.toml", "stop = ['x', 1979-05-27]\n").ok());
  EXPECT_NE(Refusal({"--config", "a.toml"}).find("a.toml:1: stop: a text"), std::string::npos);
  EXPECT_EQ(Parse({"--config", "b.toml"}).code(), StatusCode::kNotFound);
}

TEST_F(OptionSetTest, OneBadValueLeavesAllTargetsAsTheyWere) {
  Refusal({"--model", "other", "--max-tokens", "0"});
  EXPECT_EQ(values_.model, "tiny");
}

TEST_F(OptionSetTest, UnknownAndRepeatedFlagsAreRefused) {
  EXPECT_NE(Refusal({"--max-token", "3"}).find("--max-token"), std::string::npos);
  EXPECT_NE(Refusal({"--max-tokens", "3", "--max-tokens", "4"}).find("max-tokens"),
            std::string::npos);
  EXPECT_NE(Refusal({"--max-tokens"}).find("--max-tokens"), std::string::npos);
}

TEST_F(OptionSetTest, SwitchInTheEnvironmentFollowsDeepInfersRule) {
  for (const char* off : {"0", "", "false", "False"}) {
    environment_["DEEPINFER_TEST_JSON"] = off;
    values_.json = true;
    ASSERT_TRUE(Parse({}).ok());
    EXPECT_FALSE(values_.json) << off;
  }
  environment_["DEEPINFER_TEST_JSON"] = "yes";
  ASSERT_TRUE(Parse({}).ok());
  EXPECT_TRUE(values_.json);
}

TEST_F(OptionSetTest, EmptyVariableCountsAsUnsetAndListsSplitAtCommas) {
  environment_ = {{"DEEPINFER_HF_MODEL_DIR", ""}, {"DEEPINFER_TEST_STOP", "a,,b"}};
  ASSERT_TRUE(Parse({}).ok());
  EXPECT_EQ(values_.model, "tiny");
  EXPECT_EQ(values_.stop, (std::vector<std::string>{"a", "", "b"}));
}

TEST_F(OptionSetTest, HelpShowsUnitsRangesDefaultsAndVariables) {
  ASSERT_TRUE(Parse({"--max-tokens", "5", "--help"}).ok());
  EXPECT_TRUE(options_.help_requested());
  EXPECT_EQ(values_.max_tokens, 16);
  const std::string help = options_.HelpText();
  EXPECT_NE(help.find("Usage: deepinfer generate [model] [options]"), std::string::npos) << help;
  EXPECT_NE(help.find("--max-tokens N              most tokens (tokens; 1..1048576; default 16; "
                      "also DEEPINFER_TEST_TOKENS)"),
            std::string::npos)
      << help;
  EXPECT_NE(help.find("--config FILE"), std::string::npos) << help;
}

TEST(Environment, ReportsOnlyNamesThatNobodyKnows) {
  const Environment environment = {{"DEEPINFER_USE_NEXTN_DECODE", "5"},
                                   {"DEEPINFER_OURS", "x"},
                                   {"DEEPINFER_HF_MODEL_DRI", "x"},
                                   {"HOME", "/"}};
  EXPECT_EQ(ReportUnusedNames(environment, {"DEEPINFER_OURS"}),
            std::set<std::string>{"DEEPINFER_HF_MODEL_DRI"});
}

TEST(Environment, HoldsTheVariablesOfThisProcess) {
  ASSERT_EQ(setenv("DI_ENVIRONMENT_TEST", "a=b", 1), 0);
  EXPECT_EQ(ProcessEnvironment().at("DI_ENVIRONMENT_TEST"), "a=b");
}

}  // namespace
}  // namespace deepinfer
