#include "apps/task_answers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/testing/fake_engine.h"
#include "engine/testing/tiny_engine.h"
#include "eval/grading.h"

namespace deepinfer {
namespace {

using testing::FakeEngine;
using testing::FakeModel;
using testing::FakeOptions;
using testing::LoadTiny;

const LoadedEngine& Engine() {
  static const LoadedEngine* const engine = LoadTiny({.replay = "exact"}).release();
  return *engine;
}

std::vector<TaskItem> Items() {
  return DrawItems(*FindTask("arithmetic"), Engine(), {.num_items = 7, .seed = 2})->items;
}

// What a model says that is right about every second item.
std::vector<std::vector<int32_t>> Scripts(const std::vector<TaskItem>& items) {
  std::vector<std::vector<int32_t>> scripts;
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string right = TextOfMessage(items[i].exercise.answer());
    scripts.push_back(Engine().tokenizer()->Encode(i % 2 == 0 ? right : right + "0"));
    scripts.back().push_back(FakeModel::kEos);
  }
  return scripts;
}

// An engine whose model says these, with little room to wait in.
FakeOptions Saying(const std::vector<TaskItem>& items,
                   const std::vector<std::vector<int32_t>>& scripts) {
  FakeOptions options;
  options.vocab_size = Engine().info().vocab_size;
  options.tokenizer = Engine().tokenizer();
  options.scheduler.max_waiting = 3;
  options.logits = [&](std::span<const int32_t> tokens) {
    std::vector<float> row(static_cast<size_t>(Engine().info().vocab_size));
    for (size_t i = 0; i < items.size(); ++i) {
      const std::vector<int32_t>& prompt = items[i].prompt.ids;
      if (tokens.size() < prompt.size() ||
          !std::equal(prompt.begin(), prompt.end(), tokens.begin())) {
        continue;
      }
      const size_t next = std::min(tokens.size() - prompt.size(), scripts[i].size() - 1);
      row[static_cast<size_t>(scripts[i][next])] = 1;
    }
    return row;
  };
  return options;
}

TEST(TaskAnswers, EachItemGetsItsOwnAnswer) {
  const std::vector<TaskItem> items = Items();
  const auto scripts = Scripts(items);
  FakeEngine engine(Saying(items, scripts));
  int64_t reported = 0, expected = 0;
  const auto answers = AnswerItems(engine.core(), items,
                                   {.tokens = AnswerTokens::Of(*Engine().tokenizer()).value(),
                                    .max_answer_tokens = 20,
                                    .progress = [&](int64_t n) { reported += n; }});
  ASSERT_TRUE(answers.ok()) << answers.status();
  for (size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ((*answers)[i].ids, scripts[i]) << i;
    EXPECT_TRUE((*answers)[i].parsed.ended) << i;
    EXPECT_EQ(IsRight(items[i].exercise, (*answers)[i].parsed), i % 2 == 0) << i;
    expected += std::ssize(items[i].prompt.ids);
  }
  EXPECT_EQ(reported, expected);
}

TEST(TaskAnswers, AnAnswerThatIsCutIsWrong) {
  const std::vector<TaskItem> items = Items();
  const auto scripts = Scripts(items);
  FakeEngine engine(Saying(items, scripts));
  const int32_t without_end = static_cast<int32_t>(scripts[0].size()) - 1;
  const auto answers = AnswerItems(engine.core(), std::span(items).first(1),
                                   {.tokens = AnswerTokens::Of(*Engine().tokenizer()).value(),
                                    .max_answer_tokens = without_end});
  ASSERT_TRUE(answers.ok()) << answers.status();
  EXPECT_EQ(std::ssize((*answers)[0].ids), without_end);
  EXPECT_FALSE((*answers)[0].parsed.ended);
  EXPECT_FALSE(IsRight(items[0].exercise, (*answers)[0].parsed));
}

TEST(TaskAnswers, AFailedRequestIsAnError) {
  const std::vector<TaskItem> items = Items();
  const auto scripts = Scripts(items);
  FakeEngine engine(Saying(items, scripts));
  engine.model().FailNextPasses(1000);
  EXPECT_FALSE(AnswerItems(engine.core(), items,
                           {.tokens = AnswerTokens::Of(*Engine().tokenizer()).value(),
                            .max_answer_tokens = 20})
                   .ok());
}

}  // namespace
}  // namespace deepinfer
