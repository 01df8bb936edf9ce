#include "apps/task_items.h"

#include <gtest/gtest.h>

#include <set>

#include "engine/testing/tiny_engine.h"
#include "eval/operation.h"

namespace deepinfer {
namespace {

using testing::LoadTiny;

const LoadedEngine& Engine() {
  static const LoadedEngine* const engine = LoadTiny({.replay = "exact"}).release();
  return *engine;
}

const TaskKind& Arithmetic() { return *FindTask("arithmetic"); }

std::vector<std::string> Keys(const TaskItems& items) {
  std::vector<std::string> keys;
  for (const TaskItem& item : items.items) keys.push_back(item.exercise.key);
  return keys;
}

TEST(TaskItems, ASeedGivesTheSameHeldOutItemsEachOnce) {
  const TaskItems first = DrawItems(Arithmetic(), Engine(), {.num_items = 200, .seed = 7}).value();
  ASSERT_EQ(first.items.size(), 200u);
  EXPECT_EQ(first.num_in_training, 0);
  const std::vector<std::string> keys = Keys(first);
  EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()).size(), 200u);
  for (const std::string& key : keys) EXPECT_EQ(SplitOf(kOperationKeys, key), Split::kHeldOut);
  EXPECT_EQ(Keys(DrawItems(Arithmetic(), Engine(), {.num_items = 200, .seed = 7}).value()), keys);
  EXPECT_NE(Keys(DrawItems(Arithmetic(), Engine(), {.num_items = 200, .seed = 8}).value()), keys);
}

TEST(TaskItems, AsksForTheLastAnswerWithThinkingAsTheKindSays) {
  for (const char* name : {"arithmetic", "sums_3"}) {
    const TaskKind& kind = *FindTask(name);
    const TaskItems drawn = DrawItems(kind, Engine(), {.num_items = 3, .seed = 1}).value();
    int64_t num_tokens = 0;
    for (const TaskItem& item : drawn.items) {
      EXPECT_EQ(item.prompt.in_thinking, kind.thinks) << name;
      Conversation question = item.exercise.conversation;
      EXPECT_EQ(question.messages.back().role, Role::kAssistant);
      question.messages.pop_back();
      question.thinking.enabled = kind.thinks;
      EXPECT_EQ(item.prompt.ids, Engine().EncodeChat(question)->ids);
      num_tokens += std::ssize(item.prompt.ids);
    }
    EXPECT_EQ(drawn.num_prompt_tokens(), num_tokens);
  }
}

// A kind of three items, made without a look at the split.
StatusOr<Exercise> DrawOneOfThree(DrawContext& context) {
  Exercise exercise = {.task = "three", .key = StrCat(context.rng.Uniform(3))};
  exercise.conversation.messages = {UserMessage("?"), AssistantMessage(exercise.key)};
  return exercise;
}

TEST(TaskItems, TheSplitCheckSeesTrainingItems_AndNoKeyComesTwice) {
  int32_t num_in_training = 0;  // of the three
  for (const char* key : {"0", "1", "2"}) {
    num_in_training += SplitOf("three", key) == Split::kTraining ? 1 : 0;
  }
  ASSERT_GT(num_in_training, 0);
  TaskKind kind = {.name = "three", .draw = DrawOneOfThree};
  const TaskItems three = DrawItems(kind, Engine(), {.num_items = 3, .seed = 1}).value();
  EXPECT_EQ(three.num_in_training, num_in_training);
  EXPECT_EQ(three.items.size(), 3u);
  EXPECT_EQ(DrawItems(kind, Engine(), {.num_items = 5, .seed = 1})->items.size(), 3u);
  kind.split_by_key = false;
  EXPECT_EQ(DrawItems(kind, Engine(), {.num_items = 3, .seed = 1})->num_in_training, 0);
}

TEST(TaskItems, ATaskThatDoesNotFitSaysSo) {
  const auto engine = LoadTiny({.max_model_len = 512, .replay = "exact"});
  const auto drawn = DrawItems(*FindTask("needle_4k"), *engine, {.num_items = 1, .seed = 1});
  EXPECT_EQ(drawn.status().code(), StatusCode::kInvalidArgument) << drawn.status();
}

TEST(TaskItems, TheSeedIsThatOfTheWeights) {
  SimulatedDisk disk;
  const std::string from = testing::kTinyDir, to = "/copy";
  const std::vector<std::string> names = testing::TinyDisk().List(from).value();
  for (const std::string& name : names) {
    if (!testing::TinyDisk().IsFile(StrCat(from, "/", name))) continue;
    ASSERT_TRUE(disk.WriteText(StrCat(to, "/", name),
                               testing::TinyDisk().ReadText(StrCat(from, "/", name)).value())
                    .ok());
  }
  const auto seed = [&] { return *SeedOfWeights(**Checkpoint::Open(disk, to)); };
  const uint64_t before = seed();
  EXPECT_EQ(before, *SeedOfWeights(Engine().checkpoint()));
  EXPECT_LT(before, uint64_t{1} << 53);
  // The last byte of the last shard is weights.
  const std::string shard = StrCat(to, "/", Engine().checkpoint().file_names().back());
  std::string bytes = disk.ReadText(shard).value();
  bytes.back() ^= 1;
  ASSERT_TRUE(disk.WriteText(shard, bytes).ok());
  EXPECT_NE(seed(), before);
}

}  // namespace
}  // namespace deepinfer
