// The bundled model, models/nano, as every command's default.
#include <nlohmann/json.hpp>

#include "command_runner.h"

namespace deepinfer {
namespace {

using testing::CommandTest;

class BundledModel : public CommandTest {
 protected:
  std::string Run(const std::string& line) {
    return Output("unset DEEPINFER_HF_MODEL_DIR; deepinfer " + line);
  }
};

const std::filesystem::path kFolder = std::string(DI_SOURCE_DIR) + "/models/nano";

TEST_F(BundledModel, TakesLessThan24MiB) {
  uintmax_t size = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kFolder)) {
    const bool made_here = entry.path().filename() == "engram_classes.cache.bin";
    if (entry.is_regular_file() && !made_here) size += entry.file_size();
  }
  EXPECT_GT(size, uintmax_t{20} << 20);
  EXPECT_LE(size, uintmax_t{24} << 20);
}

TEST_F(BundledModel, ComesWithTheNoticesOfItsSources) {
  const std::string notices = testing::ReadFile(kFolder / "NOTICES.md");
  EXPECT_NE(notices.find("WordNet 3.1 Copyright 2011 by Princeton University"), std::string::npos);
}

// The answers that the README promises, greedy.
TEST_F(BundledModel, AnswersWhenNoModelIsGiven) {
  const auto answer = [this](const std::string& question) {
    return Run("generate --chat --temperature 0 --prompt " + testing::Quote(question));
  };
  EXPECT_EQ(answer("What is 47 + 38?"), "85\n");
  EXPECT_EQ(answer("Which number is the largest: 17, 93, 48?"), "93\n");
  EXPECT_NE(answer("What is a dog?").find("domesticated"), std::string::npos);
  EXPECT_NE(answer("Who are you?").find("Nano"), std::string::npos);
}

TEST_F(BundledModel, ThinkingIsLeftOutOfPipedTextAndKeptInJson) {
  const std::string ask = "generate --chat --temperature 0 --prompt 'What is 47 + 38?'";
  EXPECT_EQ(Run(ask + " --effort none"), "85\n");
  EXPECT_EQ(Run(ask), "85\n");
  EXPECT_EQ(Output("unset DEEPINFER_HF_MODEL_DIR; printf 'What is 47 + 38?\n' | deepinfer chat "
                   "--temperature 0"),
            "85\n");
  const std::string json = Run(ask + " --json");
  EXPECT_NE(json.find("\"reasoning_content\""), std::string::npos) << json;
  EXPECT_NE(json.find("\"content\": \"85\""), std::string::npos) << json;
}

TEST_F(BundledModel, CallsAToolThatFits) {
  Write("messages.json", R"({"messages": [{"role": "user", "content":
      "Please send a message to Anna saying 'the train is late'."}],
    "tools": [{"type": "function", "function": {"name": "send_message",
      "description": "Send a message.", "parameters": {"type": "object", "properties": {
        "to": {"type": "string"}, "text": {"type": "string"}}, "required": ["to", "text"]}}}]})");
  const std::string json =
      Run("generate --messages messages.json --temperature 0 --effort none --json");
  EXPECT_NE(json.find("\"name\": \"send_message\""), std::string::npos) << json;
  EXPECT_NE(json.find("Anna"), std::string::npos) << json;
}

TEST_F(BundledModel, InspectFindsNothingWrong) {
  EXPECT_NE(Run("inspect").find("models/nano"), std::string::npos);
}

TEST_F(BundledModel, EvalTasksGivesOneObjectAndRightAnswers) {
  Write("text.txt", "The farmer and the fox went to the river, and the fox told a story.");
  const std::string json =
      Run("eval tasks --tasks arithmetic,keyval --items 4 --seed 5 --text text.txt --json");
  for (const char* name : {"\"tasks\"", "\"arithmetic\"", "\"keyval\"", "\"accepted_length\"",
                           "\"confidence_ece\"", "\"perplexity\"", "\"bounded\""}) {
    EXPECT_NE(json.find(name), std::string::npos) << name << "\n" << json;
  }
  const auto tasks = nlohmann::json::parse(json)["tasks"];
  EXPECT_EQ(tasks["arithmetic"]["right"], 4) << json;
  EXPECT_EQ(tasks["keyval"]["right"], 4) << json;
}

TEST_F(BundledModel, WrongAnswersAreWrittenWithTheirPrompts) {
  Write("text.txt", "The farmer and the fox went to the river.");
  const auto result = nlohmann::json::parse(
      Run("eval tasks --tasks sort --items 40 --draft-items 1 --seed 5 --text text.txt --json "
          "--wrong wrong.jsonl"));
  const auto& sort = result["tasks"]["sort"];
  const auto lines = testing::Lines(testing::ReadFile(Path("wrong.jsonl")));
  EXPECT_EQ(std::ssize(lines), sort["total"].get<int>() - sort["right"].get<int>());
  ASSERT_FALSE(lines.empty());  // sorting is what this model is bad at
  const auto wrong = nlohmann::json::parse(lines[0]);
  EXPECT_EQ(wrong["task"], "sort");
  EXPECT_NE(wrong["prompt"].get<std::string>().find("<｜User｜>"), std::string::npos);
  EXPECT_EQ(wrong["answer"].get<std::string>().find(wrong["expected"].get<std::string>() + "<｜"),
            std::string::npos);
}

}  // namespace
}  // namespace deepinfer
