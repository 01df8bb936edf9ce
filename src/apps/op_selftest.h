// apps/op_selftest.h: every op of the kernels against its oracle, and fixed vectors, on this
// machine.
#pragma once

#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/backend.h"

namespace deepinfer {

struct SelftestFigure {
  std::string name;
  std::string variant;  // empty: of all
  double measured = 0;  // relative L2 distance to the oracle, or the number of values that differ
  double limit = 0;
  bool pass() const { return measured <= limit; }
};

// Every variant but the oracle, every op, random data. threads: null = the calling thread alone.
std::vector<SelftestFigure> CompareOps(ThreadPool* threads);

// Numbers of the specification at the real dimensions: number formats, RoPE frequencies, engram
// rows, sampling noise. Measured: how many differ.
std::vector<SelftestFigure> CheckVectors();

}  // namespace deepinfer
