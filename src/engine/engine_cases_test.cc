// What broke other engines, over the tiny model: hits, tiers, preemption, batches, bad numbers.
// Cases: cases/serving.md D, E; cases/release.md.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "engine/testing/fake_engine.h"
#include "engine/testing/tiny_engine.h"

namespace deepinfer {
namespace {

using testing::Answer;
using testing::Answers;
using testing::LoadTiny;
using testing::RunAll;
using testing::TinyPrompt;

Request Ask(int32_t prompt_length, int32_t salt, int32_t max_tokens, double temperature = 0) {
  return {.prompt_ids = TinyPrompt(prompt_length, salt),
          .max_tokens = max_tokens,
          .sampling = {.temperature = temperature, .ignore_eos = true, .logprobs = 2},
          .seed = 11};
}

struct Outcome {
  Answer answer;
  int32_t cached_tokens = 0;
};

Outcome RunOne(EngineCore& core, const Request& request) {
  const auto id = core.Submit(request);
  EXPECT_TRUE(id.ok()) << id.status();
  Answers answers = RunAll(core);
  EXPECT_FALSE(answers.Of(*id).failure.has_value()) << answers.Of(*id).failure->message;
  return {answers.Of(*id), answers.ready[*id].cached_tokens};
}

void ExpectSame(const Answer& a, const Answer& b) {
  EXPECT_EQ(a.ids, b.ids);
  EXPECT_EQ(a.text, b.text);
  ASSERT_EQ(a.logprobs.size(), b.logprobs.size());
  for (size_t i = 0; i < a.logprobs.size(); ++i) {
    EXPECT_EQ(a.logprobs[i].token.logprob, b.logprobs[i].token.logprob) << i;
    for (size_t t = 0; t < a.logprobs[i].top.size(); ++t) {
      EXPECT_EQ(a.logprobs[i].top[t].logprob, b.logprobs[i].top[t].logprob);
    }
  }
}

// The same request on an engine that has seen nothing.
Answer Cold(const Request& request, EngineOptions options = {.replay = "exact"}) {
  options.prefix_cache = false;
  return RunOne(LoadTiny(options)->core(), request).answer;
}

// ---- prefix hits

TEST(EngineCases, case_31_RepeatedLongPromptsWithOthersBetweenEqualTheColdRun) {
  const auto engine = LoadTiny({.max_model_len = 8192, .replay = "exact"});
  const Request request = Ask(7'700, 1, 24);
  const Answer cold = Cold(request, {.max_model_len = 8192, .replay = "exact"});
  for (int32_t repeat = 0; repeat < 4; ++repeat) {
    const auto id = engine->core().Submit(request);
    std::vector<RequestId> others;
    for (int32_t i = 0; i < 3; ++i) {
      others.push_back(*engine->core().Submit(Ask(100 + 70 * i, 10 * repeat + i, 20)));
    }
    Answers answers = RunAll(engine->core());
    ExpectSame(answers.Of(*id), cold);
    EXPECT_EQ(answers.ready[*id].cached_tokens, repeat == 0 ? 0 : 7'680);
  }
}

TEST(EngineCases, case_32_EveryFullPageBelowTheLastTokenIsFound) {
  for (const char* replay : {"exact", "bounded"}) {
    const auto engine = LoadTiny({.max_model_len = 8192, .replay = replay});
    for (const int32_t length : {65, 129, 257, 1'024, 2'048, 4'095}) {
      RunOne(engine->core(), Ask(length, length, 2));
      EXPECT_EQ(RunOne(engine->core(), Ask(length, length, 2)).cached_tokens,
                (length - 1) / kTokensPerPage * kTokensPerPage)
          << replay << " " << length;
    }
  }
}

// A conversation goes on: the answer's pages and its newest window state are found, too.
TEST(EngineCases, TheNextTurnOfAConversationHitsPromptAndAnswer) {
  const auto engine = LoadTiny({.max_model_len = 8192, .replay = "exact"});
  Request turn = Ask(150, 3, 100);
  for (int32_t i = 0; i < 3; ++i) {
    const Outcome outcome = RunOne(engine->core(), turn);
    ExpectSame(outcome.answer, Cold(turn));
    const auto before = static_cast<int32_t>(turn.prompt_ids.size());
    // All but the last few tokens of the turn before: its last page end is within a page of them.
    if (i > 0) {
      EXPECT_GE(outcome.cached_tokens, before - 20 - 64 - 1) << i;
    }
    const std::vector<int32_t>& ids = outcome.answer.ids;
    turn.prompt_ids.insert(turn.prompt_ids.end(), ids.begin(), ids.end());
    for (const int32_t id : TinyPrompt(20, 50 + i)) turn.prompt_ids.push_back(id);
  }
}

TEST(EngineCases, case_35_PagesThatWentToHostMemoryAndBackAreTheSame) {
  // Pages for one request on the device, room for all in host memory.
  const auto probe = LoadTiny({.replay = "exact"});
  const int64_t page_bytes = probe->kv_memory().shape().layout.page_bytes;
  const auto engine = LoadTiny({.max_model_len = 1024,
                                .kv_cache_bytes = 8 * page_bytes,
                                .replay = "exact",
                                .host_cache_bytes = 100 * page_bytes});
  for (int32_t round = 0; round < 2; ++round) {
    for (int32_t salt = 0; salt < 6; ++salt) {
      const Request request = Ask(400 + salt, salt, 30);
      const Outcome outcome = RunOne(engine->core(), request);
      ExpectSame(outcome.answer, Cold(request));
      EXPECT_EQ(outcome.cached_tokens, round == 0 ? 0 : 384);
    }
  }
  EXPECT_GE(engine->core().stats().scheduler.pages_loaded, 6 * 5);
}

TEST(EngineCases, TenantsAndSaltsNeverFindEachOthersPages) {
  const auto engine = LoadTiny({.replay = "exact"});
  Request request = Ask(300, 1, 2);
  const auto cached = [&](const std::string& tenant, const std::string& salt) {
    request.tenant = tenant;
    request.cache_salt = salt;
    return RunOne(engine->core(), request).cached_tokens;
  };
  EXPECT_EQ(cached("a", ""), 0);
  EXPECT_EQ(cached("a", ""), 256);
  EXPECT_EQ(cached("b", ""), 0);
  EXPECT_EQ(cached("a", "s"), 0);
  EXPECT_EQ(cached("a", "s"), 256);
  EXPECT_EQ(cached("as", ""), 0);
  EXPECT_EQ(cached("", "as"), 0);
}

// ---- bounded replay

double LargestDifference(const Answer& a, const Answer& b) {
  double largest = 0;
  const size_t n = std::min(a.logprobs.size(), b.logprobs.size());
  for (size_t i = 0; i < n; ++i) {
    if (a.logprobs[i].token.id != b.logprobs[i].token.id) break;
    largest =
        std::max(largest, std::abs(a.logprobs[i].token.logprob - b.logprobs[i].token.logprob));
  }
  return largest;
}

// Replay is an approximation: what it may change is bounded here, and nothing where all rows run.
TEST(EngineCases, case_37_BoundedHitsStayNearExactAndEqualItWhereAllRowsRun) {
  // The least KEEP: of this small model the usual one would reach through all its windows.
  const auto probe = LoadTiny({});
  const ReplayShape& shape = probe->core_options().scheduler.shape;
  const int32_t keep = shape.window + shape.verify_width;
  const auto bounded = LoadTiny({.max_model_len = 8192, .replay_keep = keep});
  double worst = 0;
  for (int32_t length = 1; length <= 400; length += length < 30 ? 7 : 29) {
    const Request request = Ask(length, length, 4);
    RunOne(bounded->core(), request);
    const Answer hit = RunOne(bounded->core(), request).answer;
    const Answer exact = Cold(request);
    if (length <= keep) {
      ExpectSame(hit, exact);
    } else {
      worst = std::max(worst, LargestDifference(hit, exact));
    }
  }
  RecordProperty("largest_logprob_difference", std::to_string(worst));
  EXPECT_LT(worst, 0.5);
  EXPECT_GT(worst, 0);  // it is the bounded path that ran
}

TEST(EngineCases, BoundedEqualsMaskForColdPromptsAndTheirDecoding) {
  const auto bounded = LoadTiny({.max_model_len = 8192, .prefix_cache = false});
  const auto mask = LoadTiny({.max_model_len = 8192, .replay = "mask", .prefix_cache = false});
  for (const int32_t length : {10, 139, 140, 141, 200, 333}) {
    const Request request = Ask(length, length, 30, 1.0);
    ExpectSame(RunOne(bounded->core(), request).answer, RunOne(mask->core(), request).answer);
  }
}

TEST(EngineCases, KeepBelowTheWindowIsRefusedWithTheLeastThatWorks) {
  const auto probe = LoadTiny({});
  const ReplayShape& shape = probe->core_options().scheduler.shape;
  const int32_t least = shape.window + shape.verify_width;
  for (const int32_t keep : {least - 1, least}) {
    const auto engine =
        LoadedEngine::Load({.model = testing::kTinyDir, .num_threads = 1, .replay_keep = keep},
                           testing::TinyDisk(), RealRng());
    EXPECT_EQ(engine.ok(), keep == least);
    if (engine.ok()) continue;
    EXPECT_NE(MessageOf(engine.status()).find(StrCat(least)), std::string::npos);
  }
}

TEST(EngineCases, case_R22_PromptLogprobsRunExactInABoundedEngine) {
  // The least KEEP, so that bounded rows would differ.
  const auto probe = LoadTiny({});
  const ReplayShape& shape = probe->core_options().scheduler.shape;
  const auto bounded =
      LoadTiny({.max_model_len = 8192, .replay_keep = shape.window + shape.verify_width});
  const auto exact = LoadTiny({.max_model_len = 8192, .replay = "exact"});
  Request request = Ask(500, 4, 3);
  request.prompt_logprobs = 1;
  request.num_choices = 2;
  const auto run = [&](LoadedEngine& engine) {
    RunOne(engine.core(), Ask(500, 4, 3));  // its pages are in the cache
    const auto id = engine.core().Submit(request);
    Answers answers = RunAll(engine.core());
    EXPECT_EQ(answers.ready[*id].cached_tokens, 0);
    EXPECT_EQ(answers.ready[*id].prompt_logprobs.size(), 499u);
    ExpectSame(answers.Of(*id, 0), answers.Of(*id, 1));  // greedy: the choices are alike
    return std::pair(answers.ready[*id].prompt_logprobs, answers.Of(*id));
  };
  const auto [a_prompt, a] = run(*bounded);
  const auto [b_prompt, b] = run(*exact);
  ExpectSame(a, b);
  for (size_t i = 0; i < a_prompt.size(); ++i) {
    ASSERT_EQ(a_prompt[i].token.logprob, b_prompt[i].token.logprob) << i;
  }
}

// ---- batches, order, preemption

TEST(EngineCases, case_46_OneGreedyPromptAloneAndAmongCopiesAndNoise) {
  const Request request = Ask(90, 7, 20);
  const Answer alone = Cold(request);
  for (const int32_t copies : {16, 64}) {
    for (const bool async : {false, true}) {
      const auto engine = LoadTiny({.max_num_seqs = 96, .replay = "exact", .async = async});
      std::vector<RequestId> ids;
      for (int32_t i = 0; i < copies; ++i) {
        ids.push_back(*engine->core().Submit(request));
        if (i % 4 == 0) {
          ASSERT_TRUE(engine->core().Submit(Ask(20 + i, 100 + i, 25, 1.0)).ok());
        }
      }
      Answers answers = RunAll(engine->core());
      for (const RequestId id : ids) ExpectSame(answers.Of(id), alone);
    }
  }
}

TEST(EngineCases, case_49_TheSameLogprobsUnderLoadInChunksFromTheCacheAndAfterPreemption) {
  for (const double temperature : {0.0, 1.0}) {
    const Request request = Ask(333, 5, 24, temperature);
    const Answer alone = Cold(request);
    for (const int32_t chunk : {64, 200, 2048}) {
      const auto engine =
          LoadTiny({.max_num_seqs = 64, .max_num_batched_tokens = chunk, .replay = "exact"});
      const RequestId id = *engine->core().Submit(request);
      for (int32_t i = 0; i < 63; ++i) {
        ASSERT_TRUE(engine->core().Submit(Ask(5 + i * 3, 200 + i, 8, 1.0)).ok());
      }
      Answers answers;
      for (int32_t step = 0; engine->core().HasWork(); ++step) {
        if (step % 9 == 5) engine->core().PreemptAll();
        answers.Take(engine->core().Step());
      }
      ExpectSame(answers.Of(id), alone);
      EXPECT_GT(engine->core().stats().scheduler.resumed, 0);
      const Outcome hit = RunOne(engine->core(), request);
      EXPECT_EQ(hit.cached_tokens, 320);
      ExpectSame(hit.answer, alone);
    }
  }
}

TEST(EngineCases, case_R17_TheSameSeedGivesTheSameTokensAndAnAbsentOneIsReported) {
  const auto engine = LoadTiny({.replay = "exact"});
  Request request = Ask(40, 2, 20, 1.0);
  request.seed.reset();
  const auto id = engine->core().Submit(request);
  Answers answers = RunAll(engine->core());
  request.seed = answers.ready[*id].seed;
  ExpectSame(RunOne(engine->core(), request).answer, answers.Of(*id));
}

// ---- containment

// Damage of each kind that a cache can have costs its hit and nothing else.
TEST(EngineCases, case_34_DamagedHostPagesCountAsAMissAndAreForgotten) {
  const auto probe = LoadTiny({.replay = "exact"});
  const int64_t page_bytes = probe->kv_memory().shape().layout.page_bytes;
  const auto engine = LoadTiny({.max_model_len = 1024,
                                .kv_cache_bytes = 8 * page_bytes,
                                .replay = "exact",
                                .host_cache_bytes = 100 * page_bytes});
  const Request first = Ask(400, 1, 4), second = Ask(400, 2, 4);
  RunOne(engine->core(), first);
  RunOne(engine->core(), second);  // takes the first one's pages
  for (int32_t page = 0; page < 100; ++page) engine->kv_memory_for_tests().DamageHostPage(page);
  const auto id = engine->core().Submit(first);
  const auto other = engine->core().Submit(Ask(50, 9, 4));
  Answers answers = RunAll(engine->core());
  ASSERT_FALSE(answers.Of(*id).failure.has_value()) << answers.Of(*id).failure->message;
  ExpectSame(answers.Of(*id), Cold(first));
  EXPECT_EQ(answers.ready[*id].cached_tokens, 0);
  ExpectSame(answers.Of(*other), Cold(Ask(50, 9, 4)));
  EXPECT_EQ(engine->core().stats().scheduler.lost, 1);
  // What was damaged is found no more; what was computed instead is.
  const Outcome again = RunOne(engine->core(), first);
  ExpectSame(again.answer, Cold(first));
  EXPECT_GT(again.cached_tokens, 0);
  EXPECT_EQ(engine->core().stats().scheduler.lost, 1);
}

TEST(EngineCases, case_34_DamagedSnapshotsCountAsAMiss) {
  for (const char* replay : {"exact", "bounded"}) {
    const auto engine = LoadTiny({.max_model_len = 1024, .replay = replay, .swa_slots = 8});
    const Request request = Ask(400, 1, 4);
    const Answer cold = RunOne(engine->core(), request).answer;
    for (int32_t slot = 0; slot < 8; ++slot) engine->kv_memory_for_tests().DamageSnapshot(slot);
    const Outcome again = RunOne(engine->core(), request);
    ExpectSame(again.answer, cold);
    EXPECT_EQ(again.cached_tokens, 0);
    EXPECT_EQ(engine->core().stats().scheduler.lost, 1);
    EXPECT_GT(RunOne(engine->core(), request).cached_tokens, 0);
    EXPECT_EQ(engine->core().stats().scheduler.lost, 1);
  }
}

// 2,000 random steps of the tiny model: everything ends, everything equals its cold run.
TEST(EngineCases, RandomStepsOfTheTinyModelEqualColdRuns) {
  SeededRng rng(3);
  const auto probe = LoadTiny({.replay = "exact"});
  const int64_t page_bytes = probe->kv_memory().shape().layout.page_bytes;
  const auto engine = LoadTiny({.max_model_len = 512,
                                .max_num_seqs = 6,
                                .max_num_batched_tokens = 128,
                                .kv_cache_bytes = 20 * page_bytes,
                                .replay = "exact",
                                .host_cache_bytes = 20 * page_bytes,
                                .swa_slots = 8});
  const auto reference = LoadTiny({.replay = "exact", .prefix_cache = false});
  const auto below = [&rng](uint64_t n) { return static_cast<int32_t>(rng.Uniform(n)); };
  std::map<RequestId, Request> sent;
  std::set<RequestId> cancelled;
  Answers answers;
  int64_t steps = 0, compared = 0;
  for (; steps < 2'000 || engine->core().HasWork(); ++steps) {
    if (steps < 2'000 && below(4) == 0) {
      const Request request = Ask(1 + below(3) * 64 + below(60), below(3), 1 + below(30), 0.7);
      if (const auto id = engine->core().Submit(request); id.ok()) sent[*id] = request;
    }
    if (below(60) == 0 && !sent.empty()) {
      const RequestId id = sent.rbegin()->first;
      cancelled.insert(id);
      engine->core().Cancel(id);
    }
    if (below(25) == 0) engine->core().PreemptAll();
    answers.Take(engine->core().Step());
    engine->core().scheduler().CheckInvariants();
  }
  ASSERT_TRUE(answers.order_faults.empty()) << answers.order_faults[0];
  for (const auto& [id, request] : sent) {
    if (cancelled.contains(id) || ++compared % 3 != 0) continue;  // a third of them, for the time
    ExpectSame(answers.Of(id), RunOne(reference->core(), request).answer);
  }
  const SchedulerStats stats = engine->core().stats().scheduler;
  EXPECT_GT(stats.resumed, 20);
  EXPECT_GT(stats.cached_tokens, 1'000);
  EXPECT_GT(stats.pages_loaded, 20);
  EXPECT_EQ(engine->core().scheduler().pages().num_held(), 0);
}

}  // namespace
}  // namespace deepinfer
