// apps/calibration.h: how far stated probabilities are from what happens.
#pragma once

#include <array>
#include <cstdint>

namespace deepinfer {

// The expected calibration error over ten equal bins of the probability: the mean over all events
// of |mean probability - share that happened| of the event's bin. Source: Guo et al., "On
// Calibration of Modern Neural Networks", 2017, section 3.
class Calibration {
 public:
  // Requires: 0 <= probability <= 1.
  void Add(double probability, bool happened);

  int64_t num_events() const;
  // Requires of all three: num_events() > 0.
  double Error() const;
  double MeanProbability() const;
  double ShareHappened() const;

 private:
  struct Bin {
    int64_t num_events = 0, num_happened = 0;
    double sum_probability = 0;
  };
  Bin Total() const;

  std::array<Bin, 10> bins_;
};

}  // namespace deepinfer
