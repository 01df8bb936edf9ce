// schedule/cost_model.h: how long a step will take, learnt from the steps that ran.
//
//   seconds = c0 + sum over segments (c1 n + c2 n^2 + c3 n p)
//
// for segments of n new rows behind p computed ones. Source: kvstore.md 16.1. No coefficient is
// negative, so a prediction grows with n and p. Threads: one at a time per object. Nothing
// allocates after construction.
#pragma once

#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "schedule/non_negative_fit.h"

namespace deepinfer {

struct CostCoefficients {
  double c0 = 0;  // seconds a step
  double c1 = 0;  // seconds a row
  double c2 = 0;  // seconds a row and row of the same segment
  double c3 = 0;  // seconds a row and row before it
};

// Where learning starts unless the caller knows better: four SM100 devices with expert parallelism,
// prompts of 4K-64K. The published points do not resolve c2 = c3 / 2 from 0.
inline constexpr CostCoefficients kPublishedCost = {.c0 = 18.5e-3, .c1 = 10.86e-6};

// What a step computes, as far as its time depends on it.
struct StepLoad {
  double rows = 0;         // sum of n
  double row_squares = 0;  // sum of n^2
  double row_prefix = 0;   // sum of n p

  // Adds a segment of num_rows rows at positions from `begin` on.
  void Add(int64_t num_rows, int64_t begin) {
    const auto n = static_cast<double>(num_rows);
    rows += n;
    row_squares += n * n;
    row_prefix += n * static_cast<double>(begin);
  }
};

inline double PredictSeconds(const CostCoefficients& c, const StepLoad& load) {
  return c.c0 + c.c1 * load.rows + c.c2 * load.row_squares + c.c3 * load.row_prefix;
}

// Relative errors of the coefficients in use, on steps that they were not fitted to.
struct CostErrors {
  double median = 0;
  double p95 = 0;
  int32_t num_steps = 0;  // 0: none measured yet
};

class CostModel {
 public:
  static constexpr int32_t kReservoirSteps = 2000;
  static constexpr int32_t kHeldOutEvery = 5;  // every fifth step is measured against, not fitted
  static constexpr int32_t kHeldOutSteps = kReservoirSteps / kHeldOutEvery;
  static constexpr int32_t kFirstFit = 16;  // steps; then the distance doubles up to kFitEvery
  static constexpr int32_t kFitEvery = 1000;
  static constexpr double kOutlier = 3;           // times predicted
  static constexpr int32_t kOutliersInARow = 16;  // so many are no outliers: the machine changed

  static_assert(kFirstFit > kHeldOutEvery);  // a fit has steps to be measured against

  explicit CostModel(const CostCoefficients& start = kPublishedCost);

  double Predict(const StepLoad& load) const { return PredictSeconds(coefficients_, load); }
  // Learns from a step. Every so many of them fit the coefficients anew (about 25 us). A fit is
  // taken if its mean error on held-out steps is at most 5% or not above that of the coefficients
  // it replaces.
  // Requires: load.rows > 0; 0 < seconds < infinity.
  void Add(const StepLoad& load, double seconds);

  const CostCoefficients& coefficients() const { return coefficients_; }
  CostErrors Errors() const;
  int64_t num_steps() const { return num_steps_; }
  // Steps that took more than kOutlier times what was predicted, and were not learnt from.
  int64_t num_outliers() const { return num_outliers_; }
  int64_t num_fits() const { return num_fits_; }          // taken
  int64_t num_rejected() const { return num_rejected_; }  // fits that were not

 private:
  struct MeasuredStep {
    StepLoad load;
    double seconds;
  };

  bool IsCovered(const StepLoad& load) const;
  bool IsOutlier(const StepLoad& load, double seconds);
  void Keep(const MeasuredStep& step);
  void Forget();
  void FitAnew();
  double MeanError(const CostCoefficients& coefficients) const;

  CostCoefficients coefficients_;
  SeededRng rng_;  // which step of a full reservoir gives way
  std::vector<MeasuredStep> reservoir_;
  std::vector<MeasuredStep> held_out_;  // a ring once full
  mutable std::vector<double> errors_;  // room for Errors()
  StepLoad covered_;                    // the largest of each term that was fitted
  int32_t steps_until_fit_ = kFirstFit;
  int32_t fit_distance_ = kFirstFit;
  int32_t outliers_in_a_row_ = 0;
  int64_t num_learnt_ = 0;  // since the last Forget()
  int64_t num_steps_ = 0;
  int64_t num_outliers_ = 0;
  int64_t num_fits_ = 0;
  int64_t num_rejected_ = 0;
};

}  // namespace deepinfer
