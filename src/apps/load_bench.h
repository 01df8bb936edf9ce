// apps/load_bench.h: how fast an engine loads, beside how fast this machine reads the same files.
#pragma once

#include <cstdint>
#include <string>

#include "apps/command.h"
#include "apps/engine_flags.h"
#include "engine/loaded_engine.h"

namespace deepinfer {

struct LoadBench {
  LoadTimes times;     // of the fastest load
  int num_rounds = 0;  // of one ceiling and one load
  int num_threads = 0;
  bool cold = false;        // the files were not in the system's cache
  bool from_cache = false;  // the weights cache was read, not the checkpoint
  int64_t weight_bytes = 0;
  int64_t file_bytes = 0;  // of the files that hold the weights
  // Those files read in order, 4 MiB at a time, by as many threads; the best round's. Cold: past
  // the system's cache, into memory in use. Else: into freshly mapped memory.
  double ceiling_bytes_per_s = 0;
  // Into freshly mapped memory in both cases. Where the machine is a guest, memory that was free is
  // often handed back to its host and dear to get: then this, not the disk, bounds a cold load.
  double fresh_ceiling_bytes_per_s = 0;
  int64_t peak_resident_bytes = 0,
          resident_bytes = 0;  // of the process; 0: the system does not say

  double LoadSeconds() const;  // until the weights are ready
  double BytesPerSecond() const { return static_cast<double>(read_bytes()) / LoadSeconds(); }
  double Fraction() const { return BytesPerSecond() / ceiling_bytes_per_s; }
  double FreshFraction() const { return BytesPerSecond() / fresh_ceiling_bytes_per_s; }
  int64_t read_bytes() const { return times.weights.cache_bytes + times.weights.source_bytes; }
};

// Loads as every command does, several times if that is quickly done: what else the machine does
// disturbs load and ceiling alike, so that only the best of both can be compared. With
// flags.engine.weights_cache the first load, which may have to make it, does not count.
// Errors: as LoadWithProgress.
StatusOr<LoadBench> BenchLoad(const EngineFlags& flags, bool cold, const CommandContext& context);

std::string LoadTable(const LoadBench& bench);
std::string LoadJson(const LoadBench& bench);

}  // namespace deepinfer
