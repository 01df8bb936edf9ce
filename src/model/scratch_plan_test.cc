// A step allocates nothing: the program counts every allocation of every thread.
#include <gtest/gtest.h>

#include <thread>

#include "base/testing/allocation_counter.h"
#include "kernels/cpu/features.h"
#include "kernels/cpu/scratch.h"
#include "model/expert_cache.h"
#include "model/placed_weights.h"
#include "model/testing/test_model.h"

namespace deepinfer {
namespace {

#define SKIP_UNDER_SANITIZERS() \
  if (!CountsAllocations()) GTEST_SKIP() << "skipped: sanitizer"

int64_t CountOf(FunctionRef<void()> body) {
  int64_t count = 0;
  {
    AllocationCounter counter;
    body();
    count = counter.count();
    if (count > 0) counter.PrintFirst();
  }
  return count;
}

constexpr auto kGreedy = [](int32_t, int32_t, std::span<const float> logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
};

// Sequences in all phases, and one pass over them after the other: a prefill chunk, a replay of the
// decoder, a chunk with an image, a decode row, and verification rows of which all but one are
// rejected.
class MixedLoad {
 public:
  static constexpr int32_t kContext = 400, kChunk = 23, kReplay = 12;

  explicit MixedLoad(TestModel& test, Model& model)
      : model_(model), width_(model.kv_shape().verify_width) {
    for (uint64_t i = 0; i < 5; ++i) {
      sequences_.push_back(std::make_unique<TestSequence>(
          model, TestTokens(kContext, test.config().vocab_size, 60 + i)));
    }
    image_mask_.assign(kContext, 0);
    std::fill_n(image_mask_.begin() + 3, 200, uint8_t{1});
    image_.assign(static_cast<size_t>(test.config().hidden_size), ToBf16(0.25f));
    image_rows_.assign(kContext, image_.data());
    batch_.segments.resize(5);
    drafts_.resize(2);
    const auto block = static_cast<size_t>(test.config().dspark_block_size);
    for (Draft& draft : drafts_) {
      draft.tokens.reserve(block);
      draft.confidences.reserve(block);
    }
    snapshot_.resize(static_cast<size_t>(model.kv_shape().AllRingBytes()));
  }

  ReserveShape Shape() const {
    return {.max_rows = 2 * kChunk + kReplay + 1 + width_,
            .max_logits_rows = 2 + kReplay + 1 + width_,
            .max_draft_requests = 2,
            .max_context = kContext};
  }
  // Passes until a sequence is full.
  int32_t num_passes() const { return kContext / kChunk - 1; }

  void Run(int32_t pass, ForwardObserver* observer = nullptr) {
    const int32_t begin = pass * kChunk, end = begin + kChunk;
    ForwardSegment& chunk = batch_.segments[0] = sequences_[0]->Segment(begin, end);
    chunk.logits_begin = end - 1;
    chunk.snapshot = {snapshot_.data(), model_.kv_shape().num_rings, end - 5};
    ForwardSegment& image = batch_.segments[1] = sequences_[1]->Segment(begin, end);
    image.logits_begin = end - 1;
    image.image_mask = image_mask_.data();
    image.image_rows = image_rows_.data();
    ForwardSegment& replay = batch_.segments[2] = sequences_[2]->Segment(begin, begin + kReplay);
    replay.window_begin = replay.decoder_window_begin = begin;
    replay.keep_entries_below = replay.keep_rings_below = begin + 3;
    batch_.segments[3] = sequences_[3]->Segment(pass, pass + 1);
    batch_.segments[4] = sequences_[4]->Segment(pass, pass + width_);
    CHECK(model_.Forward(batch_, observer).ok());
    const DraftRequest requests[] = {{&sequences_[3]->kv(), 17, pass + 1},
                                     {&sequences_[4]->kv(), 18, pass + 1}};
    CHECK(model_.Propose(requests, kGreedy, drafts_).ok());
  }

 private:
  Model& model_;
  const int32_t width_;
  std::vector<std::unique_ptr<TestSequence>> sequences_;
  std::vector<uint8_t> image_mask_, snapshot_;
  std::vector<bf16> image_;
  std::vector<const bf16*> image_rows_;
  ForwardBatch batch_;
  std::vector<Draft> drafts_;
};

class Allocations : public ::testing::TestWithParam<std::tuple<const char*, VariantId>> {
 protected:
  void SetUp() override {
    const VariantId variant = std::get<1>(GetParam());
    const std::string missing = MissingFeatures(variant);
    if (!missing.empty()) GTEST_SKIP() << "skipped: no " << missing;
    SKIP_UNDER_SANITIZERS();
    test_ = std::make_unique<TestModel>(std::get<0>(GetParam()), variant, 2);
  }
  std::unique_ptr<TestModel> test_;
};

// The passes grow the context from nothing to the limit; the first of them has no warm-up.
TEST_P(Allocations, case_53_AfterReserveNoPassUpToTheLimitAllocates) {
  const std::unique_ptr<Model> model = test_->MakeModel(int64_t{1} << 20);
  MixedLoad load(*test_, *model);
  model->Reserve(load.Shape());
  for (int32_t pass = 0; pass < load.num_passes(); ++pass) {
    ASSERT_EQ(CountOf([&] { load.Run(pass); }), 0) << "pass " << pass;
  }
}

// The same with weights that are not in memory as a whole: read or asked for in every pass, experts
// in several rounds of few slots, too.
TEST_P(Allocations, case_53_WeightsFromTheDiskAllocateNothingEither) {
  const auto cache_options = [&](bool keep) {
    return PackOptions{.cache_directory = "cache", .disk = &test_->disk(), .keep_experts = keep};
  };
  const auto packed = PackedWeights::Load(test_->checkpoint(), cache_options(false)).value();
  const int64_t slot = CountExperts(packed->weights(), packed->layout()).slot_bytes;
  for (const PlacementOptions& options :
       {PlacementOptions{.experts = WeightPlace::kMmap, .engram = WeightPlace::kRam},
        PlacementOptions{.experts = WeightPlace::kMmap, .engram = WeightPlace::kMmap},
        PlacementOptions{.experts = WeightPlace::kDisk,
        .engram = WeightPlace::kDisk,
        .expert_cache_bytes = 8 * slot}}) {
    const auto placed =
        PlacedWeights::Place(test_->disk(), test_->checkpoint(), packed.get(), options).value();
    const std::unique_ptr<Model> model = test_->MakeModel(*placed);
    MixedLoad load(*test_, *model);
    model->Reserve(load.Shape());
    const int64_t taken = placed->memory().total();
    for (int32_t pass = 0; pass < load.num_passes(); ++pass) {
      ASSERT_EQ(CountOf([&] { load.Run(pass); }), 0) << placed->Description() << " pass " << pass;
    }
    EXPECT_EQ(placed->memory().total(), taken);
    EXPECT_GT(placed->expert_source()->counts().fetched, 100);
  }
}

// Memory grows with the passes, then it is there.
TEST_P(Allocations, WithoutReserveAPassThatWasRunBeforeAllocatesNothing) {
  MixedLoad load(*test_, test_->model());
  load.Run(load.num_passes() - 1);  // the longest rows
  for (int32_t pass = 0; pass < load.num_passes(); ++pass) load.Run(pass);
  int64_t count = 0;
  for (int32_t pass = 0; pass < load.num_passes(); ++pass)
    count += CountOf([&] { load.Run(pass); });
  EXPECT_EQ(count, 0);
}

class OneAllocation : public ForwardObserver {
 public:
  void LayerInput(int32_t layer, const RowSet&, bf16*, float*) override {
    if (layer == 3) kept_ = std::make_unique<std::array<char, 100>>();
  }

 private:
  std::unique_ptr<std::array<char, 100>> kept_;
};

TEST_P(Allocations, OneInsideAPassIsSeen) {
  const std::unique_ptr<Model> model = test_->MakeModel(int64_t{1} << 20);
  MixedLoad load(*test_, *model);
  model->Reserve(load.Shape());
  OneAllocation observer;
  AllocationCounter counter;
  load.Run(0, &observer);
  EXPECT_EQ(counter.count(), 1);
}

// A plan is made before anything is taken.
TEST_P(Allocations, ThePlanSaysWhatReserveTakes) {
  const auto [name, variant] = GetParam();
  ThreadPool threads(2);
  const ModelConfig& config = test_->config();
  const ReserveShape shape = {
      .max_rows = 100, .max_logits_rows = 20, .max_draft_requests = 3, .max_context = 5000};
  const ScratchPlan plan =
      Model::PlanScratch(config, {.variant = variant, .num_threads = 2}, shape);
  Model model(config, test_->weights(), std::vector<int32_t>(size_t(config.vocab_size)),
              {.backend = {.variant = variant, .threads = &threads}});
  int64_t taken = 0;
  std::thread([&] {  // a new thread has no scratch yet
    AllocationCounter counter;
    model.Reserve(shape);
    taken = counter.kept_bytes();
  })
      .join();
  EXPECT_GE(taken, plan.total_bytes());
  EXPECT_LE(taken, plan.total_bytes() + plan.total_bytes() / 20 + 16384);
  EXPECT_LT(plan.index_bytes, plan.threads_bytes);
}

// The sizes of a plan are bounds, but not far from what passes use.
TEST_P(Allocations, ThreadsUseMostOfTheirPlannedScratch) {
  MixedLoad load(*test_, test_->model());
  const ScratchPlan plan = Model::PlanScratch(
      test_->config(), {.variant = std::get<1>(GetParam()), .num_threads = 2}, load.Shape());
  ThreadScratch::Mine().ResetPeak();
  for (int32_t pass = 0; pass < load.num_passes(); ++pass) load.Run(pass);
  EXPECT_LE(ThreadScratch::Mine().peak_bytes(), plan.threads_bytes);
  EXPECT_GT(ThreadScratch::Mine().peak_bytes(), plan.threads_bytes / 8);
}

INSTANTIATE_TEST_SUITE_P(Model, Allocations,
                         ::testing::Combine(::testing::Values("tiny", "stress_a"),
                                            ::testing::Values(kAvx2Variant, kAvx512Variant)));

// Tokens, scores and drafts are the same whatever the budget, with contexts past the candidate
// filter.
TEST(IndexBudget, TiledEqualsUntiledBitForBit) {
  TestModel test("tiny");
  const std::vector<int32_t> tokens = TestTokens(600, test.config().vocab_size, 70);
  const auto run = [&](int64_t budget) {
    const std::unique_ptr<Model> model = test.MakeModel(budget);
    return TestSequence(*model, tokens).RunInChunks({500, 1, 99});
  };
  const std::vector<float> untiled = run(0);
  for (const int64_t budget : {1, 20000}) {
    const std::vector<float> tiled = run(budget);
    EXPECT_EQ(std::memcmp(tiled.data(), untiled.data(), untiled.size() * sizeof(float)), 0);
  }
}

// Unbounded scores would be 6 x T x N bytes: 96 GiB.
TEST(IndexBudget, case_51_PlannedScratchOf16kRowsAt1MTokensStaysBelowTheBudget) {
  const std::string json =
      RealDisk()
          .ReadText(StrCat(DI_SOURCE_DIR, "/src/model/testdata/deepseek_v41_flash_config.json"))
          .value();
  const ModelConfig config = ParseModelConfig(json, "config.json").value();
  for (const int64_t budget : {int64_t{1} << 20, int64_t{8} << 20, int64_t{64} << 20}) {
    const ScratchOptions options = {.num_threads = 2, .index_scratch_bytes = budget};
    const ReserveShape shape = {.max_rows = 16384,
                                .max_logits_rows = 256,
                                .max_draft_requests = 256,
                                .max_context = 1048576};
    const ScratchPlan plan = Model::PlanScratch(config, options, shape);
    EXPECT_LE(plan.index_bytes, budget);
    EXPECT_GT(plan.index_bytes, budget / 2);
    ReserveShape short_one = shape;
    short_one.max_context = 65536;
    EXPECT_LE(Model::PlanScratch(config, options, short_one).index_bytes, plan.index_bytes);
  }
}

}  // namespace
}  // namespace deepinfer
