// apps/bench_report.h: what `bench kernels` and `bench step` print.
#pragma once

#include <string>

#include "kernels/benchmark/kernel_bench.h"
#include "model/benchmark/step_bench.h"

namespace deepinfer {

std::string BenchTable(const KernelBench& bench, const std::string& isa, int threads);
std::string BenchJson(const KernelBench& bench, const std::string& isa, int threads);
std::string BenchTable(const StepBench& bench, const std::string& isa, int threads);
std::string BenchJson(const StepBench& bench, const std::string& isa, int threads);

}  // namespace deepinfer
