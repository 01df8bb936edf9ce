#include "schedule/non_negative_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace deepinfer {
namespace {

// A term is as good as a sum of others when less than this part of its square is its own.
constexpr double kOwnPartMin = 1e-9;
// Sums of squares below this part of the targets' are rounding, and so is a difference of this
// part.
constexpr double kRounding = 1e-12;
constexpr double kTie = 1e-6;

}  // namespace

void FitSums::Add(const FitTerms& terms, double target, double weight) {
  for (size_t i = 0; i < kFitTerms; ++i) {
    for (size_t j = 0; j < kFitTerms; ++j) products_[i][j] += weight * terms[i] * terms[j];
    targets_[i] += weight * terms[i] * target;
  }
  target_squares_ += weight * target * target;
  ++num_points_;
}

FitTerms FitSums::Solve() const {
  FitTerms best{};
  double best_score = std::numeric_limits<double>::infinity();
  for (unsigned subset = 1; subset < 1u << kFitTerms; ++subset) {
    FitTerms coefficients;
    if (!SolveSubset(subset, coefficients)) continue;
    const double squares = std::max(SumOfSquares(coefficients), kRounding * target_squares_);
    const int num_terms = __builtin_popcount(subset);
    const double score = squares * (1 + 4.0 * num_terms / static_cast<double>(num_points_));
    if (score < best_score * (1 - kTie)) {
      best_score = score;
      best = coefficients;
    }
  }
  return best;
}

// Gauss-Jordan elimination in columns scaled to length 1. False: a term is redundant, or a
// coefficient would be negative.
bool FitSums::SolveSubset(unsigned subset, FitTerms& coefficients) const {
  std::array<size_t, kFitTerms> used{};
  size_t n = 0;
  for (size_t i = 0; i < kFitTerms; ++i) {
    if (subset >> i & 1) used[n++] = i;
  }
  FitTerms scale{};
  double rows[kFitTerms][kFitTerms + 1];
  for (size_t i = 0; i < n; ++i) {
    const double square = products_[used[i]][used[i]];
    if (!(square > 0)) return false;
    scale[i] = 1 / std::sqrt(square);
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) rows[i][j] = products_[used[i]][used[j]] * scale[i] * scale[j];
    rows[i][n] = targets_[used[i]] * scale[i];
  }
  for (size_t pivot = 0; pivot < n; ++pivot) {
    // What is left of the diagonal is the part of the term that no earlier one explains.
    if (rows[pivot][pivot] < kOwnPartMin) return false;
    for (size_t i = 0; i < n; ++i) {
      if (i == pivot) continue;
      const double factor = rows[i][pivot] / rows[pivot][pivot];
      for (size_t j = pivot; j <= n; ++j) rows[i][j] -= factor * rows[pivot][j];
    }
  }
  coefficients = {};
  for (size_t i = 0; i < n; ++i) {
    const double value = rows[i][n] / rows[i][i] * scale[i];
    if (value < 0) return false;
    coefficients[used[i]] = value;
  }
  return true;
}

double FitSums::SumOfSquares(const FitTerms& coefficients) const {
  double sum = target_squares_;
  for (size_t i = 0; i < kFitTerms; ++i) {
    double row = -2 * targets_[i];
    for (size_t j = 0; j < kFitTerms; ++j) row += products_[i][j] * coefficients[j];
    sum += row * coefficients[i];
  }
  return sum;
}

}  // namespace deepinfer
