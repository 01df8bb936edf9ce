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

// What an engine takes at its start with some options, part by part (engine/start_plan.h makes it).
struct EngineMemory {
  enum class Place : uint8_t {
    kWeights,  // of a machine without GPUs; where else weights can lie say the plan's rows
    kDevice,   // where the passes run: on each GPU, or in RAM when there is none
    kHost,     // always in RAM
  };
  struct Part {
    std::string name;   // of a JSON field, without _bytes
    std::string title;  // for people
    int64_t num_bytes = 0;
    Place place = Place::kDevice;
    std::string about;  // how it comes about; may be empty
  };
  std::vector<Part> parts;
  std::string about;                // the options, one line
  int64_t kv_page_bytes = 0;        // in `parts`, too
  int64_t index_scratch_bytes = 0;  // in `parts`, too: choosing index entries

  int64_t BytesIn(Place place) const;
  int64_t total_bytes() const;
};

// What is in memory besides. Chosen, not measured: the program, graphs and libraries.
inline constexpr int64_t kGpuReserveBytes = int64_t{4} << 30;
inline constexpr int64_t kRamReserveBytes = int64_t{256} << 20;

struct PlanRow {
  Place experts = Place::kRam;
  Place engram = Place::kRam;
  int32_t ep_size = 1;     // ranks that share experts and device engram tables; 1 GPU a rank
  int64_t gpu_bytes = 0;   // needed on each GPU: weights, the engine's memory, reserve
  int64_t ram_bytes = 0;   // needed in RAM
  int64_t disk_bytes = 0;  // left on disk and read while running
  bool fits = false;
  // Context tokens whose KV fits into what is left and the engine's KV pages, per rank; 0 unless
  // `fits`.
  int64_t kv_tokens = 0;
};

struct MemoryPlan {
  MachineMemory machine;
  EngineMemory engine;
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
MemoryPlan PlanMemory(const ModelConfig& config, const Census& census, const MachineMemory& machine,
                      const EngineMemory& engine);

// Two tables: what the engine takes, one line a part, and where weights can lie, one a placement.
std::string PlanAsText(const MemoryPlan& plan);

}  // namespace deepinfer
