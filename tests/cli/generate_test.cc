// `deepinfer generate` from end to end.
#include <sys/mount.h>

#include <nlohmann/json.hpp>

#include "command_runner.h"

namespace deepinfer {
namespace {

using nlohmann::json;
using testing::CommandResult;
using testing::CommandTest;
using testing::Lines;

using Generate = CommandTest;

std::vector<json> JsonLines(const std::string& text) {
  std::vector<json> lines;
  for (const std::string& line : Lines(text)) lines.push_back(json::parse(line));
  return lines;
}

TEST_F(Generate, SameCommandTwiceGivesTheSameText) {
  const std::string command = "deepinfer generate --prompt Hello --max-tokens 24 --seed 1";
  const std::string text = Output(command);
  EXPECT_GT(text.size(), 5u);
  EXPECT_EQ(Output(command), text);
  EXPECT_EQ(Output(command + " --threads 1"), text);
  EXPECT_EQ(Output(command + " --max-num-batched-tokens 1 --max-num-seqs 1"), text);
  EXPECT_NE(Output("deepinfer generate --prompt Hello --max-tokens 24 --seed 2"), text);
}

TEST_F(Generate, ADrawnSeedIsToldAndRepeatsTheAnswer) {
  const std::string command = "deepinfer generate --prompt Hello --max-tokens 24";
  const CommandResult drawn = Shell(command);
  const size_t at = drawn.err.find("seed ");
  ASSERT_NE(at, std::string::npos) << drawn.err;
  EXPECT_EQ(Output(command + " --seed " + std::to_string(std::stoull(drawn.err.substr(at + 5)))),
            drawn.out);
}

TEST_F(Generate, SaysThatRandomWeightsAreNoise) {
  const CommandResult result = Shell("deepinfer generate --prompt a --max-tokens 2");
  EXPECT_NE(result.err.find("weights are random; text is noise"), std::string::npos);
  EXPECT_EQ(result.out.find("random"), std::string::npos);
}

TEST_F(Generate, ForcedTokensStopStringsAndIds) {
  const std::string abc =
      "deepinfer generate --prompt x --max-tokens 3 --forced-token-ids 113,114,115";
  EXPECT_EQ(Output(abc), "abc\n");
  EXPECT_EQ(Output(abc + " --stop bc"), "a\n");
  EXPECT_EQ(Output(abc + " --stop bc --include-stop"), "abc\n");
  EXPECT_EQ(Output(abc + " --stop-token-ids 114"), "a\n");
}

TEST_F(Generate, SeveralPromptsKeepTheirOrder) {
  const std::string flags = " --max-tokens 9 --seed 3";
  std::string expected;
  for (const std::string prompt : {"one", "two two two", "three"}) {
    expected += Output("deepinfer generate --prompt '" + prompt + "'" + flags);
  }
  EXPECT_EQ(Output("deepinfer generate --prompt one --prompt 'two two two' --prompt three" + flags),
            expected);
}

TEST_F(Generate, JsonlAnswersHaveTheirLinesAndReportTheirSeeds) {
  Write("in.jsonl", R"({"prompt":"Hi","max_tokens":5,"seed":7,"n":2,"id":"first"}

{"prompt_token_ids":[0,113,114],"max_tokens":4,"seed":8,"logprobs":2}
{"messages":[{"role":"user","content":"Hi"}],"max_tokens":4,"reasoning_effort":"none"}
)");
  const auto lines = JsonLines(Output("deepinfer generate --input in.jsonl"));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["id"], "first");
  EXPECT_EQ(lines[0]["seed"], 7);
  EXPECT_EQ(lines[0]["choices"].size(), 2u);
  EXPECT_EQ(lines[0]["choices"][1]["token_ids"].size(), 5u);
  EXPECT_EQ(lines[0]["usage"]["completion_tokens"], 10);
  EXPECT_EQ(lines[1]["line"], 3);
  EXPECT_EQ(lines[1]["choices"][0]["logprobs"][0]["top_logprobs"].size(), 2u);
  EXPECT_TRUE(lines[2].contains("seed"));
  EXPECT_TRUE(lines[2]["choices"][0].contains("content"));
  EXPECT_FALSE(lines[2]["choices"][0].contains("reasoning_content"));
  // The second choice is what its own seed gives.
  EXPECT_EQ(Output("deepinfer generate --prompt Hi --max-tokens 5 --seed 8"),
            lines[0]["choices"][1]["text"].get<std::string>() + "\n");
}

TEST_F(Generate, MoreLinesThanMayWaitAreAnsweredAll) {
  std::string lines;
  for (int i = 0; i < 9; ++i) {
    lines += R"({"prompt":"line )" + std::to_string(i) +
             R"(","max_tokens":3,"n":2,"seed":1})"
             "\n";
  }
  Write("in.jsonl", lines);
  const std::string all = Output("deepinfer generate --input in.jsonl");
  EXPECT_EQ(Lines(all).size(), 9u);
  EXPECT_EQ(Output("deepinfer generate --input in.jsonl --max-waiting 2 --max-num-seqs 2"), all);
  // Both choices of a line wait: with room for one alone every line is refused, and the reason
  // said.
  const auto refused =
      JsonLines(Shell("deepinfer generate --input in.jsonl --max-waiting 1 --max-num-seqs 2").out);
  ASSERT_EQ(refused.size(), 9u);
  EXPECT_NE(refused[8]["error"]["message"].get<std::string>().find("raise max_waiting"),
            std::string::npos);
  EXPECT_EQ(refused[8]["error"]["code"], "resource_exhausted");
}

// Who has the same tenant and salt finds what the line before computed; who has not, does not.
TEST_F(Generate, JsonlLinesHaveTenantsSaltsPrioritiesAndDeadlines) {
  const std::string ids = [] {
    std::string text = "[0";
    for (int i = 1; i < 100; ++i) text += "," + std::to_string(100 + i % 7);
    return text + "]";
  }();
  const auto line = [&](const std::string& fields) {
    return "{\"prompt_token_ids\":" + ids + ",\"max_tokens\":2,\"seed\":1," + fields + "}\n";
  };
  Write("in.jsonl", line(R"("tenant":"a")") + line(R"("tenant":"b")") +
                        line(R"("tenant":"a","cache_salt":"s")") + line(R"("tenant":"a")") +
                        line(R"("tenant":"a","priority":1001)") +
                        line(R"("tenant":"a","start_deadline_ms":9300000000000)") +
                        line(R"("tenant":7)"));
  const auto lines =
      JsonLines(Shell("deepinfer generate --input in.jsonl --max-num-seqs 1 --replay exact").out);
  ASSERT_EQ(lines.size(), 7u);
  for (const size_t first : {0u, 1u, 2u}) {
    EXPECT_EQ(lines[first]["usage"]["cached_tokens"], 0) << first;
  }
  EXPECT_EQ(lines[3]["usage"]["cached_tokens"], 64);
  const auto error = [&](size_t i) { return lines[i]["error"]["message"].get<std::string>(); };
  EXPECT_NE(error(4).find("priority: found 1001"), std::string::npos) << error(4);
  EXPECT_NE(error(5).find("start_deadline_ms: found 9300000000000"), std::string::npos);
  EXPECT_NE(error(6).find("tenant"), std::string::npos) << error(6);
}

TEST_F(Generate, StdinIsAnInputAndAFileIsAnOutput) {
  Write("in.jsonl", R"({"prompt":"Hi","max_tokens":5,"seed":7})");
  const std::string expected = Output("deepinfer generate --input in.jsonl");
  EXPECT_EQ(Output("deepinfer generate --input - < in.jsonl"), expected);
  EXPECT_EQ(Output("deepinfer generate --input in.jsonl --output out.jsonl"), "");
  EXPECT_EQ(testing::ReadFile(Path("out.jsonl")), expected);
}

TEST_F(Generate, case_R04_ABadLineIsAnErrorInItsPlace) {
  const std::vector<std::string> good = {R"({"prompt":"a","max_tokens":4,"seed":1})",
                                         R"({"prompt":"b","max_tokens":4,"seed":2})",
                                         R"({"prompt":"c","max_tokens":4,"seed":3})"};
  std::string all;
  for (const std::string& line : good) all += line + "\n";
  Write("good.jsonl", all);
  const auto expected = JsonLines(Output("deepinfer generate --input good.jsonl"));
  struct Bad {
    std::string line, message;
  };
  for (const Bad& bad : {Bad{"{\"prompt\":", "not JSON"},
                         Bad{R"({"prompt_token_ids":[0,512]})", "token 1 is id 512"},
                         Bad{R"({"prompt":"x","temperature":-1})", "temperature"}}) {
    for (size_t at = 0; at <= good.size(); ++at) {
      std::string text;
      for (size_t i = 0; i <= good.size(); ++i) {
        if (i == at) text += bad.line + "\n";
        if (i < good.size()) text += good[i] + "\n";
      }
      Write("in.jsonl", text);
      const CommandResult result = Shell("deepinfer generate --input in.jsonl");
      EXPECT_EQ(result.exit_code, 1);
      const auto lines = JsonLines(result.out);
      ASSERT_EQ(lines.size(), 4u);
      const std::string message = lines[at]["error"]["message"];
      EXPECT_TRUE(message.starts_with("line " + std::to_string(at + 1) + ": ")) << message;
      EXPECT_NE(message.find(bad.message), std::string::npos) << message;
      for (size_t i = 0; i < good.size(); ++i) {
        EXPECT_EQ(lines[i + (i >= at)]["choices"], expected[i]["choices"]);
      }
    }
  }
}

TEST_F(Generate, EveryFieldThatIsWrongIsNamed) {
  struct Wrong {
    std::string line, message;
  };
  const std::vector<Wrong> wrongs = {
      {R"({})", "exactly one of prompt, prompt_token_ids and messages"},
      {R"({"prompt":"a","messages":[]})", "exactly one of"},
      {R"({"prompt":3})", "prompt: expected"},
      {R"({"prompt_token_ids":["a"]})", "prompt_token_ids: expected an array of token ids"},
      {R"({"messages":[{"role":"king","content":""}]})", "messages[0].role"},
      {R"({"prompt":"a","max_tokens":1.5})", "max_tokens: expected a whole number"},
      {R"({"prompt":"a","max_tokens":-2})", "max_tokens: found -2"},
      {R"({"prompt":"a","top_p":"1"})", "top_p: expected a number"},
      {R"({"prompt":"a","top_p":0})", "top_p: found 0"},
      {R"({"prompt":"a","seed":-1})", "seed: expected a whole number"},
      {R"({"prompt":"a","stop":[1]})", "stop: expected a string or an array of strings"},
      {R"({"prompt":"a","stop":""})", "stop: "},
      {R"({"prompt":"a","ignore_eos":1})", "ignore_eos: expected true or false"},
      {R"({"prompt":"a","logit_bias":{"x":1}})",
       "logit_bias: expected an object of token id: bias"},
      {R"({"prompt":"a","logit_bias":{"1":101}})", "logit_bias: found 101"},
      {R"({"prompt":"a","n":0})", "n: found 0"},
      {R"({"prompt":"a","best_of":2})", "best_of: found 2"},
      {R"({"prompt":"a","logprobs":1001})", "logprobs: found 1001"},
      {R"({"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,x"}}]}]})",
       "takes text only"},
  };
  std::string text;
  for (const Wrong& wrong : wrongs) text += wrong.line + "\n";
  Write("in.jsonl", text);
  const CommandResult result = Shell("deepinfer generate --input in.jsonl");
  EXPECT_EQ(result.exit_code, 1);
  const auto lines = JsonLines(result.out);
  ASSERT_EQ(lines.size(), wrongs.size());
  for (size_t i = 0; i < wrongs.size(); ++i) {
    const std::string message = lines[i]["error"]["message"];
    EXPECT_TRUE(message.starts_with("line " + std::to_string(i + 1) + ": ")) << message;
    EXPECT_NE(message.find(wrongs[i].message), std::string::npos) << message;
    EXPECT_EQ(lines[i]["error"]["type"], "invalid_request_error");
  }
}

TEST_F(Generate, ChatIsAConversationOfOneTurn) {
  Write("m.json", R"([{"role":"user","content":"Hi"}])");
  const std::string flags = " --max-tokens 8 --seed 2 --json";  // the text alone has no thinking
  const std::string answer = Output("deepinfer generate --chat --prompt Hi" + flags);
  EXPECT_EQ(Output("deepinfer generate --messages m.json" + flags), answer);
  EXPECT_NE(Output("deepinfer generate --prompt Hi" + flags), answer);
  EXPECT_NE(Output("deepinfer generate --chat --prompt Hi --effort max" + flags), answer);
}

// A whole tool call, spelled by forced tokens: byte b is token 16 + b, 8 the DSML marker, 7 ends
// thinking.
TEST_F(Generate, AnswersOfAChatAreTakenApart) {
  std::string ids;
  const auto say = [&](const std::string& text) {
    for (const char c : text) ids += std::to_string(16 + static_cast<unsigned char>(c)) + ",";
  };
  const auto tag = [&](const std::string& before, const std::string& after) {
    say(before);
    ids += "8,";
    say(after);
  };
  say("why");
  ids += "7,";
  say("so");
  tag("\n\n<", " calls>\n");
  tag("<", " invoke name=\"f\">\n");
  tag("<", " parameter name=\"k\" string=\"true\">v");
  tag("</", " parameter>\n");
  tag("</", " invoke>\n");
  tag("</", " calls>");
  ids += "1";
  const json choice = JsonLines(Output(
      "deepinfer generate --chat --prompt Hi --json --forced-token-ids " + ids))[0]["choices"][0];
  EXPECT_EQ(choice["reasoning_content"], "why");
  EXPECT_EQ(choice["content"], "so");
  ASSERT_EQ(choice["tool_calls"].size(), 1u) << choice;
  EXPECT_EQ(choice["tool_calls"][0]["function"]["name"], "f");
  EXPECT_EQ(json::parse(choice["tool_calls"][0]["function"]["arguments"].get<std::string>()),
            json({{"k", "v"}}));
  EXPECT_EQ(choice["finish_reason"], "stop");
}

TEST_F(Generate, TextOutputKeepsThePlaceOfAFailedLine) {
  Write("in.jsonl",
        "{\"prompt_token_ids\":[0,113],\"forced_token_ids\":[113],\"max_tokens\":1}\n[]\n"
        "{\"prompt_token_ids\":[0,113],\"forced_token_ids\":[114],\"max_tokens\":1}\n");
  const CommandResult result = Shell("deepinfer generate --input in.jsonl --no-json");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "a\n\nb\n");
  EXPECT_NE(result.err.find("line 2: expected an object, found an array"), std::string::npos)
      << result.err;
}

TEST_F(Generate, case_R11_case_R24_LengthLimits) {
  EXPECT_EQ(Error("deepinfer generate --prompt a --max-model-len 1", 1),
            "deepinfer generate: max_model_len: found 1, expected at least 2 (one prompt token and "
            "one output token)");
  EXPECT_EQ(
      JsonLines(Output("deepinfer generate --token-ids 0 --max-model-len 2 --json"))[0]["choices"]
                                                                                    [0]["token_ids"]
                                                                                        .size(),
      1u);
  const std::string nine =
      "deepinfer generate --token-ids 0,20,21,22,23,24,25,26,27 --json "
      "--ignore-eos --max-model-len ";
  EXPECT_EQ(JsonLines(Output(nine + "11"))[0]["usage"]["completion_tokens"], 2);
  EXPECT_EQ(JsonLines(Output(nine + "10"))[0]["usage"]["completion_tokens"], 1);
  const CommandResult past = Shell(nine + "9");
  EXPECT_EQ(past.exit_code, 1);
  EXPECT_EQ(JsonLines(past.out)[0]["error"]["message"],
            "prompt: 9 tokens, at most 8 fit beside the output into max_model_len, 9");
}

TEST_F(Generate, WithoutATokenizerIdsGoInAndOut) {
  std::filesystem::remove(Path("tiny/tokenizer.json"));
  EXPECT_EQ(Output("deepinfer generate --token-ids 0,9 --max-tokens 3 --forced-token-ids 7,8,9"),
            "7 8 9\n");
  EXPECT_NE(Error("deepinfer generate --prompt a", 1).find("no tokenizer.json"), std::string::npos);
}

TEST_F(Generate, OptionsComeFromFlagsThenEnvironmentThenFile) {
  Write("a.toml", "max-tokens = 3\n[generate]\ntemperature = 0\n[chat]\nsystem = \"x\"\n");
  const auto ids = [&](const std::string& line) {
    return JsonLines(Output(line))[0]["choices"][0]["token_ids"].get<std::vector<int>>();
  };
  const auto greedy = ids("deepinfer generate --prompt a --json --config a.toml --seed 1");
  EXPECT_EQ(greedy.size(), 3u);
  EXPECT_EQ(ids("deepinfer generate --prompt a --json --config a.toml --seed 2"), greedy);
  EXPECT_EQ(ids("deepinfer generate --prompt a --json --config a.toml --max-tokens 2").size(), 2u);
  EXPECT_EQ(ids("export DEEPINFER_SAMPLER_FORCE_TOPK=1; deepinfer generate --prompt a --json "
                "--max-tokens 3 --seed 5"),
            greedy);
  EXPECT_NE(ids("export DEEPINFER_DECODE_TOKEN_BLACKLIST=" + std::to_string(greedy[0]) +
                "; deepinfer generate --prompt a --json --config a.toml"),
            greedy);
}

TEST_F(Generate, AFullDiskLeavesNothingHalfWritten) {
  std::filesystem::create_directory(Path("small"));
  if (mount("tmpfs", Path("small").c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "no right to mount a 1 MiB tmpfs here";
  }
  std::string prompt;
  for (int i = 0; i < 1500; ++i) prompt += "x ";
  Write("in.jsonl", "{\"prompt\":\"" + prompt + "\",\"max_tokens\":1,\"prompt_logprobs\":20}\n");
  const std::string command = "deepinfer generate --input in.jsonl --output ";
  const std::string error = Error(command + "small/out.jsonl", 1);
  EXPECT_NE(error.find("small/out.jsonl: cannot write: No space left on device"), std::string::npos)
      << error;
  EXPECT_TRUE(std::filesystem::is_empty(Path("small")));
  EXPECT_EQ(umount(Path("small").c_str()), 0);
  Output(command + "whole.jsonl");  // and it is the disk that was at fault
  EXPECT_GT(std::filesystem::file_size(Path("whole.jsonl")), 1u << 20);
}

TEST_F(Generate, AStdoutThatCannotBeWrittenIsAnError) {
  EXPECT_NE(
      Error("deepinfer generate --prompt a --max-tokens 4 > /dev/full", 1).find("No space left"),
      std::string::npos);
  const CommandResult closed =
      Shell("deepinfer generate --prompt a --max-tokens 4 | true; echo ${PIPESTATUS[0]}");
  EXPECT_TRUE(closed.out == "1\n" || closed.out == "0\n") << closed.out;  // never a signal
}

TEST_F(Generate, DevicesAreNoOutputFiles) {
  EXPECT_NE(Error("deepinfer generate --prompt a --output /dev/null", 1).find("no regular file"),
            std::string::npos);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST_F(Generate, CtrlCEndsItAndLeavesNoFile) {
  const CommandResult result =
      Shell("exec timeout --foreground --preserve-status -s INT 0.5 " DI_BINARY
            " generate --prompt a --max-tokens -1 --ignore-eos --output out.jsonl");
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_NE(result.err.find("deepinfer generate: interrupted"), std::string::npos);
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    EXPECT_FALSE(entry.path().filename().string().starts_with("out.jsonl")) << entry.path();
  }
}

}  // namespace
}  // namespace deepinfer
