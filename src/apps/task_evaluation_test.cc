#include "apps/task_evaluation.h"

#include <gtest/gtest.h>

#include "apps/task_report.h"
#include "engine/testing/tiny_engine.h"
#include "eval/gloss_check.h"
#include "tokens/json.h"

namespace deepinfer {
namespace {

using testing::LoadTiny;
using testing::TinyDisk;

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

LoadedEngine& Engine() {
  static LoadedEngine* const engine = LoadTiny({.replay = "exact"}).release();
  return *engine;
}

StatusOr<Evaluation> Evaluate(TaskEvaluationOptions options) {
  options.seed = 3;
  if (options.max_answer_tokens == 0) options.max_answer_tokens = 12;
  return EvaluateTasks(Engine(), TinyDisk(), RealClock(), options);
}

double Number(const JsonValue& object, std::string_view key) {
  const JsonValue* const value = object.Find(key);
  EXPECT_TRUE(value != nullptr && value->kind == JsonValue::Kind::kNumber) << key;
  return value == nullptr ? NAN : std::stod(value->text);
}

// Random weights answer nothing right; what is counted must add up all the same.
TEST(TaskEvaluation, CountsItemsAnswersAndDrafts) {
  const Evaluation result = Evaluate({.tasks = {"arithmetic", "sums_3"},
                                      .num_items = 5,
                                      .num_draft_items = 3,
                                      .text = "The cat sat on the mat.",
                                      .text_name = "cat.txt"})
                                .value();
  ASSERT_EQ(result.tasks.size(), 2u);
  EXPECT_TRUE(result.skipped.empty());
  EXPECT_TRUE(result.IsSound());
  DraftScore sum;
  for (const TaskScore& task : result.tasks) {
    EXPECT_EQ(task.total, 5);
    EXPECT_EQ(task.num_in_training, 0);
    EXPECT_GT(task.num_prompt_tokens, 5 * 4);
    EXPECT_LE(task.num_answer_tokens, 5 * 12);
    EXPECT_EQ(task.draft.num_answers, 3);
    EXPECT_EQ(task.draft.num_different, 0);
    // A step gives its accepted drafts and one more token, unless the answer ended among them.
    EXPECT_LE(task.draft.num_tokens - 3, task.draft.num_steps + task.draft.num_accepted);
    sum.Add(task.draft);
  }
  EXPECT_EQ(result.draft.num_steps, sum.num_steps);
  EXPECT_EQ(result.draft.num_accepted, sum.num_accepted);
  int64_t judged = 0, accepted = 0;
  for (const Calibration& position : result.by_position) {
    judged += position.num_events();
    if (position.num_events() == 0) continue;
    accepted += std::llround(position.ShareHappened() * static_cast<double>(position.num_events()));
  }
  EXPECT_EQ(judged, result.confidence.num_events());
  EXPECT_EQ(accepted, result.draft.num_accepted);
  ASSERT_TRUE(result.perplexity.has_value());
  EXPECT_EQ(result.perplexity->text, "cat.txt");
  EXPECT_GT(result.perplexity->perplexity, 1);
  EXPECT_GT(result.load->num_tokens(), 0);
}

TEST(TaskEvaluation, WithoutATextStoriesOfItsOwnAreScored) {
  const Evaluation result = Evaluate({.tasks = {"copy"}, .num_items = 2}).value();
  ASSERT_TRUE(result.perplexity.has_value());
  EXPECT_EQ(result.perplexity->text, "2 stories of the evaluation's own");
  EXPECT_GT(result.perplexity->num_tokens, 2 * 20);
}

TEST(TaskEvaluation, OneSeedGivesOneReport) {
  const auto report = [] {
    Evaluation result = Evaluate({.tasks = {"copy"}, .num_items = 3, .text = "abc"}).value();
    result.seconds = {};
    return EvaluationJson(result);
  };
  EXPECT_EQ(report(), report());
}

TEST(TaskEvaluation, TasksThatCannotBeAskedAreSkippedOnlyIfNobodyAskedForThem) {
  const auto engine = LoadTiny({.max_model_len = 1024, .replay = "exact"});
  const auto evaluate = [&](std::vector<std::string> tasks) {
    return EvaluateTasks(*engine, TinyDisk(), RealClock(),
                         {.tasks = std::move(tasks),
                          .num_items = 1,
                          .max_answer_tokens = 1,
                          .text = "A short text."});
  };
  const Evaluation all = evaluate({}).value();
  const auto why = [&](std::string_view name) {
    for (const auto& [task, reason] : all.skipped) {
      if (task == name) return reason;
    }
    return std::string();
  };
  EXPECT_HAS(why("gloss"), "no gloss_check.tsv in /tiny");
  EXPECT_HAS(why("needle_4k"), "max_tokens");
  EXPECT_HAS(EvaluationTable(all), "gloss        skipped: no gloss_check.tsv");
  EXPECT_HAS(MessageOf(evaluate({"gloss"}).status()), "task gloss: no gloss_check.tsv");
  EXPECT_HAS(MessageOf(evaluate({"needle_4k"}).status()), "task needle_4k: ");
  EXPECT_HAS(MessageOf(evaluate({"arithmetik"}).status()),
             "--tasks: found \"arithmetik\", expected of: needle_4k, needle_8k, ");
}

TEST(TaskEvaluation, GlossesAreCheckedByTheFileBesideTheModel) {
  SimulatedDisk disk;
  std::vector<GlossCheck::Entry> entries;
  for (const char* word : {"cat", "house", "river", "song"}) {
    entries.push_back({.word = word, .hashes = ContentWordHashes("an animal with fur")});
  }
  const std::string path = StrCat(testing::kTinyDir, "/gloss_check.tsv");
  ASSERT_TRUE(disk.WriteText(path, GlossCheck(entries).Text()).ok());
  const auto evaluate = [&] {
    return EvaluateTasks(
        Engine(), disk, RealClock(),
        {.tasks = {"gloss"}, .num_items = 4, .seed = 1, .max_answer_tokens = 4, .text = "abc"});
  };
  const Evaluation result = evaluate().value();
  ASSERT_EQ(result.tasks.size(), 1u);
  EXPECT_EQ(result.tasks[0].total, 4);
  EXPECT_FALSE(result.tasks[0].split_by_key);
  EXPECT_HAS(EvaluationTable(result), "split check         0 items");
  ASSERT_TRUE(disk.WriteText(path, "cat\n").ok());
  EXPECT_HAS(MessageOf(evaluate().status()), path);
}

// What is not sound shows, whichever of the two it is.
TEST(TaskEvaluation, TrainingItemsAndDifferentAnswersAreUnsound) {
  Evaluation result;
  result.tasks.push_back({.name = "copy", .total = 4, .right_exact = 3, .right_bounded = 1});
  EXPECT_TRUE(result.IsSound());
  result.tasks[0].num_in_training = 1;
  EXPECT_FALSE(result.IsSound());
  result.tasks[0].num_in_training = 0;
  result.draft.num_different = 1;
  EXPECT_FALSE(result.IsSound());
  EXPECT_HAS(EvaluationTable(result), "1 of 0 answers are not the engine's");
}

TEST(TaskEvaluation, JsonHasTheNamesOfTheIssue) {
  Evaluation result;
  result.tasks.push_back({.name = "needle_4k", .total = 4, .right_exact = 3, .right_bounded = 1});
  result.has_drafts = true;
  result.draft = {.num_answers = 2, .num_steps = 10, .num_accepted = 25, .num_tokens = 36};
  result.by_position.resize(1);
  for (int i = 0; i < 10; ++i) {
    result.confidence.Add(0.9, i < 8);
    result.by_position[0].Add(0.9, i < 8);
  }
  result.perplexity = {.text = "a.txt", .perplexity = 4.5, .num_tokens = 7};
  const JsonValue json = ParseJson(EvaluationJson(result)).value();
  const JsonValue& task = *json.Find("tasks")->Find("needle_4k");
  EXPECT_EQ(Number(task, "right"), 3);
  EXPECT_EQ(Number(task, "total"), 4);
  EXPECT_EQ(Number(task, "exact"), 0.75);
  EXPECT_EQ(Number(task, "bounded"), 0.25);
  EXPECT_EQ(Number(json, "accepted_length"), 3.4);
  EXPECT_NEAR(Number(json, "confidence_ece"), 0.1, 1e-9);
  EXPECT_EQ(Number(json, "perplexity"), 4.5);
  result.draft = {};
  result.confidence = {};
  result.perplexity.reset();
  const JsonValue empty = ParseJson(EvaluationJson(result)).value();
  for (const char* key : {"accepted_length", "confidence_ece", "perplexity"}) {
    ASSERT_NE(empty.Find(key), nullptr) << key;
    EXPECT_TRUE(empty.Find(key)->IsNull()) << key;
  }
}

}  // namespace
}  // namespace deepinfer
