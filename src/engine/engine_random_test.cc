// Random lives of many requests: whatever happens, every result is right and nothing leaks.
//
// FakeModel proves with every row that pages, rings and snapshots are the sequence's own (cases 34
// and R01); here the ends are counted, the tokens compared, and what is left at the end.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>

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
using testing::LanguageOf;

constexpr int32_t kVocab = 16;

// What a request gives when nothing goes wrong: the model's logits, sampled one by one.
std::vector<int32_t> Expected(const Request& request, int32_t choice, int32_t max_output) {
  Sampler sampler;
  SequenceSampling sampling(request.sampling, *request.seed + static_cast<uint64_t>(choice),
                            {FakeModel::kEos}, request.prompt_ids);
  FakeConstraint constraint(LanguageOf(request.structured), kVocab);
  const bool structured = request.structured.kind != StructuredOutput::Kind::kNone;
  std::vector<int32_t> tokens = request.prompt_ids;
  while (sampling.num_output() < max_output) {
    uint32_t mask = 0;
    const bool masked = structured && constraint.FillMask({&mask, 1});
    const std::vector<float> row = FakeModel::LogitsAfter(tokens, kVocab);
    const auto token = sampler.Sample(sampling, row, std::ssize(tokens), masked ? &mask : nullptr);
    tokens.push_back(token->id);
    sampling.Accept(token->id);
    if (token->id == FakeModel::kEos) break;
    EXPECT_TRUE(!structured || constraint.Accept(token->id));
  }
  return {tokens.begin() + std::ssize(request.prompt_ids), tokens.end()};
}

struct Sent {
  Request request;
  bool cancelled = false;
};

class RandomLife {
 public:
  RandomLife(uint64_t seed, ReplayMode mode, bool async)
      : rng_(seed),
        // Some masks come too late, whatever the pace of the mask threads: a step later.
        grammars_(kVocab,
                  [this] {
                    if (mask_count_.fetch_add(1) % 40 != 0) return;
                    const int64_t ready_at = num_steps_ + 2;
                    while (num_steps_ < ready_at && !over_) std::this_thread::yield();
                  }),
        drafter_(FakeModel::kDraftLength, kVocab,
                 [this](const SequenceRun&) { return accept_rng_.Uniform(6); }),
        engine_(Options(seed, mode, async)) {}
  ~RandomLife() { over_ = true; }

  void Run(int64_t num_steps) {
    for (int64_t step = 0; step < num_steps; ++step) {
      if (Chance(3)) SubmitOne();
      if (Chance(40)) CancelOne();
      if (Chance(60)) engine_.core().PreemptAll();
      if (grammars_.num_held() > 0 && Chance(6)) grammars_.FinishOne();
      if (Chance(500)) engine_.core().ClearCache();
      if (Chance(100)) engine_.model().FailNextPasses(1 + Below(4));
      engine_.clock().Advance(std::chrono::milliseconds(1));
      Step();
      engine_.scheduler().CheckInvariants();
      if (step % 512 == 0) CheckEnded();
    }
    while (engine_.core().HasWork()) {
      if (grammars_.num_held() > 0) grammars_.FinishOne();
      Step();
    }
    CheckEnded();
    CheckNothingLeft();
  }

  EngineStats stats() const { return stats_; }

 private:
  FakeOptions Options(uint64_t seed, ReplayMode mode, bool async) {
    FakeOptions options;
    options.vocab_size = kVocab;
    options.num_pages = 14;
    options.num_host_pages = 10;
    options.num_saves = 2;
    options.num_slots = 6;
    options.scheduler = {.max_num_seqs = 6,
                         .max_num_batched_tokens = 90,
                         .max_model_len = 400,
                         .max_waiting = 24,
                         .num_drafts = FakeModel::kDraftLength,
                         .replay = mode};
    options.async = async;
    options.threads = &threads_;
    options.drafter = &drafter_;
    options.grammars = &grammars_;
    options.masks = {};
    grammars_.Hold();
    options.rng_seed = seed;
    return options;
  }

  bool Chance(uint64_t one_in) { return rng_.Uniform(one_in) == 0; }
  int32_t Below(int32_t bound) {
    return static_cast<int32_t>(rng_.Uniform(static_cast<uint64_t>(bound)));
  }

  void Step() {
    answers_.Take(engine_.core().Step());
    ++num_steps_;
  }

  // Prompts that begin alike in many ways.
  std::vector<int32_t> MakePrompt() {
    std::vector<int32_t> ids;
    const int32_t family = Below(3), shared = Below(4) * 64 + Below(3) * 20;
    for (int32_t i = 0; i < shared; ++i) ids.push_back(2 + (i * 5 + family * 3) % 14);
    for (int32_t i = 1 + Below(60); i > 0; --i) ids.push_back(2 + Below(14));
    return ids;
  }

  void SubmitOne() {
    Request request = {.prompt_ids = MakePrompt(),
                       .max_tokens = 1 + Below(90),
                       .sampling = {.temperature = Below(2) * 0.8},
                       .seed = rng_.NextU64() % 1000,
                       .num_choices = 1 + Below(8) / 6,
                       .tenant = std::string(1, static_cast<char>('a' + Below(2))),
                       .priority = Below(10) / 8};
    if (Chance(3)) {
      for (int32_t i = Below(40); i > 0; --i) {
        request.sampling.forced_token_ids.push_back(2 + Below(14));
      }
    }
    if (Chance(3)) {
      const int32_t least = Below(30);
      FakeLanguage language = {.least = least, .most = least + Below(20)};
      if (Chance(2)) language.start = 2 + Below(14);
      request.structured = FakeStructured(language);
      request.sampling.min_tokens = Below(2) * Below(*request.max_tokens + 1);
    }
    if (Chance(10)) request.prompt_logprobs = 0;
    if (Chance(20)) request.start_deadline_ms = Below(20);
    const auto id = engine_.core().Submit(request);
    if (!id.ok()) {
      EXPECT_EQ(id.status().code(), StatusCode::kResourceExhausted) << id.status();
      return;
    }
    sent_[*id] = {std::move(request)};
  }

  void CancelOne() {
    if (sent_.empty()) return;
    auto at = sent_.begin();
    std::advance(at, Below(static_cast<int32_t>(sent_.size())));
    at->second.cancelled = true;
    engine_.core().Cancel(at->first);
  }

  // Requests that have ended are compared and forgotten.
  void CheckEnded() {
    stats_ = engine_.core().stats();
    ASSERT_TRUE(answers_.order_faults.empty()) << answers_.order_faults[0];
    for (auto at = sent_.begin(); at != sent_.end();) {
      bool ended = true;
      for (int32_t choice = 0; choice < at->second.request.num_choices; ++choice) {
        const Answer& answer = answers_.Of(at->first, choice);
        ended &= answer.finish || answer.failure;
      }
      if (!ended) {
        ++at;
        continue;
      }
      for (int32_t choice = 0; choice < at->second.request.num_choices; ++choice) {
        Compare(at->second, choice, answers_.Of(at->first, choice));
        answers_.choices.erase({at->first, choice});
      }
      at = sent_.erase(at);
    }
    if (!engine_.core().HasWork()) {
      EXPECT_TRUE(sent_.empty()) << "requests without an end";
    }
  }

  void Compare(const Sent& sent, int32_t choice, const Answer& answer) {
    const std::vector<int32_t> expected = Expected(sent.request, choice, *sent.request.max_tokens);
    const bool whole = answer.finish && answer.finish->reason != FinishReason::kCancelled;
    ASSERT_LE(answer.ids.size(), expected.size());
    for (size_t i = 0; i < answer.ids.size(); ++i) ASSERT_EQ(answer.ids[i], expected[i]) << i;
    if (whole) {
      EXPECT_EQ(answer.ids.size(), expected.size());
    }
    if (answer.finish && !whole) {
      EXPECT_TRUE(sent.cancelled);
    }
  }

  void CheckNothingLeft() {
    const Scheduler& scheduler = engine_.scheduler();
    EXPECT_EQ(scheduler.pages().num_held(), 0);
    EXPECT_EQ(scheduler.host().num_pinned(), 0);
    EXPECT_EQ(scheduler.snapshots().num_writing(), 0);
    EXPECT_EQ(scheduler.snapshots().num_pinned(), 0);
    EXPECT_EQ(scheduler.num_free_states(), 6);
    EXPECT_EQ(scheduler.num_free_saves(), 2);
  }

  SeededRng rng_;
  std::atomic<int64_t> mask_count_{0}, num_steps_{0};
  std::atomic<bool> over_ = false;  // no step comes that a late mask could wait for
  FakeGrammarSource grammars_;
  SeededRng accept_rng_{5};  // the executing thread's
  ScriptedDrafter drafter_;
  ThreadPool threads_{2};
  FakeEngine engine_;
  Answers answers_;
  std::map<RequestId, Sent> sent_;
  EngineStats stats_;
};

class EngineRandom : public ::testing::TestWithParam<std::tuple<ReplayMode, bool>> {};

TEST_P(EngineRandom, case_R01_NothingLeaksInARandomLife) {
  const auto [mode, async] = GetParam();
  EngineStats sum;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    RandomLife life(seed, mode, async);
    life.Run(6000);
    if (HasFatalFailure()) return;
    const EngineStats stats = life.stats();
    sum.steps += stats.steps;
    sum.drafts_accepted += stats.drafts_accepted;
    sum.masks += stats.masks;
    sum.masks_late += stats.masks_late;
    sum.failures += stats.failures;
    sum.scheduler.lost += stats.scheduler.lost;
    sum.scheduler.preempted += stats.scheduler.preempted;
    sum.scheduler.resumed += stats.scheduler.resumed;
    sum.scheduler.preempt_recomputed += stats.scheduler.preempt_recomputed;
    sum.scheduler.cached_tokens += stats.scheduler.cached_tokens;
    sum.scheduler.hits_with_slot += stats.scheduler.hits_with_slot;
    sum.scheduler.hits_replayed += stats.scheduler.hits_replayed;
    sum.scheduler.pages_loaded += stats.scheduler.pages_loaded;
  }
  // Each thing that this is about has happened.
  EXPECT_GT(sum.steps, 10'000);
  EXPECT_GT(sum.drafts_accepted, 100);
  EXPECT_GT(sum.masks, 10'000);
  EXPECT_GT(sum.masks_late, 100);
  EXPECT_GT(sum.failures, 20);
  EXPECT_GT(sum.scheduler.lost, 20);
  EXPECT_GT(sum.scheduler.preempted, 100);
  EXPECT_GT(sum.scheduler.resumed, 100);
  EXPECT_GT(sum.scheduler.cached_tokens, 1000);
  EXPECT_GT(sum.scheduler.hits_with_slot, 10);
  EXPECT_GT(sum.scheduler.hits_replayed, mode == ReplayMode::kExact ? -1 : 10);
  EXPECT_GT(sum.scheduler.pages_loaded, 100);
}

INSTANTIATE_TEST_SUITE_P(Modes, EngineRandom,
                         ::testing::Combine(::testing::Values(ReplayMode::kExact,
                                                              ReplayMode::kBounded),
                                            ::testing::Bool()));

}  // namespace
}  // namespace deepinfer
