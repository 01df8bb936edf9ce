// request/recent_values.h: percentiles of what was measured within the last minute.
//
// Threads: the server's.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "base/clock.h"

namespace deepinfer {

struct Percentiles {
  double p50 = 0, p90 = 0, p99 = 0;
};

class RecentValues {
 public:
  void Add(MonotonicTime now, double value);
  // By nearest rank over the last 60 s, of at most the newest kMostValues; nothing: none came.
  std::optional<Percentiles> At(MonotonicTime now);

 private:
  static constexpr Duration kSpan = std::chrono::seconds(60);
  static constexpr size_t kMostValues = 4096;
  struct Entry {
    MonotonicTime time;
    double value;
  };
  void Forget(MonotonicTime now);

  std::deque<Entry> entries_;
};

}  // namespace deepinfer
