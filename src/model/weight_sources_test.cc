// Weights that are not all in memory: whatever the place, the same bits; and what a bad disk does.
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "kernels/formats/panels.h"
#include "model/expert_cache.h"
#include "model/expert_rounds.h"
#include "model/mapped_experts.h"
#include "model/placed_weights.h"
#include "model/testing/test_model.h"

namespace deepinfer {
namespace {

// Writes the packed image of the weights as file "image".
void WriteImage(TestModel& model, const PackedLayout& layout) {
  std::string image(static_cast<size_t>(layout.image_bytes()), '\0');
  ModelWeights weights = model.weights();
  const std::vector<Matrix*> matrices = PackedMatrices(weights);
  for (size_t i = 0; i < matrices.size(); ++i) {
    if (matrices[i]->panels == nullptr) continue;
    std::memcpy(image.data() + layout.entries()[i].offset, matrices[i]->panels,
                static_cast<size_t>(layout.entries()[i].bytes));
  }
  CHECK(model.disk().WriteText("image", image).ok());
}

// A model, its packed image on a disk, and models over the same weights in other places.
class Places {
 public:
  explicit Places(const std::string& name) : model_(name), layout_(model_.weights()) {
    WriteImage(model_, layout_);
    image_ = model_.disk().OpenRead("image").value();
  }

  std::unique_ptr<EngramSource> Engram(WeightPlace place) {
    return MakeEngramSource(place, FindEngramTables(model_.checkpoint())).value();
  }
  std::unique_ptr<ExpertCache> Cache(int32_t num_slots) {
    return ExpertCache::Create(model_.weights(), {&layout_, "image", {image_.get(), 0}, {}},
                               num_slots)
        .value();
  }
  TestModel& model() { return model_; }
  SimulatedDisk& disk() { return model_.disk(); }
  const ModelConfig& config() const { return model_.config(); }
  const PackedLayout& layout() const { return layout_; }

 private:
  TestModel model_;
  PackedLayout layout_;
  std::unique_ptr<ReadableFile> image_;
};

class WeightPlaces : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Model, WeightPlaces, ::testing::Values("tiny", "stress_a"));

TEST_P(WeightPlaces, EveryCombinationGivesTheSameBits) {
  Places places(GetParam());
  const std::vector<float> expected = RunEverything(places.model().model());
  for (const WeightPlace engram : {WeightPlace::kRam, WeightPlace::kMmap, WeightPlace::kDisk}) {
    const auto tables = places.Engram(engram);
    std::vector<std::unique_ptr<ExpertSource>> sources;
    sources.push_back(nullptr);
    sources.push_back(MakeMappedExperts(places.model().weights()));
    for (const int32_t num_slots : {2, 5, 1000}) sources.push_back(places.Cache(num_slots));
    for (size_t i = 0; i < sources.size(); ++i) {
      const auto model = places.model().MakeModel(tables.get(), sources[i].get());
      EXPECT_TRUE(RunEverything(*model) == expected) << static_cast<int>(engram) << " " << i;
    }
  }
}

TEST_P(WeightPlaces, ACacheThatHoldsAllReadsEachExpertOnce) {
  Places places(GetParam());
  const auto cache = places.Cache(1000);
  const auto model = places.model().MakeModel(nullptr, cache.get());
  RunEverything(*model);
  const ExpertCounts first = cache->counts();
  EXPECT_GT(first.read, 0);
  EXPECT_LE(first.read, CountExperts(places.model().weights(), places.layout()).num_experts);
  EXPECT_GT(first.hit_rate(), 0);
  RunEverything(*model);
  EXPECT_EQ(cache->counts().read, first.read);
  EXPECT_EQ(cache->counts().bytes_read, first.bytes_read);
  EXPECT_EQ(cache->counts().fetched, 2 * first.fetched);
}

TEST(ExpertCache, KeepsTheMostRecentlyUsedAndNoMore) {
  Places places("tiny");
  const auto cache = places.Cache(3);
  EXPECT_EQ(cache->memory_bytes(),
            3 * CountExperts(places.model().weights(), places.layout()).slot_bytes);
  std::vector<ExpertMatrices> matrices(8);
  // How many of the experts had to be read.
  const auto fetch = [&](int32_t block, std::vector<int32_t> experts) {
    const int64_t before = cache->counts().read;
    const auto one = cache->NewFetch(8);
    one->Start(block, experts);
    EXPECT_TRUE(one->Wait(matrices.data()).ok());
    return cache->counts().read - before;
  };
  EXPECT_EQ(fetch(0, {1, 2, 3}), 3);
  EXPECT_EQ(fetch(0, {1}), 0);
  EXPECT_EQ(fetch(8, {1}), 1);  // a draft block's, in place of 2
  EXPECT_EQ(fetch(0, {3, 1}), 0);
  EXPECT_EQ(fetch(0, {2}), 1);  // in place of the draft block's
  EXPECT_EQ(fetch(0, {3, 1}), 0);
  EXPECT_EQ(fetch(0, {4, 2}), 1);  // 2 is the oldest but asked for, so 3 makes room
  EXPECT_EQ(fetch(0, {1, 2, 4}), 0);
  EXPECT_EQ(fetch(0, {3}), 1);
}

TEST(ExpertCache, HoldsWhatThePackedWeightsHold) {
  Places places("tiny");
  const auto cache = places.Cache(4);
  std::vector<ExpertMatrices> matrices(8);
  const std::vector<int32_t> experts = {3, 0};
  for (const int32_t block : {0, 7, 9}) {
    const auto& packed = BlockOf(places.model().weights(), block).experts;
    const auto fetch = cache->NewFetch(2);
    fetch->Start(block, experts);
    ASSERT_TRUE(fetch->Wait(matrices.data()).ok());
    for (const int32_t e : experts) {
      const auto at = static_cast<size_t>(e);
      for (const auto which : {&ExpertMatrices::w1, &ExpertMatrices::w3, &ExpertMatrices::w2}) {
        const Matrix &got = matrices[at].*which, &want = packed[at].*which;
        ASSERT_NE(got.panels, want.panels);
        EXPECT_EQ(std::memcmp(got.panels, want.panels,
                              static_cast<size_t>(PackedBytes(want.format, want.rows, want.cols))),
                  0);
      }
    }
  }
}

// Rounds over a source that a test watches.
TEST(ExpertRounds, NeverHoldMoreThanTheCapacity) {
  struct Watched : ExpertSource {
    struct Fetch : ExpertFetch {
      Fetch(Watched& source, int32_t max_experts)
          : source(source), inner(source.all->NewFetch(max_experts)) {}
      ~Fetch() override { End(); }
      void Start(int32_t block, std::span<const int32_t> experts) override {
        for (const int32_t e : experts) EXPECT_TRUE(source.seen.insert(e).second);
        EXPECT_EQ(size, 0);
        size = std::ssize(experts);
        source.held += size;
        source.held_max = std::max(source.held_max, source.held);
        inner->Start(block, experts);
      }
      Status Wait(ExpertMatrices* matrices) override { return inner->Wait(matrices); }
      void End() override {
        source.held -= std::exchange(size, 0);
        inner->End();
      }
      Watched& source;
      std::unique_ptr<ExpertFetch> inner;
      int64_t size = 0;
    };
    int32_t capacity() const override { return 5; }
    std::unique_ptr<ExpertFetch> NewFetch(int32_t max_experts) override {
      return std::make_unique<Fetch>(*this, max_experts);
    }
    int64_t memory_bytes() const override { return 0; }
    std::unique_ptr<ExpertSource> all;
    std::set<int32_t> seen;
    int64_t held = 0, held_max = 0;
  };
  TestModel model("stress_a");
  Watched source;
  source.all = MakeMappedExperts(model.weights());
  const int32_t dim = model.config().hidden_size, topk = model.config().num_experts_per_tok;
  std::vector<int32_t> experts;
  for (int32_t i = 0; i < 4 * topk; ++i) experts.push_back(i * 7 % 100);
  std::vector<bf16> x(static_cast<size_t>(4 * dim), ToBf16(0.5f));
  std::vector<float> weights(experts.size(), 1.0f);
  std::vector<bf16> y(experts.size() * static_cast<size_t>(dim)), want = y;
  const Backend backend;
  ExpertsParams params = {.num_tokens = 4,
                          .dim = dim,
                          .inner = model.config().moe_intermediate_size,
                          .num_experts = model.config().n_routed_experts,
                          .topk = topk,
                          .x = x.data(),
                          .experts = experts.data(),
                          .weights = weights.data(),
                          .matrices = model.weights().layers[0].experts.data(),
                          .y = want.data()};
  Experts(backend, params);
  params.y = y.data();
  ExpertRounds rounds(source, params.num_experts);
  rounds.Begin(0, params);
  EXPECT_TRUE(rounds.Run(backend).ok());
  EXPECT_TRUE(y == want);
  EXPECT_EQ(source.seen.size(), std::set<int32_t>(experts.begin(), experts.end()).size());
  EXPECT_EQ(source.held, 0);
  EXPECT_LE(source.held_max, 5);
}

// A byte of the disk that cannot be read fails the passes that need it, and only those.
class FailingDisk : public ::testing::Test {
 protected:
  // Sees what a pass needs.
  struct Needs : ForwardObserver {
    void EngramRows(int32_t table, const RowSet&, const int32_t* rows) override {
      if (table == 1) engram_row = rows[0];
    }
    void Routes(int32_t layer, const RowSet&, const int32_t* experts, const float*) override {
      if (layer == 3) expert = experts[0];
    }
    int32_t engram_row = -1, expert = -1;
  };

  void SetUp() override {
    expected_ = RunEverything(places_.model().model());
    TestSequence sequence(places_.model(), tokens_);
    ASSERT_TRUE(places_.model().model().Forward({{sequence.Segment(0, 30)}}, &needs_).ok());
  }
  Status Run(Model& model) {
    TestSequence sequence(model, tokens_);
    return model.Forward({{sequence.Segment(0, 30)}}).status();
  }

  Places places_{"tiny"};
  const std::vector<int32_t> tokens_ = TestTokens(30, places_.config().vocab_size, 9);
  Needs needs_;
  std::vector<float> expected_;
};

TEST_F(FailingDisk, AnExpertThatCannotBeReadFailsItsPass) {
  for (const int32_t num_slots : {2, 100}) {
    const auto cache = places_.Cache(num_slots);
    const auto model = places_.model().MakeModel(nullptr, cache.get());
    places_.disk().FailReadsAt("image", places_.layout().Expert(3, needs_.expert).offset + 5);
    for (int turn = 0; turn < 2; ++turn) {
      const Status status = Run(*model);
      EXPECT_EQ(status.code(), StatusCode::kInternal);
      EXPECT_EQ(MessageOf(status), "experts of block 3: image: cannot read: Input/output error");
    }
    places_.disk().FailReadsAt("image", -1);
    EXPECT_TRUE(RunEverything(*model) == expected_);
  }
}

// What the engine does after such a pass: up to verify_width rows overwrite nothing that they read,
// whatever layers had run.
TEST_F(FailingDisk, AFewRowsRunAgainAfterAFailedPassAsIfNothingHadHappened) {
  constexpr int32_t kBegin = 61;
  const std::vector<int32_t> tokens = TestTokens(80, places_.config().vocab_size, 9);
  const auto cache = places_.Cache(2);
  const auto model = places_.model().MakeModel(nullptr, cache.get());
  for (const int32_t rows : {1, model->kv_shape().verify_width}) {
    TestSequence calm(places_.model(), tokens), tried(*model, tokens);
    calm.Run(0, kBegin);
    tried.Run(0, kBegin);
    const ForwardBatch batch = {{calm.Segment(kBegin, kBegin + rows)}};
    const auto logits = places_.model().model().Forward(batch, &needs_).value();
    const std::vector<float> expected(logits.begin(), logits.end());
    places_.disk().FailReadsAt("image", places_.layout().Expert(3, needs_.expert).offset + 5);
    EXPECT_FALSE(model->Forward({{tried.Segment(kBegin, kBegin + rows)}}).ok());
    places_.disk().FailReadsAt("image", -1);
    EXPECT_TRUE(tried.Run(kBegin, kBegin + rows) == expected) << rows;
    EXPECT_TRUE(tried.Run(kBegin + rows, 80) == calm.Run(kBegin + rows, 80)) << rows;
  }
}

TEST_F(FailingDisk, AnExpertOfTheDraftThatCannotBeReadFailsItsProposal) {
  const auto cache = places_.Cache(4);
  const auto model = places_.model().MakeModel(nullptr, cache.get());
  TestSequence sequence(*model, tokens_);
  sequence.Run(0, 30);
  const DraftRequest request = {&sequence.kv(), 17, 30};
  const auto choose = [](int32_t, int32_t, std::span<const float>) { return 5; };
  int num_failed = 0;
  for (int32_t expert = 0; expert < places_.config().dspark_n_routed_experts; ++expert) {
    const int32_t block = places_.config().num_hidden_layers + 1;
    places_.disk().FailReadsAt("image", places_.layout().Expert(block, expert).offset);
    const auto drafts = model->Propose(std::span(&request, 1), choose);
    if (drafts.ok()) continue;  // nobody chose it, or it is in its slot
    ++num_failed;
    EXPECT_TRUE(MessageOf(drafts.status()).starts_with("experts of block 9: "));
  }
  EXPECT_GT(num_failed, 0);
  places_.disk().FailReadsAt("image", -1);
  EXPECT_TRUE(RunEverything(*model) == expected_);
}

TEST_F(FailingDisk, AnEngramRowThatCannotBeReadFailsItsPass) {
  const auto tables = places_.Engram(WeightPlace::kDisk);
  const auto model = places_.model().MakeModel(tables.get(), nullptr);
  const FilePlace place = FindEngramTables(places_.model().checkpoint())[1].data;
  const int64_t bad = place.offset + needs_.engram_row * int64_t{places_.config().engram_head_dim};
  const auto fail_at = [&](int64_t offset) {
    for (const std::string& name : places_.model().checkpoint().file_names()) {
      places_.disk().FailReadsAt("model/" + name, offset);
    }
  };
  fail_at(bad);
  EXPECT_TRUE(MessageOf(Run(*model)).starts_with("engram table 1: model/")) << Run(*model);
  const auto copied =
      MakeEngramSource(WeightPlace::kRam, FindEngramTables(places_.model().checkpoint()));
  EXPECT_TRUE(MessageOf(copied.status()).starts_with("engram tables in memory (engram ram): model"))
      << copied.status();
  fail_at(-1);
  EXPECT_TRUE(RunEverything(*model) == expected_);
}

// A row is asked for as often as an n-gram occurs and read once a pass.
TEST(EngramSource, DiskReadsARowOnceAPassAndMmapAsksForItsPages) {
  Places places("tiny");
  const int32_t columns = places.config().EngramColumns(), dim = places.config().engram_head_dim;
  const std::vector<int32_t> same(64, 11);
  for (const WeightPlace place : {WeightPlace::kDisk, WeightPlace::kMmap, WeightPlace::kRam}) {
    const auto tables = places.Engram(place);
    const auto model = places.model().MakeModel(tables.get(), nullptr);
    TestSequence(*model, same).Run(0, 64);
    const EngramCounts counts = tables->counts();
    EXPECT_EQ(counts.rows, 2 * 64 * columns);
    if (place == WeightPlace::kDisk) {
      // The first tokens have other histories: the depth of an n-gram in all.
      EXPECT_GE(counts.rows_read, 2 * columns);
      EXPECT_LE(counts.rows_read, 2 * columns * places.config().engram_max_ngram_size);
      EXPECT_EQ(counts.bytes_read, counts.rows_read * (dim + dim / 32));
    } else {
      EXPECT_EQ(counts.rows_read, 0);
      EXPECT_EQ(counts.ranges_advised > 0, place == WeightPlace::kMmap);
    }
  }
}

TEST(EngramSource, TakesWhatIsPlannedForAPass) {
  Places places("tiny");
  std::vector<EngramTable> shapes;
  for (const StoredEngramTable& table : FindEngramTables(places.model().checkpoint())) {
    shapes.push_back({.rows = table.view.rows, .dim = table.view.dim});
  }
  for (const WeightPlace place : {WeightPlace::kDisk, WeightPlace::kMmap, WeightPlace::kRam}) {
    for (const int64_t max_rows : {1, 64, 100'000}) {
      const auto tables = places.Engram(place);
      tables->Reserve(max_rows);
      EXPECT_EQ(tables->memory_bytes(), EngramMemoryBytes(place, shapes, max_rows));
      EXPECT_GT(tables->memory_bytes(), 0);
    }
  }
}

TEST(EngramSource, MmapAsksForNeighbouringPagesTogether) {
  Places places("tiny");
  const auto tables = places.Engram(WeightPlace::kMmap);
  const auto ranges = [&](const std::vector<int32_t>& rows) {
    const int64_t before = tables->counts().ranges_advised;
    const std::span<const int32_t> announced[] = {rows, {}};
    tables->Announce(announced);
    return tables->counts().ranges_advised - before;
  };
  std::vector<int32_t> all(static_cast<size_t>(places.config().engram_num_embeddings[0]));
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(ranges(all), 2);           // data and scales
  EXPECT_EQ(ranges({5, 5, 6, 5}), 2);  // a page each
  EXPECT_EQ(ranges({0, 4000, 1}), 3);  // two pages of data far apart, one of scales
  EXPECT_EQ(ranges({}), 0);
}

TEST(WeightPlace, NamesAreReadAndOthersNamed) {
  EXPECT_EQ(ParseWeightPlace("experts", "ram").value(), WeightPlace::kRam);
  EXPECT_EQ(ParseWeightPlace("experts", "mmap").value(), WeightPlace::kMmap);
  EXPECT_EQ(ParseWeightPlace("experts", "disk").value(), WeightPlace::kDisk);
  EXPECT_EQ(MessageOf(ParseWeightPlace("engram", "ssd").status()),
            "engram: found \"ssd\", expected ram, mmap or disk");
}

}  // namespace
}  // namespace deepinfer
