// The joint, with logits written by the test.
#include "engine/engine_core.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/scripted_drafter.h"
#include "engine/testing/fake_engine.h"
#include "tokens/small_tokenizer_for_tests.h"

namespace deepinfer {
namespace {

using testing::Answer;
using testing::Answers;
using testing::FakeEngine;
using testing::FakeModel;
using testing::FakeOptions;
using testing::RunAll;

std::vector<int32_t> Prompt(int32_t length, int32_t salt = 0) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < length; ++i) ids.push_back(2 + (i * 7 + salt) % 14);
  return ids;
}

struct Limits {
  int32_t max_model_len, max_num_seqs, max_num_batched_tokens;
};

void SetLimits(FakeOptions& options, const Limits& limits) {
  options.scheduler.max_model_len = limits.max_model_len;
  options.scheduler.max_num_seqs = limits.max_num_seqs;
  options.scheduler.max_num_batched_tokens = limits.max_num_batched_tokens;
}

RequestId Submit(FakeEngine& engine, Request request) {
  const auto id = engine.core().Submit(std::move(request));
  EXPECT_TRUE(id.ok()) << id.status();
  return id.ok() ? *id : RequestId{-1};
}

std::string SubmitError(FakeEngine& engine, Request request) {
  const auto id = engine.core().Submit(std::move(request));
  EXPECT_FALSE(id.ok());
  return MessageOf(id.status());
}

std::vector<int32_t> Ids(FakeOptions options, Request request) {
  FakeEngine engine(options);
  const RequestId id = Submit(engine, std::move(request));
  return RunAll(engine.core()).Of(id).ids;
}

TEST(EngineCore, case_R02_EventsComeInOrderAndEndOnce) {
  FakeEngine engine({});
  const RequestId id = Submit(engine, {.prompt_ids = Prompt(5), .max_tokens = 4, .seed = 7});
  Answers answers = RunAll(engine.core());
  EXPECT_TRUE(answers.order_faults.empty()) << answers.order_faults[0];
  EXPECT_EQ(answers.ready.at(id).seed, 7u);
  EXPECT_EQ(answers.ready.at(id).prompt_tokens, 5);
  EXPECT_EQ(answers.ready.at(id).cached_tokens, 0);
  EXPECT_EQ(answers.Of(id).ids.size(), 4u);
  EXPECT_EQ(answers.Of(id).finish->reason, FinishReason::kLength);
  EXPECT_FALSE(engine.core().HasWork());
}

TEST(EngineCore, ASeedThatWasDrawnIsReportedAndRepeatsTheOutput) {
  FakeEngine engine({});
  const RequestId first = Submit(engine, {.prompt_ids = Prompt(5), .max_tokens = 12});
  const RequestId second = Submit(engine, {.prompt_ids = Prompt(5), .max_tokens = 12});
  Answers answers = RunAll(engine.core());
  EXPECT_NE(answers.ready.at(first).seed, answers.ready.at(second).seed);
  EXPECT_NE(answers.Of(first).ids, answers.Of(second).ids);
  EXPECT_EQ(
      Ids({}, {.prompt_ids = Prompt(5), .max_tokens = 12, .seed = answers.ready.at(first).seed}),
      answers.Of(first).ids);
}

TEST(EngineCore, ChoiceIUsesSeedPlusI) {
  FakeEngine engine({});
  const RequestId id =
      Submit(engine, {.prompt_ids = Prompt(9), .max_tokens = 10, .seed = 40, .num_choices = 3});
  Answers answers = RunAll(engine.core());
  EXPECT_TRUE(answers.order_faults.empty());
  for (int32_t choice = 0; choice < 3; ++choice) {
    EXPECT_EQ(answers.Of(id, choice).ids, Ids({}, {.prompt_ids = Prompt(9),
                                                   .max_tokens = 10,
                                                   .seed = 40u + static_cast<uint64_t>(choice)}));
  }
  EXPECT_NE(answers.Of(id, 0).ids, answers.Of(id, 1).ids);
}

TEST(EngineCore, ABatchGivesWhatEachRequestGivesAlone) {
  FakeEngine engine({});
  std::vector<std::pair<RequestId, Request>> sent;
  for (int32_t i = 0; i < 20; ++i) {  // more than run at once
    Request request{.prompt_ids = Prompt(3 + i * 5 % 40, i),
                    .max_tokens = 1 + i % 9,
                    .sampling = {.temperature = i % 3 * 0.6, .top_p = i % 2 ? 0.7 : 1.0},
                    .seed = static_cast<uint64_t>(i)};
    sent.emplace_back(Submit(engine, request), request);
  }
  Answers answers = RunAll(engine.core());
  EXPECT_TRUE(answers.order_faults.empty());
  for (const auto& [id, request] : sent) EXPECT_EQ(answers.Of(id).ids, Ids({}, request));
}

TEST(EngineCore, AnyChunkSizeGivesTheSame) {
  const Request request{.prompt_ids = Prompt(100),
                        .max_tokens = 8,
                        .sampling = {.logprobs = 2},
                        .seed = 3,
                        .prompt_logprobs = 2};
  std::optional<Answers> expected;
  for (const int32_t rows : {512, 1, 2, 3, 7, 64}) {
    FakeOptions options;
    SetLimits(options, {.max_model_len = 256, .max_num_seqs = 1, .max_num_batched_tokens = rows});
    FakeEngine engine(options);
    const RequestId id = Submit(engine, request);
    Answers answers = RunAll(engine.core());
    for (const int32_t used : engine.pass_rows()) EXPECT_LE(used, rows);
    if (!expected) expected = answers;
    EXPECT_EQ(answers.Of(id).ids, expected->Of(id).ids);
    const auto& mine = answers.ready.at(id).prompt_logprobs;
    const auto& theirs = expected->ready.at(id).prompt_logprobs;
    ASSERT_EQ(mine.size(), 99u);
    for (size_t i = 0; i < 99; ++i) {
      EXPECT_EQ(mine[i].token.id, request.prompt_ids[i + 1]);
      EXPECT_EQ(mine[i].token.logprob, theirs[i].token.logprob);
      EXPECT_EQ(mine[i].top.size(), 2u);
    }
  }
}

TEST(EngineCore, PromptLogprobsBoundTheRowsOfAPass) {
  FakeOptions options;
  SetLimits(options, {.max_model_len = 2000, .max_num_seqs = 8, .max_num_batched_tokens = 2048});
  FakeEngine engine(options);
  Submit(engine, {.prompt_ids = Prompt(600), .max_tokens = 0, .prompt_logprobs = 0});
  RunAll(engine.core());
  EXPECT_EQ(engine.pass_rows(), (std::vector<int32_t>{256, 256, 88}));
}

TEST(EngineCore, PromptLogprobsOfManyRequestsBoundTheLogitsOfAPassTogether) {
  FakeOptions options;
  SetLimits(options, {.max_model_len = 2000, .max_num_seqs = 8, .max_num_batched_tokens = 2048});
  FakeEngine engine(options);
  std::vector<RequestId> ids;
  for (int32_t i = 0; i < 3; ++i) {
    ids.push_back(
        Submit(engine, {.prompt_ids = Prompt(600, i), .max_tokens = 0, .prompt_logprobs = 0}));
  }
  Answers answers = RunAll(engine.core());
  for (const int32_t rows : engine.pass_rows()) EXPECT_LE(rows, 256);
  EXPECT_EQ(engine.model().num_rows(), 1800);
  for (const RequestId id : ids) EXPECT_EQ(answers.ready.at(id).prompt_logprobs.size(), 599u);
}

TEST(EngineCore, PromptLogprobsAreThoseOfTheSameTokensAsOutput) {
  FakeEngine engine({});
  const RequestId whole =
      Submit(engine, {.prompt_ids = Prompt(12), .max_tokens = 0, .prompt_logprobs = 0});
  std::vector<int32_t> forced = Prompt(12);
  forced.erase(forced.begin());
  const RequestId stepped =
      Submit(engine, {.prompt_ids = {Prompt(12)[0]},
                      .max_tokens = 11,
                      .sampling = {.forced_token_ids = forced, .logprobs = 0}});
  Answers answers = RunAll(engine.core());
  EXPECT_TRUE(answers.order_faults.empty());
  const auto& prompt = answers.ready.at(whole).prompt_logprobs;
  ASSERT_EQ(prompt.size(), 11u);
  EXPECT_EQ(answers.Of(whole).ids.size(), 0u);
  EXPECT_EQ(answers.Of(whole).finish->reason, FinishReason::kLength);
  EXPECT_EQ(answers.Of(stepped).ids, forced);
  for (size_t i = 0; i < 11; ++i) {
    EXPECT_EQ(answers.Of(stepped).logprobs[i].token.logprob, prompt[i].token.logprob);
  }
}

TEST(EngineCore, ReadyWithPromptLogprobsComesBeforeTheTokensOfEveryChoice) {
  FakeOptions options;
  SetLimits(options, {.max_model_len = 2000, .max_num_seqs = 8, .max_num_batched_tokens = 2048});
  FakeEngine engine(options);
  const RequestId id = Submit(
      engine, {.prompt_ids = Prompt(600), .max_tokens = 2, .num_choices = 3, .prompt_logprobs = 0});
  Answers answers = RunAll(engine.core());
  EXPECT_TRUE(answers.order_faults.empty());
  EXPECT_EQ(answers.ready.at(id).prompt_logprobs.size(), 599u);
}

// Without them Ready cannot be sent, so no choice goes on.
TEST(EngineCore, IfPromptLogprobsFailAllChoicesFail) {
  FakeEngine engine({});
  engine.model().SpoilToken(9);
  std::vector<int32_t> prompt = Prompt(6);
  prompt[3] = 9;
  const RequestId id = Submit(
      engine, {.prompt_ids = prompt, .max_tokens = 2, .num_choices = 3, .prompt_logprobs = 0});
  Answers answers = RunAll(engine.core());
  EXPECT_TRUE(answers.ready.empty());
  for (int32_t choice = 0; choice < 3; ++choice) {
    ASSERT_TRUE(answers.Of(id, choice).failure.has_value());
    EXPECT_EQ(answers.Of(id, choice).failure->message, answers.Of(id).failure->message);
  }
  EXPECT_EQ(engine.core().stats().failures, 3);
}

TEST(EngineCore, case_R11_PromptAndOutputNeverPassMaxModelLen) {
  constexpr int32_t kLimit = 100;
  FakeOptions options;
  SetLimits(options, {.max_model_len = kLimit, .max_num_seqs = 2, .max_num_batched_tokens = 64});
  struct Try {
    int32_t prompt, max_tokens, expected;  // -1: what fits
  };
  for (const Try t : {Try{98, 10, 2}, Try{99, 10, 1}, Try{50, 49, 49}, Try{50, 50, 50},
                      Try{50, 51, 50}, Try{50, -1, 50}, Try{99, -1, 1}}) {
    FakeEngine engine(options);
    Request request{.prompt_ids = Prompt(t.prompt), .seed = 1};
    if (t.max_tokens >= 0) request.max_tokens = t.max_tokens;
    const RequestId id = Submit(engine, request);
    Answers answers = RunAll(engine.core());
    EXPECT_EQ(static_cast<int32_t>(answers.Of(id).ids.size()), t.expected) << t.prompt;
    EXPECT_LE(t.prompt + static_cast<int32_t>(answers.Of(id).ids.size()), kLimit);
    EXPECT_EQ(answers.Of(id).finish->reason, FinishReason::kLength);
  }
  FakeEngine engine(options);
  for (const int32_t prompt : {100, 101}) {
    EXPECT_EQ(SubmitError(engine, {.prompt_ids = Prompt(prompt), .max_tokens = 1}),
              StrCat("prompt: ", prompt,
                     " tokens, at most 99 fit beside the output into max_model_len, 100"));
  }
  // Scoring has no output, so all positions are the prompt's.
  Submit(engine, {.prompt_ids = Prompt(100), .max_tokens = 0, .prompt_logprobs = 0});
  EXPECT_FALSE(engine.core()
                   .Submit({.prompt_ids = Prompt(101), .max_tokens = 0, .prompt_logprobs = 0})
                   .ok());
}

TEST(EngineCore, case_R24_AnySmallMaxModelLenWorksOrNamesTheLeast) {
  EXPECT_EQ(MessageOf(CheckSchedulerOptions({.max_num_seqs = 1,
                                             .max_num_batched_tokens = 1,
                                             .max_model_len = 1,
                                             .replay = ReplayMode::kExact})),
            "max_model_len: found 1, expected at least 2 (one prompt token and one output token)");
  for (int32_t limit = 2; limit < 140; ++limit) {
    FakeOptions options;
    SetLimits(options, {.max_model_len = limit, .max_num_seqs = 1, .max_num_batched_tokens = 1});
    FakeEngine engine(options);
    const RequestId id = Submit(engine, {.prompt_ids = Prompt((limit + 1) / 2)});
    EXPECT_EQ(static_cast<int32_t>(RunAll(engine.core()).Of(id).ids.size()), limit / 2);
  }
}

TEST(EngineCore, LimitsThatCannotWorkAreNamed) {
  const auto error = [](const Limits& limits) {
    return MessageOf(CheckSchedulerOptions({.max_num_seqs = limits.max_num_seqs,
                                            .max_num_batched_tokens = limits.max_num_batched_tokens,
                                            .max_model_len = limits.max_model_len,
                                            .replay = ReplayMode::kExact}));
  };
  EXPECT_EQ(error({10, 0, 10}), "max_num_seqs: found 0, expected at least 1");
  EXPECT_EQ(error({10, 8, 7}),
            "max_num_batched_tokens: found 7, expected at least max_num_seqs, 8");
}

TEST(EngineCore, RequestsThatAreWrongAreNamedAndChangeNothing) {
  FakeEngine engine({});
  EXPECT_EQ(SubmitError(engine, {}), "prompt: no tokens, expected at least one");
  EXPECT_EQ(SubmitError(engine, {.prompt_ids = {3, 16}}),
            "prompt: token 1 is id 16, the model has 0..15");
  EXPECT_EQ(SubmitError(engine, {.prompt_ids = {3}, .max_tokens = -1}),
            "max_tokens: found -1, expected at least 1");
  EXPECT_EQ(SubmitError(engine, {.prompt_ids = {3}, .max_tokens = 0}),
            "max_tokens: found 0, which needs prompt_logprobs; expected at least 1");
  EXPECT_EQ(SubmitError(engine, {.prompt_ids = {3}, .num_choices = 0}),
            "n: found 0, expected 1..128");
  EXPECT_EQ(
      SubmitError(engine, {.prompt_ids = {3}, .max_tokens = 2, .sampling = {.min_tokens = 3}}),
      "min_tokens: found 3, expected at most max_tokens, 2");
  EXPECT_EQ(SubmitError(engine, {.prompt_ids = {3}, .sampling = {.temperature = 101}}),
            "temperature: found 101, expected 0..100");
  EXPECT_EQ(SubmitError(engine, {.prompt_ids = {3}, .start_deadline_ms = 9'300'000'000'000}),
            "start_deadline_ms: found 9300000000000, expected 0..31536000000, a year");
  EXPECT_EQ(
      SubmitError(
          engine,
          {.prompt_ids = Prompt(250), .max_tokens = 0, .sampling = {}, .prompt_logprobs = 1001}),
      "prompt_logprobs: found 1001, expected 0..1000");
  EXPECT_EQ(
      SubmitError(engine, {.prompt_ids = {3}, .stop = {"x"}}),
      "stop: the checkpoint has no tokenizer, so there is no text to stop at; use stop_token_ids");
  EXPECT_FALSE(engine.core().HasWork());
}

TEST(EngineCore, PromptLogprobsOfARequestAreBounded) {
  FakeOptions options;
  options.num_pages = 128;
  options.scheduler.max_model_len = 8192;
  FakeEngine engine(options);
  EXPECT_EQ(
      SubmitError(engine, {.prompt_ids = Prompt(4200), .max_tokens = 0, .prompt_logprobs = 999}),
      "prompt_logprobs: 1000 for each of 4200 prompt tokens are 4200000, expected at most 4194304; "
      "ask for fewer, or shorten the prompt");
  Submit(engine, {.prompt_ids = Prompt(4194), .max_tokens = 0, .prompt_logprobs = 999});
}

TEST(EngineCore, ALargestDeadlineIsNoPastOne) {
  FakeEngine engine({});
  const RequestId id =
      Submit(engine, {.prompt_ids = {3}, .max_tokens = 2, .start_deadline_ms = 31'536'000'000});
  EXPECT_EQ(RunAll(engine.core()).Of(id).ids.size(), 2u);
}

// ---- memory

TEST(EngineCore, ARequestTooLargeForTheWholeCacheIsRefused) {
  FakeOptions options;
  options.num_pages = 2;
  FakeEngine engine(options);
  EXPECT_EQ(
      SubmitError(engine, {.prompt_ids = Prompt(100), .max_tokens = 30}),
      "request: prompt of 100 and up to 30 output tokens need 3 KV pages, the cache has 2; lower "
      "max_tokens or raise kv_cache_bytes");
  // The last output token needs no KV; without a wish, what fits is what the cache holds.
  const RequestId exact = Submit(engine, {.prompt_ids = Prompt(100), .max_tokens = 29});
  const RequestId open = Submit(engine, {.prompt_ids = Prompt(100)});
  Answers answers = RunAll(engine.core());
  EXPECT_EQ(answers.Of(exact).ids.size(), 29u);
  EXPECT_EQ(answers.Of(open).ids.size(), 29u);
}

TEST(EngineCore, ChoicesWaitForPagesAndAllEnd) {
  FakeOptions options;
  options.num_pages = 2;
  FakeEngine engine(options);
  std::vector<RequestId> ids;
  for (int i = 0; i < 5; ++i)
    ids.push_back(Submit(engine, {.prompt_ids = Prompt(60), .max_tokens = 5, .seed = 1}));
  Answers answers;
  while (engine.core().HasWork()) {
    answers.Take(engine.core().Step());
    EXPECT_LE(engine.core().stats().scheduler.num_running, 2);
  }
  for (const RequestId id : ids) EXPECT_EQ(answers.Of(id).ids.size(), 5u);
  EXPECT_EQ(engine.pages().num_available(), 2);
}

TEST(EngineCore, CancelAtAnyStepFreesEverythingAndEndsOnce) {
  for (int cancel_at = 0; cancel_at < 14; ++cancel_at) {
    FakeOptions options;
    options.num_pages = 4;
    SetLimits(options, {.max_model_len = 256, .max_num_seqs = 2, .max_num_batched_tokens = 30});
    FakeEngine engine(options);
    const RequestId kept = Submit(engine, {.prompt_ids = Prompt(70), .max_tokens = 6, .seed = 1});
    const RequestId gone =
        Submit(engine, {.prompt_ids = Prompt(60), .max_tokens = 5, .seed = 1, .num_choices = 2});
    Answers answers;
    for (int i = 0; i < cancel_at; ++i) answers.Take(engine.core().Step());
    engine.core().Cancel(gone);
    engine.core().Cancel(gone);
    engine.core().Cancel({999});
    while (engine.core().HasWork()) answers.Take(engine.core().Step());
    EXPECT_TRUE(answers.order_faults.empty());
    EXPECT_EQ(answers.Of(kept).ids,
              Ids({}, {.prompt_ids = Prompt(70), .max_tokens = 6, .seed = 1}));
    for (int32_t choice = 0; choice < 2; ++choice) {
      ASSERT_TRUE(answers.Of(gone, choice).finish.has_value());
      const FinishReason reason = answers.Of(gone, choice).finish->reason;
      const bool whole = answers.Of(gone, choice).ids.size() == 5;
      EXPECT_EQ(reason, whole ? FinishReason::kLength : FinishReason::kCancelled);
    }
    EXPECT_EQ(engine.pages().num_available(), 4);
  }
}

TEST(EngineCore, ACancelledRequestThatWaitedHasOnlyItsFinish) {
  FakeEngine engine({});
  const RequestId id = Submit(engine, {.prompt_ids = Prompt(5), .max_tokens = 3});
  engine.core().Cancel(id);
  Answers answers = RunAll(engine.core());
  EXPECT_TRUE(answers.ready.empty());
  EXPECT_TRUE(answers.Of(id).ids.empty());
  EXPECT_EQ(answers.Of(id).finish->reason, FinishReason::kCancelled);
  EXPECT_TRUE(engine.pass_rows().empty());
}

// ---- how an output ends

// Always says the letters of `text`, then EOS.
FakeModel::LogitsFn Says(std::string text, size_t prompt_tokens) {
  return [text = std::move(text), prompt_tokens](std::span<const int32_t> tokens) {
    std::vector<float> row(kSmallVocabSize, 0.0f);
    const size_t at = tokens.size() - prompt_tokens;
    const int32_t id = at < text.size() ? kSmallByteId + static_cast<uint8_t>(text[at]) : 1;
    row[static_cast<size_t>(id)] = 50;
    return row;
  };
}

class EngineCoreText : public ::testing::Test {
 protected:
  void SetUp() override {
    auto tokenizer = Tokenizer::Parse(SmallTokenizerJson(), "small");
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    tokenizer_ = *std::move(tokenizer);
  }

  Answer Run(const std::string& text, Request request) {
    FakeOptions options;
    options.vocab_size = kSmallVocabSize;
    options.tokenizer = tokenizer_.get();
    request.prompt_ids = {0, 70};
    options.logits = Says(text, 2);
    FakeEngine engine(options);
    const RequestId id = Submit(engine, std::move(request));
    Answers answers;
    while (engine.core().HasWork()) {
      const std::vector<Event> events = engine.core().Step();
      answers.Take(events);
      for (const Event& event : events) {
        if (const auto* tokens = std::get_if<TokensEvent>(&event)) pieces_.push_back(tokens->text);
      }
    }
    return answers.Of(id);
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  std::vector<std::string> pieces_;
};

TEST_F(EngineCoreText, EndsAtEos) {
  const Answer answer = Run("hi there", {});
  EXPECT_EQ(answer.text, "hi there");
  EXPECT_EQ(answer.ids.back(), 1);  // ids are complete, text is for people
  EXPECT_EQ(answer.finish->reason, FinishReason::kStop);
  EXPECT_EQ(answer.finish->matched_token_id, 1);
}

TEST_F(EngineCoreText, IgnoreEosGoesOnToTheLimit) {
  const Answer answer = Run("hi", {.max_tokens = 6, .sampling = {.ignore_eos = true}});
  EXPECT_EQ(answer.ids.size(), 6u);
  EXPECT_EQ(answer.finish->reason, FinishReason::kLength);
}

TEST_F(EngineCoreText, MinTokensKeepsEosAway) {
  const Answer answer =
      Run("hi", {.max_tokens = 9, .sampling = {.min_tokens = 5, .temperature = 0}});
  EXPECT_EQ(answer.ids.size(), 6u);  // five others, then EOS
  EXPECT_EQ(answer.finish->reason, FinishReason::kStop);
}

TEST_F(EngineCoreText, AForcedEosBeforeMinTokensIsNoEnd) {
  const Answer answer =
      Run("hi", {.max_tokens = 4, .sampling = {.min_tokens = 3, .forced_token_ids = {1}}});
  EXPECT_EQ(answer.ids.size(), 4u);
}

TEST_F(EngineCoreText, StopIdEndsWithoutItsText) {
  const Request request{.sampling = {.stop_token_ids = {kSmallByteId + 't'}}};
  EXPECT_EQ(Run("hi there", request).text, "hi ");
  Request with = request;
  with.include_stop = true;
  const Answer answer = Run("hi there", with);
  EXPECT_EQ(answer.text, "hi t");
  EXPECT_EQ(answer.finish->matched_token_id, kSmallByteId + 't');
}

TEST_F(EngineCoreText, StopStringsAcrossTokensAreHeldBackAndCut) {
  const Answer answer = Run("ab END c", {.stop = {"END", "zz"}});
  EXPECT_EQ(answer.text, "ab ");
  EXPECT_EQ(answer.finish->reason, FinishReason::kStop);
  EXPECT_EQ(answer.finish->matched_stop, "END");
  EXPECT_EQ(answer.ids.size(), 6u);
  for (const std::string& piece : pieces_) EXPECT_EQ(piece.find('E'), std::string::npos);
  EXPECT_EQ(Run("ab END c", {.stop = {"END"}, .include_stop = true}).text, "ab END");
}

TEST_F(EngineCoreText, HeldTextComesOutWhenNoStopFollows) {
  EXPECT_EQ(Run("ab EN", {.stop = {"END"}}).text, "ab EN");
  EXPECT_EQ(Run("ab EN", {.max_tokens = 5, .stop = {"END"}}).text, "ab EN");
}

TEST_F(EngineCoreText, MinTokensLetsStopStringsPass) {
  const Answer answer = Run("END END", {.sampling = {.min_tokens = 3}, .stop = {"END"}});
  EXPECT_EQ(answer.text, "END ");
  EXPECT_EQ(answer.ids.size(), 7u);
}

TEST_F(EngineCoreText, TextNeverEndsInHalfACharacter) {
  const Answer answer = Run("a\xe2\x82\xac!", {});
  EXPECT_EQ(answer.text, "a\xe2\x82\xac!");
  EXPECT_EQ(pieces_, (std::vector<std::string>{"a", "", "", "\xe2\x82\xac", "!", ""}));
  EXPECT_EQ(Run("a\xe2\x82", {.max_tokens = 3}).text, "a\xef\xbf\xbd");
}

// Drafts that are right give several tokens in a step, each with its own piece of the text.
TEST_F(EngineCoreText, PiecesSayWhichTokenATextCameWith) {
  ScriptedDrafter drafter(2, kSmallVocabSize, [](const SequenceRun&) { return 2; });
  const std::string text = "a\xe2\x82\xac!bc";
  std::vector<int32_t> forced;
  for (const char c : text) forced.push_back(kSmallByteId + static_cast<uint8_t>(c));
  FakeOptions options;
  options.vocab_size = kSmallVocabSize;
  options.tokenizer = tokenizer_.get();
  options.drafter = &drafter;
  options.scheduler.num_drafts = 2;
  FakeEngine engine(options);
  Submit(engine, {.prompt_ids = {0, 70},
                  .max_tokens = static_cast<int32_t>(forced.size()),
                  .sampling = {.forced_token_ids = forced}});
  std::vector<std::string> pieces;
  size_t most = 0;
  while (engine.core().HasWork()) {
    for (const Event& event : engine.core().Step()) {
      const auto* tokens = std::get_if<TokensEvent>(&event);
      if (tokens == nullptr) continue;
      ASSERT_EQ(tokens->pieces.size(), tokens->ids.size());
      EXPECT_EQ(Join(tokens->pieces, ""), tokens->text);
      pieces.insert(pieces.end(), tokens->pieces.begin(), tokens->pieces.end());
      most = std::max(most, tokens->ids.size());
    }
  }
  EXPECT_EQ(most, 3u);
  EXPECT_EQ(pieces, (std::vector<std::string>{"a", "", "", "\xe2\x82\xac", "!", "b", "c"}));
}

// ---- rows that are no numbers

TEST(EngineCore, case_R03_case_R09_ABadRowEndsItsOwnRequestOnly) {
  const auto logits = [](std::span<const int32_t> tokens) {
    std::vector<float> row(16, 0.0f);
    row[2 + tokens.size() % 14] = 20;
    if (tokens[0] == 15 && tokens.size() == 6) row[9] = std::nanf("");
    return row;
  };
  FakeOptions options;
  options.logits = logits;
  FakeEngine engine(options);
  const RequestId good = Submit(engine, {.prompt_ids = {2, 3, 4}, .max_tokens = 8, .seed = 1});
  const RequestId bad = Submit(engine, {.prompt_ids = {15, 3, 4}, .max_tokens = 8, .seed = 1});
  const RequestId scored = Submit(
      engine, {.prompt_ids = Prompt(9, 13), .max_tokens = 1, .seed = 1, .prompt_logprobs = 0});
  ASSERT_EQ(Prompt(9, 13)[0], 15);
  Answers answers = RunAll(engine.core());
  EXPECT_TRUE(answers.order_faults.empty());
  EXPECT_EQ(answers.Of(good).ids.size(), 8u);
  EXPECT_EQ(answers.Of(bad).ids.size(), 3u);  // only tokens that were sampled
  ASSERT_TRUE(answers.Of(bad).failure.has_value());
  EXPECT_EQ(answers.Of(bad).failure->code, ErrorCode::kDataLoss);
  EXPECT_NE(answers.Of(bad).failure->message.find("position 6: logits: token 9"),
            std::string::npos);
  ASSERT_TRUE(answers.Of(scored).failure.has_value());
  EXPECT_EQ(engine.pages().num_held(), 0);
}

TEST(EngineCore, StepsThatComputedNothingTeachNothing) {
  FakeOptions options;
  options.pass_time = std::chrono::milliseconds(1);
  FakeEngine engine(options);
  Submit(engine, {.prompt_ids = Prompt(5), .max_tokens = 3});
  RunAll(engine.core());
  EXPECT_EQ(engine.scheduler().cost_model().num_steps(), 3);
  engine.model().FailNextPass();
  Submit(engine, {.prompt_ids = Prompt(5, 1), .max_tokens = 3});
  RunAll(engine.core());
  EXPECT_EQ(engine.scheduler().cost_model().num_steps(), 3);
}

// Three decode rows and a chunk of many rows in a pass that fails. Who has the token that makes
// passes fail, ends; the others go on, bit for bit.
TEST(EngineCore, AFailedPassEndsThoseWhoFailAlone) {
  for (const bool async : {false, true}) {
    FakeOptions options;
    options.async = async;
    FakeEngine engine(options);
    constexpr int32_t kBad = 15;
    const auto request = [](int32_t salt, int32_t length, std::vector<int32_t> forced) {
      return Request{.prompt_ids = Prompt(length, salt),
                     .max_tokens = static_cast<int32_t>(forced.size()),
                     .sampling = {.forced_token_ids = std::move(forced)},
                     .seed = 1};
    };
    const std::vector<int32_t> good(12, 3);
    std::vector<int32_t> bad = good;
    bad[5] = kBad;
    std::vector<RequestId> ids;
    ids.push_back(Submit(engine, request(0, 5, good)));
    ids.push_back(Submit(engine, request(1, 5, bad)));
    ids.push_back(Submit(engine, request(2, 5, good)));
    engine.model().FailToken(kBad);
    Answers answers;
    while (answers.Of(ids[1]).ids.size() < 6) answers.Take(engine.core().Step());
    // The row of bad[5] runs in the next pass, beside a chunk; planned ahead, perhaps before it.
    ids.push_back(Submit(engine, request(3, 40, good)));
    while (engine.core().HasWork()) answers.Take(engine.core().Step());
    EXPECT_TRUE(answers.order_faults.empty());
    for (const size_t i : {0u, 2u, 3u}) {
      EXPECT_FALSE(answers.Of(ids[i]).failure) << i;
      EXPECT_EQ(answers.Of(ids[i]).ids, good) << i;
    }
    ASSERT_TRUE(answers.Of(ids[1]).failure);
    EXPECT_EQ(answers.Of(ids[1]).failure->message, "layer 3: cannot read");
    if (!async) {
      EXPECT_EQ(engine.core().stats().scheduler.lost, 1);  // the chunk's
    }
    EXPECT_EQ(engine.core().stats().failures, 1);
    EXPECT_EQ(engine.pages().num_held(), 0);
  }
}

TEST(EngineCore, AChunkThatFailsAgainAloneEnds) {
  FakeEngine engine({});
  std::vector<int32_t> prompt = Prompt(40, 1);
  prompt[7] = 15;
  const std::vector<int32_t> answer(5, 3);
  const RequestId good = Submit(engine, {.prompt_ids = std::vector<int32_t>(20, 5),
                                         .max_tokens = 5,
                                         .sampling = {.forced_token_ids = answer}});
  const RequestId bad = Submit(engine, {.prompt_ids = prompt, .max_tokens = 5});
  engine.model().FailToken(15);
  Answers answers = RunAll(engine.core());
  EXPECT_TRUE(answers.Of(bad).failure);
  EXPECT_EQ(answers.Of(good).ids, answer);
  EXPECT_GE(engine.core().stats().scheduler.lost, 1);
  EXPECT_EQ(engine.pages().num_held(), 0);
}

TEST(EngineCore, AReadThatFailsOnceCostsNobodyTheAnswer) {
  FakeOptions options;
  options.scheduler.max_num_seqs = 2;
  FakeEngine engine(options);
  engine.model().FailPass(3);
  for (int32_t i = 0; i < 3; ++i) {
    Submit(engine, {.prompt_ids = Prompt(5, i), .max_tokens = 6, .seed = 1});
  }
  const Answers answers = RunAll(engine.core());
  EXPECT_TRUE(answers.order_faults.empty());
  for (const auto& [id, answer] : answers.choices) EXPECT_EQ(answer.ids.size(), 6u);
  EXPECT_EQ(engine.core().stats().failures, 0);
}

// The newest 64 steps, oldest first; a prompt of many rows marks a step.
TEST(EngineCore, StepTimesAreTheNewestOldestFirst) {
  FakeEngine engine({});
  EngineCore& core = engine.core();
  const auto run = [&](int32_t prompt, int32_t steps) {
    Request request{.prompt_ids = std::vector<int32_t>(static_cast<size_t>(prompt), 5),
                    .max_tokens = steps};
    ASSERT_TRUE(core.Submit(request).ok());
    RunAll(core);
  };
  const auto rows = [&] {
    std::vector<int32_t> all;
    for (const StepTimes& times : core.step_times()) all.push_back(times.rows);
    return all;
  };
  run(20, 64);
  std::vector<int32_t> expected(64, 1);
  expected.front() = 20;
  EXPECT_EQ(rows(), expected);
  run(11, 3);
  expected.front() = 1;
  expected[61] = 11;
  EXPECT_EQ(rows(), expected);
}

}  // namespace
}  // namespace deepinfer
