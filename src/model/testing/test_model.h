// model/testing/test_model.h: a synthetic checkpoint loaded into a Model, and sequences to run
// through it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/simulated_disk.h"
#include "base/thread_pool.h"
#include "cache/standalone_kv.h"
#include "model/checkpoint.h"
#include "model/model.h"
#include "model/packed_weights.h"
#include "model/placed_weights.h"

namespace deepinfer {

// `name`: a configuration of tools/tiny ("tiny", "stress_a", ...), with its seed.
class TestModel {
 public:
  explicit TestModel(const std::string& name, VariantId variant = kCpuVariant, int num_threads = 2);

  Model& model() { return *model_; }
  // Another model over the same weights, with this one's variant and threads.
  std::unique_ptr<Model> MakeModel(EngramSource* engram, ExpertSource* experts) {
    return MakeModel(packed_->weights(), engram, experts);
  }
  // The same with weights in other places.
  std::unique_ptr<Model> MakeModel(const PlacedWeights& placed) {
    return MakeModel(placed.weights(), placed.engram_source(), placed.expert_source());
  }
  // The same with weights in memory and another budget for choosing index entries.
  std::unique_ptr<Model> MakeModel(int64_t index_scratch_bytes);
  SimulatedDisk& disk() { return disk_; }
  const Checkpoint& checkpoint() const { return *checkpoint_; }
  const ModelWeights& weights() const { return packed_->weights(); }
  const ModelConfig& config() const { return checkpoint_->config(); }

 private:
  std::unique_ptr<Model> MakeModel(const ModelWeights& weights, EngramSource* engram,
                                   ExpertSource* experts);

  SimulatedDisk disk_;
  ThreadPool threads_;
  const VariantId variant_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<PackedWeights> packed_;
  std::vector<int32_t> classes_;
  std::unique_ptr<Model> model_;
};

// One sequence with its own pages. Tokens are fixed at construction.
class TestSequence {
 public:
  TestSequence(Model& model, std::vector<int32_t> tokens);
  TestSequence(TestModel& model, std::vector<int32_t> tokens)
      : TestSequence(model.model(), std::move(tokens)) {}

  // A segment of positions [begin, end), with logits for all of them that run the decoder.
  ForwardSegment Segment(int32_t begin, int32_t end);
  // Runs [begin, end) alone; returns its logits [end - begin, V]. Requires: no failure.
  std::vector<float> Run(int32_t begin, int32_t end);
  // Runs everything in chunks of the given sizes, repeated in turn; logits of all positions.
  std::vector<float> RunInChunks(const std::vector<int32_t>& sizes);

  std::vector<int32_t> tokens;
  SequenceKv& kv() { return kv_->kv(); }

 private:
  Model& model_;
  std::unique_ptr<StandaloneKv> kv_;
};

// Logits of a prompt in chunks, of three decode steps, and of the draft after them: all rows of
// all. Requires: no failure.
std::vector<float> RunEverything(Model& model);

// `count` token ids below `vocab`, the first one BOS, from a fixed generator.
std::vector<int32_t> TestTokens(int32_t count, int32_t vocab, uint64_t seed);

}  // namespace deepinfer
