// apps/throughput_report.h: what `bench throughput` prints and draws.
#pragma once

#include <string>

#include "apps/throughput_bench.h"

namespace deepinfer {

std::string ThroughputTable(const ThroughputBench& bench);
// Figures of parts that did not run are null.
std::string ThroughputJson(const ThroughputBench& bench);
// An SVG file of part load: TTFT, TPOT and tokens/s over the arrival rate, a row a mix.
std::string ThroughputPlot(const ThroughputBench& bench);

}  // namespace deepinfer
