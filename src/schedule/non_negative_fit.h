// schedule/non_negative_fit.h: least squares with coefficients >= 0, for a handful of terms.
//
// With so few terms the optimum is found by trying every subset of them: it is the best of the
// ordinary least-squares solutions that have no negative coefficient. Allocates nothing.
#pragma once

#include <array>
#include <cstdint>

namespace deepinfer {

inline constexpr int kFitTerms = 4;

using FitTerms = std::array<double, kFitTerms>;

// The sums of a weighted least-squares problem: weight x (target - sum_i coefficient_i x term_i)^2.
class FitSums {
 public:
  // Requires: weight > 0; all finite.
  void Add(const FitTerms& terms, double target, double weight);

  // A term is used only if the sum of squares falls by more than chance explains (4 parts in
  // num_points, Akaike's measure doubled); of terms that explain equally well the first is taken.
  // Unused terms get 0.
  FitTerms Solve() const;

 private:
  bool SolveSubset(unsigned subset, FitTerms& coefficients) const;
  double SumOfSquares(const FitTerms& coefficients) const;

  std::array<FitTerms, kFitTerms> products_{};  // sum of weight x term_i x term_j
  FitTerms targets_{};                          // sum of weight x term_i x target
  double target_squares_ = 0;                   // sum of weight x target^2
  int64_t num_points_ = 0;
};

}  // namespace deepinfer
