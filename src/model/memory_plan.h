// model/memory_plan.h: where a model's bytes can lie on a given machine, before anything is loaded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/config.h"
#include "model/tensor_spec.h"

namespace deepinfer {

struct MachineMemory {
  int64_t ram_bytes = 0;
  int32_t num_gpus = 0;   // 0: everything runs on the CPU
  int64_t gpu_bytes = 0;  // of each
};

// "512GiB" or "ram=512GiB" for a machine without GPUs, "ram=512GiB,gpus=8x139GiB" with them. Units:
// B, KB, MB, GB, TB (powers of 1000) and KiB, MiB, GiB, TiB; fractions are allowed.
StatusOr<MachineMemory> ParseMachine(std::string_view text);

enum class Place : uint8_t { kDevice, kRam, kDisk };  // kDisk: mapped files, read as needed
std::string_view PlaceName(Place place);

// What memory holds that is not weights. Chosen, not measured: scratch, graphs and libraries.
inline constexpr int64_t kGpuReserveBytes = int64_t{4} << 30;
inline constexpr int64_t kRamReserveBytes = int64_t{256} << 20;

struct PlanRow {
  Place experts = Place::kRam;
  Place engram = Place::kRam;
  int32_t ep_size = 1;     // ranks that share experts and device engram tables; 1 GPU a rank
  int64_t gpu_bytes = 0;   // needed on each GPU: weights, one longest sequence, reserve
  int64_t ram_bytes = 0;   // needed in RAM
  int64_t disk_bytes = 0;  // left on disk and read while running
  bool fits = false;
  int64_t kv_tokens =
      0;  // context tokens whose KV fits into what is left, per rank; 0 unless `fits`
};

struct MemoryPlan {
  MachineMemory machine;
  int64_t resident_bytes = 0;  // weights that every rank holds: all but experts and engram tables
  int64_t expert_bytes = 0;    // routed experts, those of the draft included
  int64_t engram_bytes = 0;
  int64_t page_bytes = 0;  // KV of page_tokens tokens, all sources
  int32_t page_tokens = 0;
  int64_t sequence_bytes =
      0;  // KV pages and rings of one sequence of max_position_embeddings tokens
  std::vector<PlanRow> rows;  // fastest placement first; EP sizes ascending
};

// EP sizes are the powers of two up to num_gpus that divide both expert counts.
MemoryPlan PlanMemory(const ModelConfig& config, const Census& census,
                      const MachineMemory& machine);

// A table, one line a placement.
std::string PlanAsText(const MemoryPlan& plan);

}  // namespace deepinfer
