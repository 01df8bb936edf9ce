#include "apps/calibration.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace deepinfer {

void Calibration::Add(double probability, bool happened) {
  CHECK(probability >= 0 && probability <= 1);
  const auto last = bins_.size() - 1;
  const auto at = static_cast<size_t>(probability * static_cast<double>(bins_.size()));
  Bin& bin = bins_[std::min(at, last)];
  ++bin.num_events;
  bin.num_happened += happened ? 1 : 0;
  bin.sum_probability += probability;
}

Calibration::Bin Calibration::Total() const {
  Bin total;
  for (const Bin& bin : bins_) {
    total.num_events += bin.num_events;
    total.num_happened += bin.num_happened;
    total.sum_probability += bin.sum_probability;
  }
  return total;
}

int64_t Calibration::num_events() const { return Total().num_events; }

double Calibration::Error() const {
  double sum = 0;  // of events times distance: the bin's counts cancel out of its means
  for (const Bin& bin : bins_) {
    sum += std::fabs(bin.sum_probability - static_cast<double>(bin.num_happened));
  }
  return sum / static_cast<double>(num_events());
}

double Calibration::MeanProbability() const {
  const Bin total = Total();
  return total.sum_probability / static_cast<double>(total.num_events);
}

double Calibration::ShareHappened() const {
  const Bin total = Total();
  return static_cast<double>(total.num_happened) / static_cast<double>(total.num_events);
}

}  // namespace deepinfer
