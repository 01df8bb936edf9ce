#include "apps/draft_loop.h"

#include <gtest/gtest.h>

#include <map>

#include "engine/testing/tiny_engine.h"

namespace deepinfer {
namespace {

using testing::LoadTiny;
using testing::TinyPrompt;

LoadedEngine& Engine() {
  static LoadedEngine* const engine =
      LoadTiny({.max_num_seqs = 8, .max_num_batched_tokens = 256, .replay = "exact"}).release();
  return *engine;
}

struct Case {
  std::vector<int32_t> prompt;
  int32_t max_output;
};

std::vector<Case> Cases() {
  return {{TinyPrompt(5, 1), 20}, {TinyPrompt(70, 2), 17}, {TinyPrompt(300, 3), 33},
          {TinyPrompt(1, 4), 1},  {TinyPrompt(41, 5), 2},  {TinyPrompt(64, 6), 6}};
}

// The engine's greedy answers, which the loop has to repeat.
std::vector<std::vector<int32_t>> EngineAnswers(const std::vector<Case>& cases) {
  EngineCore& core = Engine().core();
  std::vector<std::vector<int32_t>> answers(cases.size());
  std::map<RequestId, size_t> at;
  for (size_t i = 0; i < cases.size(); ++i) {
    Request request{.prompt_ids = cases[i].prompt, .max_tokens = cases[i].max_output};
    request.sampling.temperature = 0;
    at[core.Submit(std::move(request)).value()] = i;
  }
  while (core.HasWork()) {
    for (const Event& event : core.Step()) {
      if (const auto* tokens = std::get_if<TokensEvent>(&event)) {
        std::vector<int32_t>& answer = answers[at.at(tokens->request)];
        answer.insert(answer.end(), tokens->ids.begin(), tokens->ids.end());
      }
    }
  }
  return answers;
}

std::vector<DraftedAnswer> Drafted(const std::vector<Case>& cases, DraftLoopOptions options) {
  options.eos_id = Engine().config().eos_token_id;
  std::vector<DraftPrompt> prompts;
  for (const Case& c : cases) prompts.push_back({.ids = c.prompt, .max_output = c.max_output});
  return RunDraftLoop(Engine().model(), prompts, options).value();
}

// Proposes what the answers go on with, but for a wrong token as draft `num_right`.
ProposeFn Scripted(const std::vector<Case>& cases, const std::vector<std::vector<int32_t>>& answers,
                   int32_t num_right) {
  return [&cases, &answers, num_right](std::span<const DraftRequest> requests,
                                       std::span<Draft> drafts) {
    for (size_t i = 0; i < requests.size(); ++i) {
      // Prompts have different lengths and one answer at a time: the position says which it is.
      size_t c = 0;
      while (requests[i].position < std::ssize(cases[c].prompt) ||
             requests[i].position >= std::ssize(cases[c].prompt) + cases[c].max_output) {
        ++c;
      }
      const auto next = static_cast<size_t>(requests[i].position - std::ssize(cases[c].prompt)) + 1;
      drafts[i] = {};
      for (int32_t k = 0; k < Engine().config().dspark_block_size; ++k) {
        const size_t place = next + static_cast<size_t>(k);
        const int32_t right = place < answers[c].size() ? answers[c][place] : 0;
        drafts[i].tokens.push_back(k == num_right ? right ^ 1 : right);
        drafts[i].confidences.push_back(static_cast<float>(k));
      }
    }
    return OkStatus();
  };
}

TEST(DraftLoop, GivesTheEnginesAnswersWhateverIsDrafted) {
  const std::vector<Case> cases = Cases();
  const std::vector<std::vector<int32_t>> expected = EngineAnswers(cases);
  for (const int32_t max_together : {1, 4, 16}) {
    for (const int32_t chunk_rows : {7, 64, 1024}) {
      const auto drafted = Drafted(cases, {.max_together = max_together, .chunk_rows = chunk_rows});
      for (size_t i = 0; i < cases.size(); ++i) {
        EXPECT_EQ(drafted[i].ids, expected[i]) << i << ", " << max_together << ", " << chunk_rows;
      }
    }
  }
}

TEST(DraftLoop, CountsWhatIsAcceptedUpToTheFirstWrongDraft) {
  const int32_t block = Engine().config().dspark_block_size;
  const std::vector<Case> cases = {{TinyPrompt(70, 2), 31}};
  const std::vector<std::vector<int32_t>> answers = EngineAnswers(cases);
  ASSERT_EQ(answers[0].size(), 31u);
  for (int32_t right = 0; right <= block; ++right) {
    const auto drafted = Drafted(cases, {.propose = Scripted(cases, answers, right)});
    ASSERT_EQ(drafted[0].ids, answers[0]);
    const std::vector<DraftStep>& steps = drafted[0].steps;
    int32_t left = 30;  // the first token comes from the prompt
    for (const DraftStep& step : steps) {
      const int32_t num_drafts = std::min(block, left - 1);
      EXPECT_EQ(step.num_accepted, std::min(right, num_drafts)) << right << ", left " << left;
      EXPECT_EQ(step.num_judged, std::min(right + 1, num_drafts)) << right << ", left " << left;
      EXPECT_EQ(std::ssize(step.confidences), step.num_judged);
      for (int32_t k = 0; k < step.num_judged; ++k) {
        EXPECT_EQ(step.confidences[static_cast<size_t>(k)], static_cast<float>(k));
      }
      left -= step.num_accepted + 1;
    }
    EXPECT_EQ(left, 0) << right;
  }
}

TEST(DraftLoop, EndsAtTheEndTokenAmongAcceptedDrafts) {
  const std::vector<Case> cases = {{TinyPrompt(70, 2), 31}};
  const std::vector<std::vector<int32_t>> answers = EngineAnswers(cases);
  // Some token of the answer plays the end, at its first place.
  const int32_t end = answers[0][8];
  const auto first = std::find(answers[0].begin(), answers[0].end(), end) - answers[0].begin();
  ASSERT_GT(first, 1);
  const std::vector<DraftPrompt> prompts = {{.ids = cases[0].prompt, .max_output = 31}};
  const int32_t block = Engine().config().dspark_block_size;
  const auto drafted = RunDraftLoop(Engine().model(), prompts,
                                    {.eos_id = end, .propose = Scripted(cases, answers, block)})
                           .value();
  EXPECT_EQ(drafted[0].ids,
            std::vector<int32_t>(answers[0].begin(), answers[0].begin() + first + 1));
  const auto in_last = static_cast<int32_t>((first - 1) % (block + 1)) + 1;  // its tokens
  EXPECT_EQ(drafted[0].steps.back().num_accepted, std::min(in_last, block));
  EXPECT_EQ(drafted[0].steps.back().num_judged, std::min(in_last, block));
}

TEST(DraftLoop, AConfidenceThatIsNoNumberIsAnError) {
  const ProposeFn broken = [](std::span<const DraftRequest>, std::span<Draft> drafts) {
    for (Draft& draft : drafts) draft = {.tokens = {1}, .confidences = {NAN}};
    return OkStatus();
  };
  const std::vector<int32_t> ids = TinyPrompt(9, 1);
  const std::vector<DraftPrompt> prompts = {{.ids = ids, .max_output = 5}};
  const auto drafted = RunDraftLoop(Engine().model(), prompts, {.propose = broken});
  EXPECT_EQ(drafted.status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(MessageOf(drafted.status()),
            "drafts behind position 9: confidence nan, expected a number; the draft blocks are "
            "damaged");
}

TEST(DraftLoop, LoadCountsEveryComputedTokenOnce) {
  const std::vector<Case> cases = Cases();
  RoutingLoad load(Engine().config());
  int64_t reported = 0;
  const auto drafted = Drafted(
      cases, {.chunk_rows = 50, .load = &load, .progress = [&](int64_t n) { reported += n; }});
  int64_t expected = 0;  // all but the newest of each
  for (size_t i = 0; i < cases.size(); ++i) {
    expected += std::ssize(cases[i].prompt) + std::ssize(drafted[i].ids) - 1;
  }
  EXPECT_EQ(load.num_tokens(), expected);
  EXPECT_EQ(reported, expected + std::ssize(cases));
}

}  // namespace
}  // namespace deepinfer
