// The whole library over a tiny checkpoint that is made in memory: the real model's arithmetic
// under the joint's promises.
#include "engine/loaded_engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "engine/testing/fake_engine.h"
#include "engine/testing/fake_grammar.h"
#include "engine/testing/tiny_engine.h"
#include "tokens/conversation_json.h"

namespace deepinfer {
namespace {

using testing::Answers;
using testing::RunAll;

using testing::LoadTiny;
using testing::TinyDisk;

constexpr const char* kDir = testing::kTinyDir;

// In exact mode, so that a cached prompt changes nothing.
std::unique_ptr<LoadedEngine> Load(EngineOptions options = {}) {
  options.replay = "exact";
  return LoadTiny(std::move(options));
}

std::string LoadError(EngineOptions options) {
  options.model = kDir;
  const auto engine = LoadedEngine::Load(options, TinyDisk(), RealRng());
  EXPECT_FALSE(engine.ok());
  return MessageOf(engine.status());
}

std::vector<int32_t> Prompt(int32_t length, int32_t salt) {
  std::vector<int32_t> ids = {0};
  for (int32_t i = 1; i < length; ++i) ids.push_back(16 + (i * 37 + salt * 101) % 490);
  return ids;
}

RequestId Submit(LoadedEngine& engine, Request request) {
  const auto id = engine.core().Submit(std::move(request));
  EXPECT_TRUE(id.ok()) << id.status();
  return id.ok() ? *id : RequestId{-1};
}

TEST(LoadedEngine, ABatchGivesWhatEachRequestGivesAlone) {
  const auto engine = Load({.max_num_batched_tokens = 64});
  ASSERT_NE(engine, nullptr);
  std::vector<Request> requests;
  for (int32_t i = 0; i < 6; ++i) {
    requests.push_back({.prompt_ids = Prompt(2 + i * 13, i),
                        .max_tokens = 6 + i,
                        .sampling = {.temperature = i % 2 * 1.0, .logprobs = 1},
                        .seed = static_cast<uint64_t>(i)});
  }
  std::vector<RequestId> ids;
  for (const Request& request : requests) ids.push_back(Submit(*engine, request));
  Answers together = RunAll(engine->core());
  EXPECT_TRUE(together.order_faults.empty());
  for (size_t i = 0; i < requests.size(); ++i) {
    const RequestId id = Submit(*engine, requests[i]);
    Answers alone = RunAll(engine->core());
    EXPECT_EQ(together.Of(ids[i]).ids, alone.Of(id).ids) << i;
    EXPECT_EQ(together.Of(ids[i]).text, alone.Of(id).text);
    for (size_t t = 0; t < alone.Of(id).logprobs.size(); ++t) {
      EXPECT_EQ(together.Of(ids[i]).logprobs[t].token.logprob,
                alone.Of(id).logprobs[t].token.logprob);
    }
  }
  EXPECT_EQ(engine->core().scheduler().pages().num_held(), 0);
}

TEST(LoadedEngine, AnyChunkSizeGivesTheSame) {
  std::vector<int32_t> expected;
  for (const int32_t rows : {2048, 1, 2, 3, 7, 64}) {
    const auto engine =
        Load({.max_num_seqs = 1, .max_num_batched_tokens = rows, .scan_weights = false});
    ASSERT_NE(engine, nullptr);
    const RequestId id =
        Submit(*engine, {.prompt_ids = Prompt(70, 3), .max_tokens = 12, .seed = 5});
    Answers answers = RunAll(engine->core());
    if (expected.empty()) expected = answers.Of(id).ids;
    EXPECT_EQ(answers.Of(id).ids, expected) << rows;
  }
}

constexpr int64_t kFewExperts = 100'000;  // bytes: four or so of the 84

std::vector<int32_t> Answer(LoadedEngine& engine) {
  const RequestId id = Submit(engine, {.prompt_ids = Prompt(30, 4), .max_tokens = 8, .seed = 5});
  Answers answers = RunAll(engine.core());
  EXPECT_FALSE(answers.Of(id).failure) << answers.Of(id).failure->message;
  return answers.Of(id).ids;
}

TEST(LoadedEngine, WeightsInAnyPlaceGiveTheSame) {
  const std::vector<int32_t> expected = Answer(*Load());
  for (const char* const experts : {"ram", "mmap", "disk"}) {
    for (const char* const engram : {"ram", "mmap", "disk"}) {
      const bool disk = experts == std::string_view("disk");
      const auto engine = Load({.weights_cache = "/places",
                                .experts = experts,
                                .engram = engram,
                                .expert_cache_bytes = disk ? kFewExperts : 0});
      ASSERT_NE(engine, nullptr);
      EXPECT_EQ(Answer(*engine), expected) << experts << " " << engram;
      if (!disk) continue;
      EXPECT_LE(engine->placed_weights().expert_source()->memory_bytes(), kFewExperts);
      EXPECT_GT(engine->placed_weights().expert_source()->counts().read, 0);
    }
  }
}

TEST(LoadedEngine, PlacesThatCannotWorkAreNamed) {
  EXPECT_EQ(LoadError({.experts = "disk"}),
            "experts: disk reads packed weights from a file; give a directory for it "
            "(--weights-cache DIR) and a variant other than ref");
  EXPECT_EQ(LoadError({.variant = "ref", .weights_cache = "/places", .experts = "mmap"}),
            "experts: mmap reads packed weights from a file; give a directory for it "
            "(--weights-cache DIR) and a variant other than ref");
  EXPECT_EQ(LoadError({.engram = "tape"}), "engram: found \"tape\", expected ram, mmap or disk");
}

// A disk that fails for a while ends the requests of that while, with what the disk said.
TEST(LoadedEngine, AnExpertThatCannotBeReadEndsItsRequestsOnly) {
  const auto engine =
      Load({.weights_cache = "/places", .experts = "disk", .expert_cache_bytes = kFewExperts});
  ASSERT_NE(engine, nullptr);
  const std::vector<int32_t> expected = Answer(*engine);
  const std::string path = "/places/" + TinyDisk().List("/places")->front();
  // An expert of some layer in the middle: of 30 tokens some choose it.
  TinyDisk().FailReadsAt(path, TinyDisk().OpenRead(path).value()->size() / 2);
  const RequestId id = Submit(*engine, {.prompt_ids = Prompt(30, 4), .max_tokens = 8, .seed = 5});
  Answers answers = RunAll(engine->core());
  TinyDisk().FailReadsAt(path, -1);
  ASSERT_TRUE(answers.Of(id).failure);
  const std::string& message = answers.Of(id).failure->message;
  EXPECT_TRUE(message.starts_with("experts of block ")) << message;
  EXPECT_TRUE(message.ends_with(": " + path + ": cannot read: Input/output error")) << message;
  EXPECT_EQ(engine->core().scheduler().pages().num_held(), 0);
  EXPECT_EQ(Answer(*engine), expected);
}

TEST(LoadedEngine, PromptLogprobsEqualThoseOfTeacherForcing) {
  const auto engine = Load();
  ASSERT_NE(engine, nullptr);
  const std::vector<int32_t> tokens = Prompt(40, 9);
  const RequestId scored =
      Submit(*engine, {.prompt_ids = tokens, .max_tokens = 0, .prompt_logprobs = 3});
  const RequestId forced =
      Submit(*engine, {.prompt_ids = {tokens[0]},
                       .max_tokens = 39,
                       .sampling = {.ignore_eos = true,
                                    .forced_token_ids = {tokens.begin() + 1, tokens.end()},
                                    .logprobs = 3}});
  Answers answers = RunAll(engine->core());
  const auto& prompt = answers.ready.at(scored).prompt_logprobs;
  ASSERT_EQ(prompt.size(), 39u);
  for (size_t i = 0; i < 39; ++i) {
    const PositionLogprobs& step = answers.Of(forced).logprobs[i];
    EXPECT_EQ(prompt[i].token.logprob, step.token.logprob) << i;
    ASSERT_EQ(prompt[i].top.size(), 3u);
    for (size_t r = 0; r < 3; ++r) EXPECT_EQ(prompt[i].top[r].id, step.top[r].id);
  }
}

TEST(LoadedEngine, TextIsTheTokenizersOwn) {
  const auto engine = Load();
  ASSERT_NE(engine, nullptr);
  const auto prompt = engine->EncodeText("Hello <think> \xe4\xbd\xa0\xe5\xa5\xbd");
  ASSERT_TRUE(prompt.ok()) << prompt.status();
  EXPECT_EQ(prompt->front(), 0);
  EXPECT_NE(std::find(prompt->begin(), prompt->end(), 6),
            prompt->end());  // as it stands: a control token
  const RequestId id = Submit(*engine, {.prompt_ids = *prompt, .max_tokens = 30, .seed = 2});
  Answers answers = RunAll(engine->core());
  EXPECT_EQ(answers.Of(id).text, engine->tokenizer()->Decode(answers.Of(id).ids, true));
}

TEST(LoadedEngine, ImagePlaceholdersInTextStayText) {
  const auto engine = Load();
  ASSERT_NE(engine, nullptr);
  const auto prompt = engine->EncodeText(
      "a <\xef\xbd\x9c"
      "deepseek_image\xef\xbd\x9c> b");
  ASSERT_TRUE(prompt.ok());
  EXPECT_EQ(std::find(prompt->begin(), prompt->end(), 511), prompt->end());
}

TEST(LoadedEngine, ChatNeedsItsTextsAndRefusesImages) {
  const auto engine = Load();
  ASSERT_NE(engine, nullptr);
  const auto chat = [&](std::string_view json) {
    const auto conversation = ParseMessages(json);
    EXPECT_TRUE(conversation.ok()) << conversation.status();
    return engine->EncodeChat(*conversation);
  };
  const auto plain = chat(R"([{"role":"user","content":"Hi"}])");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_TRUE(plain->in_thinking);
  EXPECT_EQ(plain->ids.front(), 0);
  const auto image =
      chat(R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,x"}}]}])");
  EXPECT_EQ(image.status().code(), StatusCode::kUnimplemented);
}

TEST(LoadedEngine, OptionsOutOfRangeAreNamed) {
  EXPECT_EQ(LoadError({.max_model_len = 1}),
            "max_model_len: found 1, expected at least 2 (one prompt token and one output token)");
  EXPECT_EQ(LoadError({.max_model_len = 20000}),
            "max_model_len: found 20000, the model has positions for 16384 tokens");
  EXPECT_NE(LoadError({.kv_cache_bytes = 10}).find("at least one page of 64 tokens"),
            std::string::npos);
  EXPECT_NE(LoadError({.num_threads = -1}).find("num_threads"), std::string::npos);
  EXPECT_NE(LoadError({.variant = "gpu"}).find("gpu"), std::string::npos);
}

TEST(LoadedEngine, ADefaultCacheHoldsAtLeastOneFullSequence) {
  EXPECT_EQ(DefaultKvCacheBytes(1000, 640, 64), 640'000);
  EXPECT_EQ(DefaultKvCacheBytes(1000, 641, 1), 11'000);
  EXPECT_EQ(DefaultKvCacheBytes(1 << 20, 64 * 1024, 64), int64_t{1} << 30);
  EXPECT_EQ(DefaultKvCacheBytes(1 << 20, 64 * 4096, 64), int64_t{1} << 32);
}

// ---- structured output

TEST(LoadedEngine, AGrammarIsBuiltInAProcessOfItsOwnAndHolds) {
  const auto engine = LoadTiny({.replay = "exact"}, /*grammar_workers=*/1);
  const StructuredOutput structured = {.kind = StructuredOutput::Kind::kRegex, .text = "[a-f]{20}"};
  const RequestId id =
      Submit(*engine, {.prompt_ids = Prompt(30, 1), .structured = structured, .seed = 3});
  const RequestId broken =
      Submit(*engine, {.prompt_ids = Prompt(30, 1),
                       .structured = {.kind = StructuredOutput::Kind::kRegex, .text = "("}});
  Answers answers = RunAll(engine->core());
  EXPECT_EQ(answers.Of(id).text.size(), 20u);
  EXPECT_EQ(answers.Of(id).text.find_first_not_of("abcdef"), std::string::npos);
  EXPECT_EQ(answers.Of(id).finish->reason, FinishReason::kStop);
  ASSERT_TRUE(answers.Of(broken).failure.has_value());
  EXPECT_EQ(answers.Of(broken).failure->code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(engine->grammar_service()->stats().built, 1);
}

TEST(LoadedEngine, WithoutGrammarWorkersStructuredOutputIsRefused) {
  const auto engine = Load();
  const auto refused = engine->core().Submit(
      {.prompt_ids = {5}, .structured = {.kind = StructuredOutput::Kind::kJsonObject, .text = ""}});
  EXPECT_EQ(refused.status().code(), StatusCode::kFailedPrecondition);
}

// Rows that sit out run again: in the real model, too, nothing that they wrote changes the result.
TEST(LoadedEngine, RowsThatSatOutGiveTheSameLogprobsWhenTheyRunAgain) {
  struct Outcome {
    std::vector<double> logprobs;
    int64_t late = 0;
  };
  const auto engine = LoadTiny({.replay = "bounded", .scripted_drafts = 3});
  const auto run = [&](bool masks_are_late) {
    std::atomic<int> num_steps{0};
    testing::FakeGrammarSource source(engine->config().vocab_size, [&] {
      const int ready_at = num_steps + 2;
      while (masks_are_late && num_steps < ready_at) {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
    });
    EngineCoreOptions options = engine->core_options();
    options.scheduler.prefix_cache = false;
    options.masks.wait_least = std::chrono::minutes(masks_are_late ? 0 : 1);
    const auto instance = engine->NewInstance(options, engine->kv_sizes(), nullptr, &source);
    EXPECT_TRUE(instance.ok());
    std::vector<RequestId> ids;
    for (int32_t i = 0; i < 4; ++i) {
      Request request = {.prompt_ids = Prompt(40 + 60 * i, i),
                         .max_tokens = 50,
                         .sampling = {.ignore_eos = true, .logprobs = 2},
                         .seed = 5};
      for (int32_t t = 0; t < 50; ++t) {
        request.sampling.forced_token_ids.push_back(30 + 3 * i + (9 - t % 3) % 3);
      }
      request.sampling.forced_drafts = {3, 0, 1, 2};
      if (i < 3) request.structured = testing::FakeStructured({.least = 60});
      ids.push_back(*(*instance)->core().Submit(request));
    }
    Answers answers;
    for (; (*instance)->core().HasWork(); ++num_steps) answers.Take((*instance)->core().Step());
    Outcome outcome{.late = (*instance)->core().stats().masks_late};
    for (const RequestId id : ids) {
      EXPECT_EQ(answers.Of(id).ids.size(), 50u);
      for (const PositionLogprobs& at : answers.Of(id).logprobs) {
        outcome.logprobs.push_back(at.token.logprob);
        for (const TokenLogprob& top : at.top) outcome.logprobs.push_back(top.logprob);
      }
    }
    return outcome;
  };
  const Outcome in_time = run(/*masks_are_late=*/false);
  EXPECT_EQ(in_time.late, 0);
  const Outcome late = run(/*masks_are_late=*/true);
  EXPECT_GT(late.late, 20);
  EXPECT_EQ(late.logprobs, in_time.logprobs);
}

TEST(LoadedEngine, MoreScriptedDraftsThanTheModelVerifiesAreRefused) {
  EXPECT_EQ(LoadError({.scripted_drafts = 6}), "num_drafts: found 6, the model drafts 0..5");
}

}  // namespace
}  // namespace deepinfer
