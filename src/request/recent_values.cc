#include "request/recent_values.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace deepinfer {

void RecentValues::Forget(MonotonicTime now) {
  while (!entries_.empty() &&
         (entries_.size() > kMostValues || entries_.front().time < now - kSpan)) {
    entries_.pop_front();
  }
}

void RecentValues::Add(MonotonicTime now, double value) {
  entries_.push_back({now, value});
  Forget(now);
}

std::optional<Percentiles> RecentValues::At(MonotonicTime now) {
  Forget(now);
  if (entries_.empty()) return std::nullopt;
  std::vector<double> sorted;
  sorted.reserve(entries_.size());
  for (const Entry& entry : entries_) sorted.push_back(entry.value);
  std::sort(sorted.begin(), sorted.end());
  const auto rank = [&sorted](double share) {
    const double at = std::ceil(share * static_cast<double>(sorted.size()));
    return sorted[static_cast<size_t>(std::max(at, 1.0)) - 1];
  };
  return Percentiles{.p50 = rank(0.5), .p90 = rank(0.9), .p99 = rank(0.99)};
}

}  // namespace deepinfer
