// Structured output inside the engine: builds beside prefill, masks beside the pass, how it ends.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "engine/scripted_drafter.h"
#include "engine/testing/fake_engine.h"
#include "engine/testing/fake_grammar.h"

namespace deepinfer {
namespace {

using testing::Answer;
using testing::Answers;
using testing::FakeConstraint;
using testing::FakeEngine;
using testing::FakeGrammarSource;
using testing::FakeLanguage;
using testing::FakeModel;
using testing::FakeOptions;
using testing::FakeStructured;
using testing::RunAll;

constexpr int32_t kVocab = 16, kEos = FakeModel::kEos;

std::vector<int32_t> Prompt(int32_t length, int32_t salt = 0) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < length; ++i) ids.push_back(2 + (i * 7 + salt) % 14);
  return ids;
}

Request Ask(const FakeLanguage& language, int32_t max_tokens = 20) {
  return {.prompt_ids = Prompt(5),
          .max_tokens = max_tokens,
          .structured = FakeStructured(language),
          .seed = 7};
}

RequestId Submit(FakeEngine& engine, Request request) {
  const auto id = engine.core().Submit(std::move(request));
  EXPECT_TRUE(id.ok()) << id.status();
  return id.ok() ? *id : RequestId{-1};
}

FakeOptions With(ConstraintSource& source) {
  FakeOptions options;
  options.grammars = &source;
  return options;
}

Answer AnswerTo(Request request) {
  FakeGrammarSource source(kVocab);
  FakeEngine engine(With(source));
  const RequestId id = Submit(engine, std::move(request));
  Answers answers = RunAll(engine.core());
  EXPECT_TRUE(answers.order_faults.empty());
  EXPECT_EQ(engine.pages().num_held(), 0);
  return answers.Of(id);
}

// Whether the language has this as the beginning of an output; with EOS, as a whole one.
void ExpectFits(const FakeLanguage& language, const std::vector<int32_t>& ids) {
  FakeConstraint constraint(language, kVocab);
  for (size_t i = 0; i < ids.size(); ++i) ASSERT_TRUE(constraint.Accept(ids[i])) << "token " << i;
}

// ---- what comes out

TEST(EngineGrammar, EveryTokenIsOneThatTheGrammarAllows) {
  const FakeLanguage language = {.least = 9, .most = 9};
  const Answer answer = AnswerTo(Ask(language));
  ExpectFits(language, answer.ids);
  EXPECT_EQ(answer.ids.size(), 10u);
  EXPECT_EQ(answer.finish->reason, FinishReason::kStop);
  EXPECT_EQ(answer.finish->matched_token_id, kEos);
}

TEST(EngineGrammar, WithoutOneTheSameRequestSaysOtherThings) {
  Request request = Ask({.least = 9, .most = 9});
  request.structured = {};
  FakeConstraint constraint({.least = 9, .most = 9}, kVocab);
  bool fits = true;
  for (const int32_t id : AnswerTo(request).ids) fits = fits && constraint.Accept(id);
  EXPECT_FALSE(fits);
}

TEST(EngineGrammar, MaxTokensCutsIt) {
  const Answer answer = AnswerTo(Ask({.least = 9}, 4));
  EXPECT_EQ(answer.ids.size(), 4u);
  EXPECT_EQ(answer.finish->reason, FinishReason::kLength);
}

TEST(EngineGrammar, EveryChoiceHasAConstraintOfItsOwn) {
  FakeGrammarSource source(kVocab);
  FakeEngine engine(With(source));
  const FakeLanguage language = {.least = 6, .most = 6};
  Request request = Ask(language);
  request.num_choices = 4;
  const RequestId id = Submit(engine, request);
  Answers answers = RunAll(engine.core());
  EXPECT_TRUE(answers.order_faults.empty());
  for (int32_t choice = 0; choice < 4; ++choice) {
    ExpectFits(language, answers.Of(id, choice).ids);
    EXPECT_EQ(answers.Of(id, choice).ids.size(), 7u);
  }
  EXPECT_NE(answers.Of(id, 0).ids, answers.Of(id, 1).ids);
}

TEST(EngineGrammar, BehindABoundTokenOnly) {
  const FakeLanguage language = {.least = 3, .most = 3, .start = 11};
  Request request = Ask(language);
  request.sampling.forced_token_ids = {2, 2, 2, 11};
  const Answer answer = AnswerTo(request);
  EXPECT_EQ(answer.ids.size(), 8u);
  ExpectFits(language, answer.ids);
}

// ---- parameters beside it

TEST(EngineGrammar, AForcedTokenThatItForbidsIsNotForced) {
  const FakeLanguage language = {.least = 3, .most = 3};
  Request request = Ask(language);
  request.sampling.forced_token_ids = {3, 3, 4};  // the second may not come
  const Answer answer = AnswerTo(request);
  ExpectFits(language, answer.ids);
  EXPECT_EQ(answer.ids[0], 3);
  EXPECT_NE(answer.ids[1], 3);
  EXPECT_EQ(answer.ids[2], 4);
}

TEST(EngineGrammar, ItsEndIsTheEndEvenWithIgnoreEos) {
  Request request = Ask({.least = 3, .most = 3});
  request.sampling.ignore_eos = true;
  const Answer answer = AnswerTo(request);
  EXPECT_EQ(answer.ids.size(), 4u);
  EXPECT_EQ(answer.finish->reason, FinishReason::kStop);
}

TEST(EngineGrammar, WhereItIsFreeAnIgnoredEosIsATokenLikeOthers) {
  Request request = Ask({.least = 1, .most = 1, .start = 11});
  request.sampling.ignore_eos = true;
  request.sampling.forced_token_ids = {kEos, kEos, 11};
  const Answer answer = AnswerTo(request);
  EXPECT_EQ(answer.ids.size(), 5u);
  EXPECT_EQ(answer.finish->reason, FinishReason::kStop);
}

TEST(EngineGrammar, MinTokensKeepsItFromEndingWhereItNeedNot) {
  Request request = Ask({.least = 1, .most = 9});
  request.sampling.min_tokens = 6;
  request.sampling.logit_bias = {{kEos, 100}};  // it is the likeliest
  for (int32_t id = 2; id < kVocab; ++id) request.sampling.logit_bias.emplace_back(id, -100);
  request.sampling.temperature = 0;
  for (const bool ignore_eos : {false, true}) {
    request.sampling.ignore_eos = ignore_eos;
    EXPECT_EQ(AnswerTo(request).ids.size(), 7u);  // EOS at the first chance
  }
}

TEST(EngineGrammar, WhereItMustEndMinTokensDoesNotCount) {
  Request request = Ask({.least = 3, .most = 3});
  request.sampling.min_tokens = 6;
  const Answer answer = AnswerTo(request);
  EXPECT_EQ(answer.ids.size(), 4u);
  EXPECT_EQ(answer.finish->reason, FinishReason::kStop);
}

TEST(EngineGrammar, AStopIdEndsItEarly) {
  Request request = Ask({.least = 9});
  request.sampling.stop_token_ids = {3, 6, 9, 12, 15};  // all that may come first
  const Answer answer = AnswerTo(request);
  EXPECT_EQ(answer.ids.size(), 1u);
  EXPECT_EQ(answer.finish->reason, FinishReason::kStop);
}

TEST(EngineGrammar, ABiasBringsNothingBackThatItForbids) {
  Request request = Ask({.least = 4, .most = 4});
  for (int32_t id = 0; id < kVocab; ++id) {
    request.sampling.logit_bias.emplace_back(id, id % 3 == 0 ? -100 : 100);
  }
  ExpectFits({.least = 4, .most = 4}, AnswerTo(request).ids);
}

TEST(EngineGrammar, BansThatLeaveNothingFailTheirRequestOnly) {
  FakeGrammarSource source(kVocab);
  FakeEngine engine(With(source));
  Request request = Ask({.least = 4, .most = 4});
  request.sampling.banned_token_ids = {2, 5, 8, 11, 14};  // all that may come second
  const RequestId bad = Submit(engine, request);
  const RequestId good = Submit(engine, Ask({.least = 4, .most = 4}));
  Answers answers = RunAll(engine.core());
  ASSERT_TRUE(answers.Of(bad).failure.has_value());
  EXPECT_EQ(answers.Of(bad).failure->code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(answers.Of(bad).failure->message,
            "position 6: banned_token_ids: all that the grammar allows here is banned");
  EXPECT_EQ(answers.Of(good).ids.size(), 5u);
  EXPECT_EQ(engine.pages().num_held(), 0);
}

TEST(EngineGrammar, LogprobsAreThoseOfTheModel) {
  Request request = Ask({.least = 4, .most = 4});
  request.sampling.logprobs = 0;
  const Answer with = AnswerTo(request);
  request.structured = {};
  request.sampling.forced_token_ids = with.ids;
  const Answer without = AnswerTo(request);
  ASSERT_EQ(with.logprobs.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(with.logprobs[i].token.logprob, without.logprobs[i].token.logprob);
  }
}

// ---- its build

TEST(EngineGrammar, ReadyComesOnceItIsThereAndTheRestOfTheEngineGoesOn) {
  FakeGrammarSource source(kVocab);
  source.Hold();
  FakeOptions options = With(source);
  options.scheduler.max_num_batched_tokens = 40;
  FakeEngine engine(options);
  Request request = Ask({.least = 4, .most = 4});
  request.prompt_ids = Prompt(100);
  const RequestId id = Submit(engine, request);
  EXPECT_EQ(source.num_held(), 1);
  Answers answers;
  for (int i = 0; i < 8; ++i) answers.Take(engine.core().Step());
  EXPECT_EQ(engine.model().num_rows(), 100);  // its prompt, and no more
  EXPECT_FALSE(answers.ready.contains(id));
  EXPECT_TRUE(engine.core().HasWork());
  const RequestId other = Submit(engine, {.prompt_ids = Prompt(5, 3), .max_tokens = 6, .seed = 1});
  for (int i = 0; i < 8; ++i) answers.Take(engine.core().Step());
  EXPECT_EQ(answers.Of(other).ids.size(), 6u);
  EXPECT_FALSE(answers.ready.contains(id));
  source.FinishOne();
  while (engine.core().HasWork()) answers.Take(engine.core().Step());
  EXPECT_TRUE(answers.order_faults.empty());
  EXPECT_TRUE(answers.ready.contains(id));
  ExpectFits({.least = 4, .most = 4}, answers.Of(id).ids);
  EXPECT_EQ(answers.Of(id).ids.size(), 5u);
  EXPECT_EQ(engine.core().stats().masks_late, 0);
}

TEST(EngineGrammar, AFailedBuildIsOneFailureAndNoReady) {
  struct Try {
    Status status;
    ErrorCode code;
  };
  for (const Try& t : {Try{InvalidArgument("no"), ErrorCode::kInvalidArgument},
                       Try{Unimplemented("no"), ErrorCode::kUnsupportedSchema},
                       Try{ResourceExhausted("no"), ErrorCode::kResourceExhausted}}) {
    for (int steps = 0; steps < 5; ++steps) {
      FakeGrammarSource source(kVocab);
      source.Hold();
      FakeOptions options = With(source);
      options.scheduler.max_num_batched_tokens = 40;
      FakeEngine engine(options);
      Request request = Ask({});
      request.prompt_ids = Prompt(100);
      request.num_choices = 3;
      const RequestId bad = Submit(engine, request);
      const RequestId good = Submit(engine, {.prompt_ids = Prompt(9), .max_tokens = 6, .seed = 1});
      Answers answers;
      for (int i = 0; i < steps; ++i) answers.Take(engine.core().Step());
      source.FailOne(t.status);
      while (engine.core().HasWork()) answers.Take(engine.core().Step());
      EXPECT_FALSE(answers.ready.contains(bad));
      ASSERT_TRUE(answers.Of(bad).failure.has_value());
      EXPECT_EQ(answers.Of(bad).failure->code, t.code);
      EXPECT_EQ(answers.Of(bad).failure->message, "no");
      for (const int32_t choice : {1, 2}) {
        EXPECT_FALSE(answers.Of(bad, choice).failure || answers.Of(bad, choice).finish);
      }
      EXPECT_EQ(answers.Of(good).ids.size(), 6u);
      EXPECT_EQ(engine.pages().num_held(), 0);
    }
  }
}

TEST(EngineGrammar, CancelInEveryStateGivesAllBack) {
  for (int steps = 0; steps < 12; ++steps) {
    for (const int finish_at : {0, 2, 5, 100}) {  // 100: after the cancel
      FakeGrammarSource source(kVocab);
      source.Hold();
      FakeOptions options = With(source);
      options.scheduler.max_num_batched_tokens = 40;
      FakeEngine engine(options);
      Request request = Ask({.least = 4, .most = 4});
      request.prompt_ids = Prompt(100);
      request.num_choices = 2;
      const RequestId gone = Submit(engine, request);
      Answers answers;
      for (int i = 0; i < steps; ++i) {
        if (i == finish_at) source.FinishOne();
        answers.Take(engine.core().Step());
      }
      engine.core().Cancel(gone);
      if (source.num_held() > 0) source.FinishOne();
      while (engine.core().HasWork()) answers.Take(engine.core().Step());
      EXPECT_TRUE(answers.order_faults.empty());
      for (const int32_t choice : {0, 1}) {
        EXPECT_TRUE(answers.Of(gone, choice).finish.has_value());
      }
      EXPECT_EQ(engine.pages().num_held(), 0);
      EXPECT_EQ(engine.scheduler().num_free_states(), 8);
    }
  }
}

TEST(EngineGrammar, AnEngineThatBuildsNoneRefuses) {
  FakeEngine engine({});
  const auto refused = engine.core().Submit(Ask({}));
  EXPECT_EQ(MessageOf(refused.status()),
            "structured output: this engine builds no grammars; it needs a tokenizer, and "
            "grammar_workers of at least 1");
  EXPECT_EQ(refused.status().code(), StatusCode::kFailedPrecondition);
}

TEST(EngineGrammar, IdsThatTheModelDoesNotHaveAreNamed) {
  FakeGrammarSource source(kVocab);
  FakeEngine engine(With(source));
  Request request = Ask({.start = 16});
  EXPECT_EQ(MessageOf(engine.core().Submit(request).status()),
            "bound_token_id: found token id 16, the model has 0..15");
  request = Ask({});
  request.structured.trigger_token_ids = {3, -1};
  EXPECT_EQ(MessageOf(engine.core().Submit(request).status()),
            "trigger_token_ids: found token id -1, the model has 0..15");
}

// What only scores its prompt needs no grammar.
TEST(EngineGrammar, ScoringBuildsNothing) {
  FakeGrammarSource source(kVocab);
  source.Hold();
  FakeEngine engine(With(source));
  Request request = Ask({}, 0);
  request.prompt_logprobs = 0;
  Submit(engine, request);
  EXPECT_EQ(source.num_held(), 0);
  RunAll(engine.core());
}

// ---- late masks

// Holds up every mask until it is opened.
class Gate {
 public:
  void Pass() {
    std::unique_lock lock(mutex_);
    ++num_waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_ || tickets_ > 0; });
    if (!open_) --tickets_;
    --num_waiting_;
  }
  void LetThrough(int count) {
    const std::lock_guard lock(mutex_);
    tickets_ += count;
    changed_.notify_all();
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void AwaitSomebody() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return num_waiting_ > 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int tickets_ = 0, num_waiting_ = 0;
  bool open_ = false;
};

class EngineGrammarLate : public ::testing::TestWithParam<bool> {};

TEST_P(EngineGrammarLate, RowsSitOutWhileOthersGoOnAndGiveTheSame) {
  Gate gate;
  FakeGrammarSource source(kVocab, [&] { gate.Pass(); });
  FakeOptions options = With(source);
  options.async = GetParam();
  options.masks.wait_least = Duration(0);
  FakeEngine engine(options);
  Request request = Ask({.least = 6, .most = 6});
  request.sampling.logprobs = 2;
  const RequestId slow = Submit(engine, request);
  const Request free{.prompt_ids = Prompt(9, 4), .max_tokens = 30, .seed = 2};
  const RequestId other = Submit(engine, free);
  Answers answers;
  while (!answers.Of(other).finish) answers.Take(engine.core().Step());
  EXPECT_EQ(answers.Of(other).ids.size(), 30u);
  EXPECT_EQ(answers.Of(slow).ids.size(), 0u);
  EXPECT_GE(engine.core().stats().masks_late, 28);
  gate.LetThrough(2);  // two of its tokens, then it waits again
  while (answers.Of(slow).ids.size() < 2) answers.Take(engine.core().Step());
  for (int i = 0; i < 5; ++i) answers.Take(engine.core().Step());
  EXPECT_EQ(answers.Of(slow).ids.size(), 2u);
  gate.Open();
  while (engine.core().HasWork()) answers.Take(engine.core().Step());
  EXPECT_TRUE(answers.order_faults.empty());
  const Answer alone = AnswerTo(request);
  EXPECT_EQ(answers.Of(slow).ids, alone.ids);
  ASSERT_EQ(answers.Of(slow).logprobs.size(), 7u);
  for (size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(answers.Of(slow).logprobs[i].token.logprob, alone.logprobs[i].token.logprob);
  }
  Request again = free;
  EXPECT_EQ(answers.Of(other).ids, AnswerTo(again).ids);
  EXPECT_EQ(engine.core().stats().masks, 7);
  EXPECT_EQ(engine.pages().num_held(), 0);
}

TEST_P(EngineGrammarLate, ARowThatEndsAPageLeavesItsSnapshotThoughItSitsOut) {
  Gate gate;
  FakeGrammarSource source(kVocab, [&] { gate.Pass(); });
  FakeOptions options = With(source);
  options.async = GetParam();
  options.masks.wait_least = Duration(0);
  FakeEngine engine(options);
  Request request = Ask({.least = 6, .most = 6});
  request.prompt_ids = Prompt(62);
  const RequestId id = Submit(engine, request);
  gate.LetThrough(2);
  Answers answers;
  while (answers.Of(id).ids.size() < 2) answers.Take(engine.core().Step());
  for (int i = 0; i < 4; ++i) answers.Take(engine.core().Step());
  EXPECT_EQ(answers.Of(id).ids.size(), 2u);  // position 63 runs again and again
  EXPECT_EQ(engine.core().stats().scheduler.snapshots_taken, 1);
  gate.Open();
  while (engine.core().HasWork()) answers.Take(engine.core().Step());
  EXPECT_EQ(answers.Of(id).ids.size(), 7u);
}

TEST_P(EngineGrammarLate, CancelledWhileItsMaskIsComputedItIsGoneAtOnce) {
  Gate gate;
  FakeGrammarSource source(kVocab, [&] { gate.Pass(); });
  FakeOptions options = With(source);
  options.async = GetParam();
  options.masks.wait_least = Duration(0);
  FakeEngine engine(options);
  const RequestId slow = Submit(engine, Ask({.least = 6, .most = 6}));
  Answers answers;
  for (int i = 0; i < 4; ++i) answers.Take(engine.core().Step());
  gate.AwaitSomebody();
  engine.core().Cancel(slow);
  while (engine.core().HasWork()) answers.Take(engine.core().Step());
  EXPECT_EQ(answers.Of(slow).finish->reason, FinishReason::kCancelled);
  EXPECT_EQ(engine.pages().num_held(), 0);
  gate.Open();
}

INSTANTIATE_TEST_SUITE_P(Modes, EngineGrammarLate, ::testing::Bool());

// ---- what may go wrong inside

// Refuses what its mask allowed.
class LyingConstraint : public TokenConstraint {
 public:
  bool FillMask(std::span<uint32_t>) override { return false; }
  bool Accept(int32_t) override { return false; }
  void Rollback(int32_t) override {}
};
class LyingSource : public ConstraintSource {
 public:
  void Build(const StructuredOutput&, Done done) override {
    done(ConstraintMaker([] { return std::make_unique<LyingConstraint>(); }));
  }
};

TEST(EngineGrammar, AConstraintThatContradictsItselfFailsItsRequestOnly) {
  LyingSource source;
  FakeEngine engine(With(source));
  const RequestId bad = Submit(engine, Ask({}));
  const RequestId good = Submit(engine, {.prompt_ids = Prompt(9), .max_tokens = 6, .seed = 1});
  Answers answers = RunAll(engine.core());
  ASSERT_TRUE(answers.Of(bad).failure.has_value());
  EXPECT_EQ(answers.Of(bad).failure->code, ErrorCode::kInternal);
  EXPECT_EQ(answers.Of(bad).ids.size(), 1u);
  EXPECT_EQ(answers.Of(good).ids.size(), 6u);
  EXPECT_EQ(engine.pages().num_held(), 0);
}

// ---- preemption

TEST(EngineGrammar, PreemptedOrComputedAnewItGoesOnWhereItWas) {
  const FakeLanguage language = {.least = 30, .most = 30};
  const Answer alone = AnswerTo(Ask(language, 50));
  for (const int32_t num_saves : {4, 0}) {  // 0: computed anew
    FakeGrammarSource source(kVocab);
    FakeOptions options = With(source);
    options.num_saves = num_saves;
    FakeEngine engine(options);
    const RequestId id = Submit(engine, Ask(language, 50));
    Answers answers;
    for (int step = 0; engine.core().HasWork(); ++step) {
      if (step % 3 == 2) engine.core().PreemptAll();
      answers.Take(engine.core().Step());
    }
    EXPECT_EQ(answers.Of(id).ids, alone.ids);
    const SchedulerStats stats = engine.core().stats().scheduler;
    EXPECT_GT(num_saves > 0 ? stats.resumed : stats.preempt_recomputed, 5);
  }
}

}  // namespace
}  // namespace deepinfer
