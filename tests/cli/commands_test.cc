// The other commands, and what every command does with bad input.
#include <cmath>
#include <nlohmann/json.hpp>

#include "command_runner.h"

namespace deepinfer {
namespace {

using nlohmann::json;
using testing::CommandResult;
using testing::CommandTest;
using testing::Lines;

using Commands = CommandTest;
using BadInput = CommandTest;
using Chat = CommandTest;
using Eval = CommandTest;

TEST_F(Commands, HelpListsUnitsAndDefaults) {
  EXPECT_NE(Output("deepinfer --help").find("generate"), std::string::npos);
  for (const std::string command : {"generate", "chat", "eval", "inspect", "selftest", "verify"}) {
    const std::string help = Output("deepinfer " + command + " --help");
    EXPECT_TRUE(help.starts_with("Usage: deepinfer " + command)) << help;
  }
  const std::string help = Output("deepinfer generate --help");
  EXPECT_NE(help.find("default 256"), std::string::npos);
  EXPECT_NE(help.find("DEEPINFER_HF_MODEL_DIR"), std::string::npos);
}

TEST_F(Commands, VersionSaysHowItWasBuilt) {
  const auto lines = Lines(Output("deepinfer --version"));
  ASSERT_GE(lines.size(), 2u);
  EXPECT_TRUE(lines[0].starts_with("deepinfer "));
  EXPECT_NE(lines[1].find("CPU"), std::string::npos);
}

TEST_F(Commands, SelftestIsGreenAndShowsEveryFigure) {
  const json report = json::parse(Output("deepinfer selftest --json"));
  EXPECT_TRUE(report["pass"]);
  EXPECT_GE(report["figures"].size(), 20u);
  const std::string text = Output("deepinfer selftest");
  EXPECT_NE(text.find(std::to_string(report["figures"].size()) + " passed, 0 failed"),
            std::string::npos);
}

TEST_F(Commands, VerifyIsGreenAndEveryRowSawWhatItIsAbout) {
  const json report = json::parse(
      Output("deepinfer verify --json --requests 4 --output-tokens 8 --log-level warning"));
  EXPECT_EQ(report["failed"], 0) << report.dump(1);
  EXPECT_GE(report["checks"].size(), 12u);
  for (const json& check : report["checks"]) {
    EXPECT_TRUE(check["ok"]) << check.dump();
    EXPECT_EQ(check["tokens"], 4 * 8) << check.dump();
  }
  EXPECT_NE(Output("deepinfer verify --requests 5 --output-tokens 9").find("0 failed"),
            std::string::npos);
}

TEST_F(Commands, SelftestComparesWithAGoldenFolder) {
  const CommandResult result =
      Shell("deepinfer selftest --json --golden " DI_SOURCE_DIR "/tests/golden/tiny");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const json report = json::parse(result.out);
  EXPECT_TRUE(report["pass"]);
  EXPECT_FALSE(report["not_run"].empty());
  EXPECT_NE(Error("deepinfer selftest --golden nowhere", 1).find("nowhere"), std::string::npos);
}

TEST_F(Commands, SelftestComparesWithARunThatItRecorded) {
  std::filesystem::create_directory(Path("own"));
  std::filesystem::rename(Path("tiny"), Path("own/checkpoint"));
  const std::string record = "deepinfer selftest --record own";
  const std::string golden = " --prompt-of " DI_SOURCE_DIR "/tests/golden/tiny";
  EXPECT_NE(Output(record + golden).find("45 tensors, the 72 prompt tokens of "),
            std::string::npos);
  EXPECT_NE(Output("deepinfer selftest --golden own").find(" passed, 0 failed"), std::string::npos);
  EXPECT_NE(Error(record, 1).find("own/outputs.safetensors: is there already"), std::string::npos);
  EXPECT_NE(Error(record + " --golden own", 1).find("one at a time"), std::string::npos);
}

TEST_F(Commands, InspectCountsAndFindsDamage) {
  const json report = json::parse(Output("deepinfer inspect tiny --json"));
  EXPECT_EQ(report["expected"]["total"]["tensors"], 852);
  std::filesystem::resize_file(Path("tiny/model-00002-of-00003.safetensors"), 5000);
  EXPECT_EQ(Shell("deepinfer inspect tiny --json").exit_code, 1);
  EXPECT_NE(Error("deepinfer generate --prompt a", 1).find("model-00002"), std::string::npos);
}

TEST_F(Commands, InspectPlansWhatAnEngineWithTheseFlagsTakes) {
  const std::string plan = "deepinfer inspect tiny --plan 8GiB --swa-slots 5 --max-num-seqs 3 ";
  const json engine = json::parse(Output(plan + "--json"))["plan"]["engine"];
  int64_t sum = 0;
  for (const auto& [name, value] : engine.items()) {
    if (name.ends_with("_bytes") && name != "total_bytes" && name != "index_scratch_bytes") {
      sum += value.get<int64_t>();
    }
  }
  EXPECT_EQ(sum, engine["total_bytes"]);
  EXPECT_GT(engine["packed_weights_bytes"], 1'000'000);
  EXPECT_EQ(engine["swa_slots_bytes"].get<int64_t>() % 5, 0);
  const std::string text = Output(plan);
  EXPECT_NE(text.find("SWA slots"), std::string::npos) << text;
  EXPECT_NE(text.find(std::to_string(sum) + " bytes"), std::string::npos) << text;
  EXPECT_NE(Error(plan + "--experts disk", 1).find("--weights-cache"), std::string::npos);
}

TEST_F(Commands, TheExampleAnswersThroughThePublicApi) {
  const std::string command = std::string(DI_EXAMPLE) + " tiny Hello World";
  const std::string text = Output(command);
  EXPECT_NE(text.find("prompt: World\nanswer: "), std::string::npos);
  EXPECT_EQ(Output(command), text);
  EXPECT_EQ(Shell(std::string(DI_EXAMPLE) + " nowhere").exit_code, 1);
}

// ---- bad input: one line, an exit code

TEST_F(BadInput, CommandsFlagsAndValues) {
  EXPECT_NE(Error("deepinfer foo", 2).find("no command \"foo\""), std::string::npos);
  EXPECT_NE(Error("deepinfer generate --foo", 2).find("--foo"), std::string::npos);
  EXPECT_NE(Error("deepinfer generate", 2).find("--prompt"), std::string::npos);
  EXPECT_NE(Error("deepinfer generate --prompt a --temperature 101", 2).find("0..100"),
            std::string::npos);
  EXPECT_NE(Error("deepinfer generate --prompt a --top-p 0", 1).find("top_p"), std::string::npos);
  EXPECT_NE(Error("deepinfer generate --prompt a --logit-bias 3", 1).find("ID:BIAS"),
            std::string::npos);
  EXPECT_NE(Error("deepinfer generate --token-ids 1,x", 1).find("1,2,3"), std::string::npos);
  EXPECT_NE(Error("deepinfer generate --prompt a --effort 0", 1).find("--effort"),
            std::string::npos);
  EXPECT_NE(Error("deepinfer eval", 2).find("eval ppl FILE"), std::string::npos);
  EXPECT_NE(Error("deepinfer generate --prompt a --max-waiting 2000000000", 2).find("1..65536"),
            std::string::npos);
  EXPECT_NE(Error("deepinfer verify --output-tokens 2000000000", 2).find("8..1048576"),
            std::string::npos);
  // The rows of `verify` say how requests are run; a flag that they override is not taken.
  EXPECT_NE(Error("deepinfer verify --max-num-seqs 3", 2).find("--max-num-seqs"),
            std::string::npos);
  EXPECT_NE(Error("DEEPINFER_ACCELERATOR=ascend deepinfer generate --prompt a", 2).find("ascend"),
            std::string::npos);
}

TEST_F(BadInput, ModelsThatAreNotThere) {
  EXPECT_NE(Error("deepinfer generate --prompt a --model nowhere", 1).find("nowhere"),
            std::string::npos);
  std::filesystem::create_directory(Path("empty"));
  EXPECT_NE(Error("deepinfer chat --model empty", 1).find("empty"), std::string::npos);
  std::filesystem::create_directory(Path("hub"));
  const std::string cache =
      Error("HF_HUB_CACHE=$PWD/hub deepinfer generate --prompt a --model org/name", 1);
  EXPECT_NE(cache.find("hub"), std::string::npos) << cache;
  EXPECT_NE(cache.find("org/name"), std::string::npos) << cache;
}

TEST_F(BadInput, FilesThatCannotBeRead) {
  EXPECT_NE(Error("deepinfer generate --input nowhere.jsonl", 1).find("nowhere.jsonl"),
            std::string::npos);
  EXPECT_NE(Error("deepinfer generate --prompt a --config nowhere.toml", 2).find("nowhere.toml"),
            std::string::npos);
  Write("bad.toml", "max-tokens = \n");
  EXPECT_NE(Error("deepinfer generate --prompt a --config bad.toml", 2).find("bad.toml"),
            std::string::npos);
  Write("bad.json", "[{\"role\":\"king\",\"content\":\"x\"}]");
  EXPECT_NE(Error("deepinfer generate --messages bad.json", 1).find("bad.json: messages[0].role"),
            std::string::npos);
  EXPECT_NE(
      Error("deepinfer generate --prompt a --output nowhere/out.txt", 1).find("nowhere/out.txt"),
      std::string::npos);
  Write("tiny/tokenizer.json", "{}");
  EXPECT_NE(Error("deepinfer generate --prompt a", 1).find("tokenizer.json"), std::string::npos);
}

TEST_F(BadInput, ChatSaysWhatIsMissing) {
  std::filesystem::remove_all(Path("tiny/encoding"));
  EXPECT_NE(Error("deepinfer chat", 1).find("encoding/"), std::string::npos);
  Output("deepinfer generate --prompt a --max-tokens 2");  // plain text needs none
}

// ---- chat

TEST_F(Chat, PipedLinesAreTurnsAndResetForgets) {
  const auto answers = [&](const std::string& input) {
    return Output("printf '" + input +
                  "' | deepinfer chat --effort none --max-tokens 12 --seed 4 --log-level warning");
  };
  const std::string one = answers("Hi\\n");
  EXPECT_GT(one.size(), 1u);
  EXPECT_EQ(answers("Hi\\n/reset\\nHi\\n/quit\\nnever read\\n"), one + one);
  EXPECT_NE(answers("Hi\\nHi\\n"), one + one);  // the second turn knows the first
  EXPECT_NE(answers("/system Be brief\\nHi\\n"), one);
  EXPECT_EQ(answers("/system Be brief\\nHi\\n/system\\nHi\\n")
                .substr(answers("/system Be brief\\nHi\\n").size()),
            one);
}

TEST_F(Chat, ThinkingCanBeLeftOut) {
  // The answer begins inside the thinking; nothing closes it in these few tokens.
  EXPECT_EQ(Output("printf 'Hi\\n' | deepinfer chat --forced-token-ids 113,114 --max-tokens 2 "
                   "--show-thinking"),
            "ab\n");
  EXPECT_EQ(Output("printf 'Hi\\n' | deepinfer chat --forced-token-ids 113,7,114 --max-tokens 3 "
                   "--show-thinking"),
            "a\n\nb\n");
  EXPECT_EQ(Output("printf 'Hi\\n' | deepinfer chat --forced-token-ids 113,7,114 --max-tokens 3"),
            "b\n");  // not asked for, and no terminal
  EXPECT_EQ(Output("printf 'Hi\\n' | deepinfer chat --forced-token-ids 113,7,114 --max-tokens 3 "
                   "--no-show-thinking"),
            "b\n");
  EXPECT_EQ(Output("printf 'Hi\\n' | deepinfer chat --forced-token-ids 113,114 --max-tokens 2 "
                   "--effort none --no-show-thinking"),
            "ab\n");
}

// The signal comes when the answer has begun, and the next line when it has ended.
TEST_F(Chat, CtrlCStopsTheAnswerOnly) {
  const CommandResult result = Shell(
      "mkfifo in; env --default-signal=INT " DI_BINARY
      " chat --ignore-eos --max-tokens 3000 --show-thinking <in >out 2>err & chat=$!; exec 3>in; "
      "echo Hi >&3; while [ ! -s out ] && kill -0 $chat; do sleep 0.01; done; kill -s INT $chat; "
      "while ! grep -q ' tokens in ' err && kill -0 $chat; do sleep 0.01; done; "
      "echo /help >&3; echo /quit >&3; wait $chat; code=$?; cat out; cat err >&2; exit $code");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("; stopped"), std::string::npos) << result.err;
  EXPECT_NE(result.out.find("/reset"), std::string::npos) << "it went on listening";
}

TEST_F(Chat, ATurnThatDoesNotFitIsToldAndForgotten) {
  const CommandResult result = Shell(
      "printf 'Hi\\n%0500d\\nHi\\n' 0 | deepinfer chat --max-model-len 120 --max-tokens 3 --seed "
      "1");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err.find("deepinfer chat: prompt: "),
            result.err.rfind("deepinfer chat: prompt: "));
  EXPECT_NE(result.err.find("max_model_len, 120"), std::string::npos) << result.err;
}

// ---- eval

TEST_F(Eval, PerplexityIsThatOfThePromptLogprobs) {
  const std::string text = "The quick brown fox jumps over the lazy dog.";
  Write("a.txt", text);
  const json report = json::parse(Output("deepinfer eval ppl a.txt --json"));
  const json scored = json::parse(Output(
      "deepinfer generate --json --max-tokens 0 --prompt-logprobs 0 --prompt '" + text + "'"));
  double sum = 0;
  for (size_t i = 1; i < scored["prompt_logprobs"].size(); ++i) {
    sum -= scored["prompt_logprobs"][i]["logprob"].get<double>();
  }
  const auto count = static_cast<double>(scored["prompt_logprobs"].size() - 1);
  EXPECT_EQ(report["tokens"], count);
  EXPECT_NEAR(report["perplexity"].get<double>(), std::exp(sum / count),
              1e-6 * std::exp(sum / count));
  EXPECT_NEAR(report["bits_per_byte"].get<double>(),
              sum / std::log(2) / static_cast<double>(text.size()), 1e-9);
}

TEST_F(Eval, WindowsScoreEveryTokenOnce) {
  std::string text;
  for (int i = 0; i < 120; ++i) text += "word " + std::to_string(i) + " ";
  Write("a.txt", text);
  const json whole = json::parse(Output("deepinfer eval ppl a.txt --json"));
  for (const std::string flags :
       {"--window 2 --stride 1", "--window 64 --stride 63", "--window 65 --stride 7"}) {
    const json report = json::parse(Output("deepinfer eval ppl a.txt --json " + flags));
    EXPECT_EQ(report["tokens"], whole["tokens"]) << flags;
    EXPECT_GT(report["computed_tokens"], report["tokens"]);
    EXPECT_GT(report["perplexity"], 1.0);
  }
  EXPECT_NE(Error("deepinfer eval ppl a.txt --window 9 --stride 9", 1).find("--stride"),
            std::string::npos);
  EXPECT_NE(Error("deepinfer eval ppl a.txt --window 5000", 1).find("--window"), std::string::npos);
  EXPECT_NE(Error("deepinfer eval ppl nowhere.txt", 1).find("nowhere.txt"), std::string::npos);
  Write("empty.txt", "");
  EXPECT_NE(Error("deepinfer eval ppl empty.txt", 1).find("empty.txt: the text has no tokens"),
            std::string::npos);
}

TEST_F(Eval, TasksPrintsOneObjectWithWhatWasCounted) {
  Write("a.txt", "A text that nobody was trained on.");
  const std::string small =
      "deepinfer eval tasks --items 3 --max-answer-tokens 4 --text a.txt --log-level warning";
  const json report = json::parse(Output(small + " --tasks arithmetic,copy --json"));
  ASSERT_EQ(report["tasks"].size(), 2u);
  for (const char* name : {"arithmetic", "copy"}) {
    const json& task = report["tasks"][name];
    EXPECT_EQ(task["total"], 3);
    EXPECT_EQ(task["items_in_training"], 0);
    EXPECT_EQ(task["exact"].get<double>(), task["right"].get<double>() / 3);
    EXPECT_GE(task["bounded"], 0);
  }
  EXPECT_GE(report["accepted_length"], 1.0);
  EXPECT_GE(report["confidence_ece"], 0.0);
  EXPECT_GT(report["perplexity"], 1.0);
  EXPECT_EQ(report["draft"]["different_answers"], 0);
  EXPECT_TRUE(report["seed_of_weights"]);
  const json again = json::parse(Output(small + " --tasks copy --json"));
  EXPECT_EQ(again["seed"], report["seed"]);
  EXPECT_EQ(again["tasks"]["copy"], report["tasks"]["copy"]);  // whatever else is asked
  EXPECT_NE(Output(small + " --tasks copy --seed 5").find("seed 5\n"), std::string::npos);
}

TEST_F(Eval, TasksRefusesInOneLine) {
  const auto refusal = [&](const std::string& flags, int code) {
    return Error("deepinfer eval tasks " + flags, code);
  };
  EXPECT_NE(refusal("--tasks arithmetic,jason", 2).find("found \"jason\", expected of: needle_4k"),
            std::string::npos);
  EXPECT_NE(refusal("--replay bounded", 2).find("--replay"), std::string::npos);  // runs both
  EXPECT_NE(refusal("--text nowhere.txt", 1).find("nowhere.txt"), std::string::npos);
  EXPECT_NE(refusal("--tasks gloss", 1).find("task gloss: no gloss_check.tsv"), std::string::npos);
  const std::string help = Output("deepinfer eval tasks --help");
  EXPECT_NE(help.find("--max-answer-tokens"), std::string::npos);
  EXPECT_NE(help.find("tokens"), std::string::npos);
}

}  // namespace
}  // namespace deepinfer
