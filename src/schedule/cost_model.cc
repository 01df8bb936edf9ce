#include "schedule/cost_model.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace deepinfer {
namespace {

constexpr uint64_t kSeed = 1;
constexpr double kGoodError = 0.05;
// A load is news when one of its terms is more than this many times the largest ever fitted.
constexpr double kNews = 2;

// Rows come first: where the measured steps cannot tell the terms apart (one row a step, say), cost
// is put down to rows. Too dear a row means small chunks, which soon show better; a free one would
// mean a chunk as large as the step.
FitTerms TermsOf(const StepLoad& load) { return {load.rows, 1, load.row_squares, load.row_prefix}; }
CostCoefficients CoefficientsOf(const FitTerms& fit) {
  return {.c0 = fit[1], .c1 = fit[0], .c2 = fit[2], .c3 = fit[3]};
}

double RelativeError(double predicted, double measured) {
  return std::abs(predicted - measured) / measured;
}

}  // namespace

CostModel::CostModel(const CostCoefficients& start) : coefficients_(start), rng_(kSeed) {
  reservoir_.reserve(kReservoirSteps);
  held_out_.reserve(kHeldOutSteps);
  errors_.reserve(kHeldOutSteps);
}

void CostModel::Add(const StepLoad& load, double seconds) {
  CHECK_GT(load.rows, 0);
  CHECK(seconds > 0 && std::isfinite(seconds));
  ++num_steps_;
  if (IsOutlier(load, seconds)) return;
  if (!IsCovered(load)) {  // do not wait long to learn from it
    fit_distance_ = kFirstFit;
    steps_until_fit_ = std::min(steps_until_fit_, kFirstFit);
  }
  Keep({load, seconds});
  if (--steps_until_fit_ > 0) return;
  FitAnew();
  steps_until_fit_ = fit_distance_;
  fit_distance_ = std::min(2 * fit_distance_, kFitEvery);
}

// Whether steps like this one have been fitted; before the first fit nothing has.
bool CostModel::IsCovered(const StepLoad& load) const {
  return load.rows <= kNews * covered_.rows && load.row_squares <= kNews * covered_.row_squares &&
         load.row_prefix <= kNews * covered_.row_prefix;
}

bool CostModel::IsOutlier(const StepLoad& load, double seconds) {
  // Where nothing was fitted the prediction is at fault, not the step.
  if (!IsCovered(load) || seconds <= kOutlier * Predict(load)) {
    outliers_in_a_row_ = 0;
    return false;
  }
  ++num_outliers_;
  if (++outliers_in_a_row_ < kOutliersInARow) return true;
  Forget();
  return false;
}

void CostModel::Keep(const MeasuredStep& step) {
  const int64_t learnt = num_learnt_++;
  if (learnt % kHeldOutEvery == kHeldOutEvery - 1) {
    const auto place = static_cast<size_t>(learnt / kHeldOutEvery % kHeldOutSteps);
    if (place < held_out_.size()) {
      held_out_[place] = step;
    } else {
      held_out_.push_back(step);
    }
  } else if (reservoir_.size() < kReservoirSteps) {
    reservoir_.push_back(step);
  } else {
    // A random one gives way, so that old steps fade out and rare ones stay for a while.
    reservoir_[rng_.Uniform(kReservoirSteps)] = step;
  }
}

void CostModel::Forget() {
  reservoir_.clear();
  held_out_.clear();
  covered_ = {};
  num_learnt_ = 0;
  outliers_in_a_row_ = 0;
  steps_until_fit_ = fit_distance_ = kFirstFit;
}

void CostModel::FitAnew() {
  FitSums sums;
  StepLoad covered;
  for (const MeasuredStep& step : reservoir_) {
    // Relative errors count: a step of 20 ms is as well worth predicting as one of 2 s.
    sums.Add(TermsOf(step.load), step.seconds, 1 / (step.seconds * step.seconds));
    covered.rows = std::max(covered.rows, step.load.rows);
    covered.row_squares = std::max(covered.row_squares, step.load.row_squares);
    covered.row_prefix = std::max(covered.row_prefix, step.load.row_prefix);
  }
  const CostCoefficients fit = CoefficientsOf(sums.Solve());
  const double error = MeanError(fit);
  if (error > kGoodError && error > MeanError(coefficients_)) {
    ++num_rejected_;
    return;
  }
  coefficients_ = fit;
  covered_ = covered;
  ++num_fits_;
}

// Of held-out steps. An error counts as 1 at most, so that no single step decides.
double CostModel::MeanError(const CostCoefficients& coefficients) const {
  double sum = 0;
  for (const MeasuredStep& step : held_out_) {
    const double predicted = PredictSeconds(coefficients, step.load);
    sum += std::min(1.0, RelativeError(predicted, step.seconds));
  }
  return sum / static_cast<double>(held_out_.size());
}

CostErrors CostModel::Errors() const {
  if (num_fits_ == 0 || held_out_.empty()) return {};
  errors_.clear();
  for (const MeasuredStep& step : held_out_) {
    errors_.push_back(RelativeError(Predict(step.load), step.seconds));
  }
  std::sort(errors_.begin(), errors_.end());
  const auto quantile = [this](double q) {
    return errors_[static_cast<size_t>(q * static_cast<double>(errors_.size() - 1) + 0.5)];
  };
  return {.median = quantile(0.5),
          .p95 = quantile(0.95),
          .num_steps = static_cast<int32_t>(errors_.size())};
}

}  // namespace deepinfer
