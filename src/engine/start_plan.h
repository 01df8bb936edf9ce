// engine/start_plan.h: what an engine takes of memory at its start, part by part, before it takes
// any of it.
//
// LoadedEngine starts by this plan, and `deepinfer inspect --plan` shows it without weights. Not in
// it is what grows with use or belongs to the system: pages of mapped files, grammars (at most
// grammar_cache_bytes), the tokenizer, requests and their text.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "cache/kv_memory.h"
#include "deepinfer/engine.h"
#include "model/config.h"
#include "model/memory_plan.h"
#include "model/model.h"
#include "model/placed_weights.h"
#include "schedule/scheduler.h"

namespace deepinfer {

struct StartPlan {
  VariantId variant = kRefVariant;
  PlacementOptions placement;  // with the memory for experts on disk that was chosen
  SchedulerOptions scheduler;  // with the model's own limits filled in
  KvMemorySizes kv_sizes;
  std::string about;  // what was asked for
  // Bytes.
  int64_t page_bytes = 0, state_bytes = 0, slot_bytes = 0;  // of one each
  int64_t index_scratch_bytes = 0;                          // the most that is allowed
  WeightMemory weights;
  KvMemoryParts kv;
  ScratchPlan scratch;
  int64_t total_bytes() const { return weights.total() + kv.total() + scratch.total_bytes(); }
};

struct StartMachine {
  int32_t num_threads = 1;
  int64_t free_bytes = 0;  // of memory, before the start
};

// The largest passes that these options allow: what Model::Reserve takes memory for.
ReserveShape ScratchShape(const SchedulerOptions& options);

// Errors: kInvalidArgument for an option out of range; as ChooseVariant and ParsePlacement.
StatusOr<StartPlan> PlanStart(const EngineOptions& options, const ModelConfig& config,
                              const StartMachine& machine);

// The same as a list, for people and programs.
EngineMemory DescribeStart(const StartPlan& plan);

// Bytes of KV cache when nobody says: what `num_sequences` sequences of `num_tokens` need, at most
// 1 GiB, but at least one such sequence.
int64_t DefaultKvCacheBytes(int64_t page_bytes, int64_t num_tokens, int64_t num_sequences);

}  // namespace deepinfer
