#include "model/testing/test_model.h"

#include "model/synthetic_checkpoint.h"

namespace deepinfer {

TestModel::TestModel(const std::string& name, VariantId variant, int num_threads)
    : threads_(num_threads), variant_(variant) {
  const uint64_t seed = name == "tiny" ? 101 : name == "stress_a" ? 202 : 303;
  const auto config =
      RealDisk().ReadText(StrCat(DI_SOURCE_DIR, "/tools/tiny/", name, ".json")).value();
  const Status written =
      WriteSyntheticCheckpoint(disk_, config, seed, "model", {.pool = &threads_}).status();
  CHECK(written.ok());
  checkpoint_ = Checkpoint::Open(disk_, "model").value();
  packed_ = PackedWeights::Load(*checkpoint_, {.pool = &threads_}).value();
  const std::string bytes = disk_.ReadText("model/engram_classes.bin").value();
  classes_.resize(bytes.size() / sizeof(int32_t));
  std::memcpy(classes_.data(), bytes.data(), bytes.size());
  model_ = MakeModel(nullptr, nullptr);
}

std::unique_ptr<Model> TestModel::MakeModel(const ModelWeights& weights, EngramSource* engram,
                                            ExpertSource* experts) {
  return std::make_unique<Model>(
      checkpoint_->config(), weights, classes_,
      ModelOptions{.backend = {.variant = variant_, .threads = &threads_},
                   .engram_source = engram,
                   .expert_source = experts});
}

std::unique_ptr<Model> TestModel::MakeModel(int64_t index_scratch_bytes) {
  return std::make_unique<Model>(
      checkpoint_->config(), weights(), classes_,
      ModelOptions{.backend = {.variant = variant_, .threads = &threads_},
                   .index_scratch_bytes = index_scratch_bytes});
}

TestSequence::TestSequence(Model& model, std::vector<int32_t> ids)
    : tokens(std::move(ids)), model_(model) {
  kv_ = std::make_unique<StandaloneKv>(model.kv_shape(), static_cast<int64_t>(tokens.size()));
}

ForwardSegment TestSequence::Segment(int32_t begin, int32_t end) {
  return {.kv = &kv(), .tokens = tokens.data(), .begin = begin, .end = end, .logits_begin = begin};
}

std::vector<float> TestSequence::Run(int32_t begin, int32_t end) {
  const ForwardBatch batch = {{Segment(begin, end)}};
  const std::span<const float> logits = model_.Forward(batch).value();
  return {logits.begin(), logits.end()};
}

std::vector<float> TestSequence::RunInChunks(const std::vector<int32_t>& sizes) {
  std::vector<float> all;
  const auto length = static_cast<int32_t>(tokens.size());
  for (int32_t begin = 0, turn = 0; begin < length; ++turn) {
    const int32_t size = sizes[static_cast<size_t>(turn) % sizes.size()];
    const int32_t end = std::min(length, begin + size);
    const std::vector<float> part = Run(begin, end);
    all.insert(all.end(), part.begin(), part.end());
    begin = end;
  }
  return all;
}

std::vector<float> RunEverything(Model& model) {
  constexpr int32_t kPrompt = 40, kSteps = 3;
  TestSequence sequence(model, TestTokens(kPrompt + kSteps, model.config().vocab_size, 9));
  std::vector<float> all;
  const auto append = [&](std::span<const float> part) {
    all.insert(all.end(), part.begin(), part.end());
  };
  for (const auto& [begin, end] : {std::pair{0, 7}, {7, 39}, {39, 40}}) {
    append(sequence.Run(begin, end));
  }
  for (int32_t p = kPrompt; p < kPrompt + kSteps; ++p) append(sequence.Run(p, p + 1));
  const DraftRequest request = {&sequence.kv(), 17, kPrompt + kSteps};
  const auto record = [&](int32_t, int32_t, std::span<const float> logits) {
    append(logits);
    return 5;
  };
  CHECK(model.Propose(std::span(&request, 1), record).ok());
  return all;
}

std::vector<int32_t> TestTokens(int32_t count, int32_t vocab, uint64_t seed) {
  std::vector<int32_t> tokens = {0};
  for (uint64_t state = seed; std::ssize(tokens) < count;) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    tokens.push_back(static_cast<int32_t>((state >> 33) % static_cast<uint64_t>(vocab)));
  }
  return tokens;
}

}  // namespace deepinfer
