// model/placed_weights.h: the weights of a running model, each kind where it was asked to live.
//
//   routed experts   ram: packed, in memory; mmap: the mapped weights cache; disk: slots in memory,
//                    read from the weights cache
//   engram tables    ram: a copy in memory; mmap: the mapped checkpoint; disk: the rows of a pass,
//                    read from the checkpoint
//   all the rest     packed, in memory; lookup tables and vectors in the mapped checkpoint
// Pages of mapped files are the system's, which drops them when memory is short. Experts of disk
// are compared with their checksums on every read, those of mmap never: what a disk changes in them
// after they were written is computed with. Threads: the step loop only.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/disk.h"
#include "base/status.h"
#include "model/checkpoint.h"
#include "model/engram_source.h"
#include "model/expert_source.h"
#include "model/packed_weights.h"
#include "model/weight_place.h"

namespace deepinfer {

struct PlacementOptions {
  WeightPlace experts = WeightPlace::kRam;
  WeightPlace engram = WeightPlace::kMmap;
  // Memory for experts of kDisk; 0: a quarter of what the machine has free. Never more than all
  // experts take.
  int64_t expert_cache_bytes = 0;
  ProgressFn progress;  // bytes of engram tables read into memory; may be empty
};

// From texts as options give them. Errors: kInvalidArgument naming the option;
// kFailedPrecondition for experts of kMmap or kDisk where there is no packed image in a file.
StatusOr<PlacementOptions> ParsePlacement(std::string_view experts, std::string_view engram,
                                          int64_t expert_cache_bytes, bool has_image);

// What weights take of memory, in bytes, without the pages of mapped files.
struct WeightMemory {
  int64_t packed = 0;        // what is multiplied; routed experts only where they are in memory
  int64_t expert_slots = 0;  // of experts on disk
  int64_t engram = 0;        // tables in memory, or what a pass needs to ask for rows of them
  int64_t total() const { return packed + expert_slots + engram; }
};

// The same before anything is loaded. packs: not for the oracle. free_bytes: what the machine has,
// weights not taken yet. max_engram_rows: of a table in a pass.
// Errors: kInvalidArgument for too small an expert cache.
StatusOr<WeightMemory> PlanWeightMemory(const ModelConfig& config, bool packs,
                                        const PlacementOptions& options, int64_t free_bytes,
                                        int64_t max_engram_rows);

class PlacedWeights {
 public:
  // `packed` may be null (the oracle); with experts on kMmap or kDisk it was loaded with a weights
  // cache and keep_experts = false. All arguments outlive the result.
  // Errors: kInvalidArgument for too small an expert cache; kDataLoss if the file of a mapped image
  // has become too short; as MakeEngramSource, ExpertCache::Create, Disk::OpenRead. Requires: as
  // ParsePlacement found.
  static StatusOr<std::unique_ptr<PlacedWeights>> Place(Disk& disk, const Checkpoint& checkpoint,
                                                        const PackedWeights* packed,
                                                        const PlacementOptions& options);

  // What a Model takes.
  const ModelWeights& weights() const { return weights_; }
  EngramSource* engram_source() const { return engram_.get(); }
  ExpertSource* expert_source() const { return experts_.get(); }  // null for kRam

  WeightMemory memory() const;      // taken now
  std::string Description() const;  // where weights live and what they take, one line
  std::string CountsText() const;   // what was read so far, one line

 private:
  explicit PlacedWeights(const ModelWeights& weights) : weights_(weights) {}
  Status MapExperts(const PackedWeights& packed);
  Status CacheExperts(const ModelConfig& config, const PackedWeights& packed, int64_t free_bytes);

  ModelWeights weights_;
  PlacementOptions options_;
  int64_t packed_bytes_ = 0;             // in memory
  std::unique_ptr<ReadableFile> image_;  // of the weights cache
  std::unique_ptr<ExpertSource> experts_;
  std::unique_ptr<EngramSource> engram_;
};

// The engram tables of a checkpoint, in the order of engram_layer_ids; valid as long as it.
std::vector<StoredEngramTable> FindEngramTables(const Checkpoint& checkpoint);

// How many experts a cache of `wanted_bytes` holds; 0: of a quarter of free_bytes.
// Errors: kInvalidArgument if that is less than one token needs and two more.
StatusOr<int32_t> NumExpertSlots(int64_t wanted_bytes, int64_t free_bytes, int64_t slot_bytes,
                                 int64_t num_experts, int32_t num_experts_per_tok);

}  // namespace deepinfer
