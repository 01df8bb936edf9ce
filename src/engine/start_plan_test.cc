// The plan of a start is what the start takes.
#include "engine/start_plan.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "engine/testing/tiny_engine.h"

namespace deepinfer {
namespace {

using testing::kTinyDir;
using testing::LoadTiny;
using testing::TinyDisk;

void ExpectTaken(const LoadedEngine& engine) {
  const StartPlan& plan = engine.start_plan();
  const WeightMemory weights = engine.placed_weights().memory();
  EXPECT_EQ(weights.packed, plan.weights.packed);
  EXPECT_EQ(weights.expert_slots, plan.weights.expert_slots);
  EXPECT_EQ(weights.engram, plan.weights.engram);
  const KvMemoryParts kv = engine.kv_memory().num_bytes();
  EXPECT_EQ(kv.pages, plan.kv.pages);
  EXPECT_EQ(kv.states, plan.kv.states);
  EXPECT_EQ(kv.host_pages, plan.kv.host_pages);
  EXPECT_EQ(kv.saves, plan.kv.saves);
  EXPECT_EQ(kv.slots, plan.kv.slots);
  // Scratch: model/scratch_plan_test.cc and StepAllocation.AStartTakesItsPlan.
  EXPECT_EQ(plan.total_bytes(), weights.total() + kv.total() + plan.scratch.total_bytes());
  EXPECT_EQ(DescribeStart(plan).total_bytes(), plan.total_bytes());
}

// From the configuration alone, as `inspect --plan` does it.
StatusOr<StartPlan> PlanOf(const std::string& config_path, const EngineOptions& options,
                           const StartMachine& machine) {
  DI_ASSIGN_OR_RETURN(const std::string text, RealDisk().ReadText(config_path));
  DI_ASSIGN_OR_RETURN(const ModelConfig config, ParseModelConfig(text, config_path));
  return PlanStart(options, config, machine);
}

TEST(StartPlan, IsWhatAnEngineTakes) {
  for (const EngineOptions& options : {
           EngineOptions{},
           EngineOptions{.variant = "ref", .max_num_seqs = 4, .engram = "ram"},
           EngineOptions{.max_num_seqs = 7,
           .max_num_batched_tokens = 100,
           .weights_cache = "/plan",
           .experts = "disk",
           .engram = "disk",
           .expert_cache_bytes = 200'000,
           .replay = "exact",
           .swa_slots = 3},
           EngineOptions{.weights_cache = "/plan",
           .experts = "mmap",
           .prefix_cache = false,
           .host_cache_bytes = 1 << 20},
           EngineOptions{.weights_cache = "/plan", .experts = "disk"},
       }) {
    ExpectTaken(*LoadTiny(options));
  }
}

TEST(StartPlan, OfTheBundledModelIsKnownFromItsConfiguration) {
  const std::string directory = StrCat(DI_SOURCE_DIR, "/models/nano");
  EngineOptions options = {
      .model = directory, .num_threads = 2, .max_num_seqs = 8, .grammar_workers = 0};
  const auto engine = LoadedEngine::Load(options, RealDisk(), RealRng());
  ASSERT_TRUE(engine.ok()) << engine.status();
  ExpectTaken(**engine);
  const auto plan = PlanOf(directory + "/config.json", options, {.num_threads = 2});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->total_bytes(), (*engine)->start_plan().total_bytes());
  EXPECT_GT(plan->weights.packed, 15'000'000);
}

TEST(StartPlan, OfTheRealShapeNeedsNoWeights) {
  const std::string config =
      StrCat(DI_SOURCE_DIR, "/src/model/testdata/deepseek_v41_flash_config.json");
  const auto plan_of = [&](const EngineOptions& options) {
    return PlanOf(config, options, {.num_threads = 16, .free_bytes = int64_t{512} << 30}).value();
  };
  const StartPlan plan = plan_of({});
  EXPECT_EQ(plan.kv.slots, 256 * int64_t{1'415'040});
  EXPECT_EQ(plan.slot_bytes, 1'415'040);
  EXPECT_EQ(plan.kv.pages, int64_t{1'073'741'824} / 56'960 * 56'960);
  EXPECT_EQ(plan.kv.host_pages, int64_t{268'435'456} / 56'960 * 56'960);
  EXPECT_EQ(plan.kv.states, 64 * int64_t{3'128'384});  // each at a multiple of 64 bytes
  EXPECT_EQ(plan.kv.saves, 17 * int64_t{3'128'384});
  EXPECT_LE(plan.scratch.index_bytes, int64_t{64} << 20);
  EXPECT_GT(plan.scratch.rows_bytes, 900'000'000);
  // 296 GB of experts, and of the rest what is multiplied.
  EXPECT_GT(plan.weights.packed, 300'000'000'000);
  EXPECT_LT(plan.weights.packed, 320'000'000'000);
  const StartPlan exact = plan_of({.replay = "exact"});
  EXPECT_EQ(exact.kv.slots, 256 * int64_t{3'128'384});
  // On disk: a quarter of what is free beside the rest.
  const StartPlan disk = plan_of({.weights_cache = "cache", .experts = "disk", .engram = "disk"});
  EXPECT_LT(disk.weights.packed, 20'000'000'000);
  EXPECT_NEAR(static_cast<double>(disk.weights.expert_slots),
              static_cast<double>((int64_t{512} << 30) - disk.weights.packed) / 4, 20e6);
  EXPECT_GT(disk.weights.engram, 0);
}

TEST(StartPlan, OptionsOutOfRangeAreNamedAsAtAStart) {
  const std::string config = StrCat(DI_SOURCE_DIR, "/tools/tiny/tiny.json");
  const auto error = [&](const EngineOptions& options) {
    return MessageOf(PlanOf(config, options, {}).status());
  };
  EXPECT_NE(error({.kv_cache_bytes = 5}).find("kv_cache_bytes: found 5"), std::string::npos);
  EXPECT_NE(error({.experts = "disk"}).find("--weights-cache"), std::string::npos);
  EXPECT_NE(error({.max_num_batched_tokens = 40'000}).find("40000"), std::string::npos);
}

}  // namespace
}  // namespace deepinfer
