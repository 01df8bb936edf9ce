// request/stats_json.h: the body of GET /stats.
//
// Counters since the start, gauges of now, percentiles over the last minute (null: nothing ended).
#pragma once

#include <string>

#include "request/metrics.h"

namespace deepinfer {

struct StatsTimes {
  double wall_seconds = 0;  // since 1970
  double uptime_seconds = 0;
  MonotonicTime now;
};

std::string StatsJson(const MetricsContext& context, Metrics& metrics, const StatsTimes& times);

}  // namespace deepinfer
