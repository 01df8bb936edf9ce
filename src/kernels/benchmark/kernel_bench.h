// kernels/benchmark/kernel_bench.h: how fast the ops run at the model's shapes, beside the
// machine's ceilings measured in the same run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "kernels/benchmark/ceilings.h"

namespace deepinfer {

struct KernelBenchOptions {
  // Weights are read from one block of memory, turn by turn, so that no cache holds them: at least
  // four times the last-level cache.
  int64_t weight_bytes = int64_t{1} << 30;
  double seconds_per_case = 0.3;
  std::vector<int32_t> row_counts = {1, 8, 64, 512};
};

struct KernelFigure {
  std::string name;
  int32_t num_rows = 0;
  double us = 0;      // median of the calls
  int64_t bytes = 0;  // weights (or KV) a call reads
  int64_t macs = 0;   // multiplications a call needs, without padding

  double BytesPerSecond() const { return static_cast<double>(bytes) / us * 1e6; }
  double MacsPerSecond() const { return static_cast<double>(macs) / us * 1e6; }
};

struct KernelBench {
  Ceilings ceilings;
  std::vector<KernelFigure> figures;
};

// Runs every case on `backend`. done(figure) is called after each; may be empty.
// Errors: kResourceExhausted if the memory cannot be had.
StatusOr<KernelBench> BenchKernels(const Backend& backend, const KernelBenchOptions& options,
                                   Clock& clock,
                                   const std::function<void(const KernelFigure&)>& done = {});

}  // namespace deepinfer
