// engine/engine_instance.h: one running engine over loaded weights: its model, KV memory and core.
//
// Several may run over the same weights, one after the other: that is how `verify` and `bench`
// compare settings without loading anew. Threads: the planning thread only.
#pragma once

#include <memory>

#include "base/rng.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "cache/kv_memory.h"
#include "engine/engine_core.h"
#include "model/model.h"
#include "tokens/tokenizer.h"

namespace deepinfer {

// What an instance stands on. All of it outlives the instance.
struct InstanceParts {
  const ModelConfig* config = nullptr;
  const ModelWeights* weights = nullptr;
  const std::vector<int32_t>* token_classes = nullptr;
  EngramSource* engram_source = nullptr;  // may be null
  ExpertSource* expert_source = nullptr;  // may be null
  const Tokenizer* tokenizer = nullptr;   // null: token ids only
  ConstraintSource* grammars = nullptr;   // null: no structured output
  Drafter* drafter = nullptr;             // null: nothing is drafted
  ThreadPool* threads = nullptr;
  VariantId variant = kRefVariant;
  Rng* rng = nullptr;
  Sha256Digest fingerprint = {};
  int64_t index_scratch_bytes = 0;  // of the index selection, all threads together
};

class EngineInstance {
 public:
  // Errors: kResourceExhausted if the machine does not give the memory.
  static StatusOr<std::unique_ptr<EngineInstance>> Create(const InstanceParts& parts,
                                                          const EngineCoreOptions& options,
                                                          const KvMemorySizes& sizes);

  EngineCore& core() { return *core_; }
  Model& model() { return *model_; }
  const KvMemory& kv_memory() const { return *memory_; }
  KvMemory& kv_memory_for_tests() { return *memory_; }  // to damage it

 private:
  EngineInstance() = default;

  std::unique_ptr<Model> model_;
  std::unique_ptr<KvMemory> memory_;
  std::unique_ptr<EngineCore> core_;  // last: its thread uses the others
};

}  // namespace deepinfer
