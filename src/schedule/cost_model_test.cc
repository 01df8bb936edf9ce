#include "schedule/cost_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace deepinfer {
namespace {

constexpr CostCoefficients kTrue = {.c0 = 4e-3, .c1 = 3e-5, .c2 = 2e-9, .c3 = 5e-9};

// Steps as an engine makes them, with the times of a machine that costs `truth`.
class Machine {
 public:
  explicit Machine(const CostCoefficients& truth, uint64_t seed = 7) : truth_(truth), rng_(seed) {}

  StepLoad DecodeStep() {
    StepLoad load;
    const uint64_t num_sequences = 1 + rng_.Uniform(32);
    for (uint64_t i = 0; i < num_sequences; ++i) {
      load.Add(1 + Int(6), Int(8192));
    }
    return load;
  }
  StepLoad MixedStep() {
    StepLoad load = DecodeStep();
    if (rng_.Uniform(4) == 0) load.Add(256 + Int(4096), Int(32768));
    return load;
  }
  // Noise is uniform within +-noise of the true time.
  double Seconds(const StepLoad& load, double noise) {
    return PredictSeconds(truth_, load) * (1 + noise * (2 * rng_.UniformDouble() - 1));
  }
  void Run(CostModel& model, int32_t num_steps, double noise) {
    for (int32_t i = 0; i < num_steps; ++i) {
      const StepLoad load = MixedStep();
      model.Add(load, Seconds(load, noise));
    }
  }

  CostCoefficients truth_;

 private:
  int64_t Int(int64_t bound) {
    return static_cast<int64_t>(rng_.Uniform(static_cast<uint64_t>(bound)));
  }

  SeededRng rng_;
};

StepLoad LoadOf(int64_t rows, int64_t begin) {
  StepLoad load;
  load.Add(rows, begin);
  return load;
}

TEST(CostModel, StartsFromThePublishedPoints) {
  const CostModel model;
  EXPECT_DOUBLE_EQ(model.Predict(LoadOf(1000, 0)), 18.5e-3 + 1000 * 10.86e-6);
  EXPECT_EQ(model.Errors().num_steps, 0);
}

TEST(CostModel, RecoversCoefficientsFromCleanSteps) {
  CostModel model;
  Machine(kTrue).Run(model, 64, 0);
  EXPECT_NEAR(model.coefficients().c0, kTrue.c0, 1e-6 * kTrue.c0);
  EXPECT_NEAR(model.coefficients().c1, kTrue.c1, 1e-6 * kTrue.c1);
  EXPECT_NEAR(model.coefficients().c2, kTrue.c2, 1e-6 * kTrue.c2);
  EXPECT_NEAR(model.coefficients().c3, kTrue.c3, 1e-6 * kTrue.c3);
}

TEST(CostModel, PredictsHeldOutStepsWithinTheBar) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    CostModel model;
    Machine machine(kTrue, seed);
    machine.Run(model, 3000, 0.05);
    EXPECT_LE(model.Errors().median, 0.03) << seed;
    EXPECT_LE(model.Errors().p95, 0.10) << seed;
    EXPECT_EQ(model.Errors().num_steps, CostModel::kHeldOutSteps);
    // And steps that are yet to come: the model's own error, without their noise.
    std::vector<double> errors;
    for (int i = 0; i < 200; ++i) {
      const StepLoad load = machine.MixedStep();
      const double seconds = machine.Seconds(load, 0);
      errors.push_back(std::abs(model.Predict(load) - seconds) / seconds);
    }
    std::sort(errors.begin(), errors.end());
    EXPECT_LE(errors[100], 0.01) << seed;
    EXPECT_LE(errors[190], 0.03) << seed;
  }
}

TEST(CostModel, IsNeverNegativeAndGrowsWithRowsAndPrefix) {
  SeededRng rng(3);
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    CostCoefficients truth = kTrue;  // some machines lack a term, which noise then makes negative
    if (seed & 1) truth.c0 = 0;
    if (seed & 2) truth.c2 = 0;
    if (seed & 4) truth.c3 = 0;
    CostModel model;
    Machine(truth, seed).Run(model, 256, 0.3);
    const CostCoefficients& c = model.coefficients();
    EXPECT_GE(std::min({c.c0, c.c1, c.c2, c.c3}), 0);
    const auto n = static_cast<int64_t>(rng.Uniform(4096)) + 1;
    const auto p = static_cast<int64_t>(rng.Uniform(65536));
    EXPECT_LE(model.Predict(LoadOf(n, p)), model.Predict(LoadOf(n + 1, p)));
    EXPECT_LE(model.Predict(LoadOf(n, p)), model.Predict(LoadOf(n, p + 1)));
  }
}

TEST(CostModel, FitsEarlyAndThenEveryThousandSteps) {
  CostModel model;
  std::vector<int64_t> fitted_at;
  int64_t fits = 0;
  const StepLoad load = LoadOf(100, 0);
  for (int64_t step = 1; step <= 3100; ++step) {
    model.Add(load, 0.01);
    if (model.num_fits() != fits) fitted_at.push_back(step);
    fits = model.num_fits();
  }
  EXPECT_EQ(fitted_at, (std::vector<int64_t>{16, 32, 64, 128, 256, 512, 1024, 2024, 3024}));
}

TEST(CostModel, OutliersAreCountedAndNotFitted) {
  CostModel model;
  Machine machine(kTrue);
  machine.Run(model, 64, 0);
  for (int i = 0; i < 2000; ++i) {
    const StepLoad load = machine.MixedStep();
    const bool stalled = i % 10 == 0;
    model.Add(load, machine.Seconds(load, 0) * (stalled ? 5 : 1));
  }
  EXPECT_GE(model.num_outliers(), 190);
  EXPECT_LE(model.num_outliers(), 200);
  EXPECT_NEAR(model.coefficients().c1, kTrue.c1, 1e-3 * kTrue.c1);
}

TEST(CostModel, AMachineThatBecameSlowIsLearntAnew) {
  CostModel model;
  Machine machine(kTrue);
  machine.Run(model, 500, 0);
  machine.truth_.c0 *= 10;
  machine.truth_.c1 *= 10;
  machine.truth_.c2 *= 10;
  machine.truth_.c3 *= 10;
  machine.Run(model, 64, 0);
  EXPECT_EQ(model.num_outliers(), CostModel::kOutliersInARow);
  EXPECT_NEAR(model.coefficients().c1, 10 * kTrue.c1, 1e-3 * kTrue.c1);
}

// Hundreds of small steps say little about large ones. The first large ones are not taken for
// outliers, and are learnt from soon, although small ones run between them.
TEST(CostModel, LargeStepsAfterManySmallOnesAreLearntSoon) {
  CostModel model;
  Machine machine(kTrue);
  for (int i = 0; i < 600; ++i) {
    const StepLoad load = LoadOf(1, 100 + i);
    model.Add(load, machine.Seconds(load, 0.05));
  }
  for (int i = 0; i < 32; ++i) {
    const StepLoad load = i % 4 == 0 ? LoadOf(256 + 64 * i, 256 * i) : LoadOf(1, 1000);
    model.Add(load, machine.Seconds(load, 0.05));
  }
  EXPECT_EQ(model.num_outliers(), 0);
  const StepLoad chunk = LoadOf(1024, 1024);
  EXPECT_NEAR(model.Predict(chunk) / machine.Seconds(chunk, 0), 1, 0.1);
}

// One row a step cannot tell a step's cost from a row's. A free row would make the next chunk as
// large as a step can be.
TEST(CostModel, WhereRowsAndStepsCannotBeToldApartRowsAreDear) {
  CostModel model;
  for (int i = 0; i < 64; ++i) model.Add(LoadOf(1, 0), 0.01);
  EXPECT_NEAR(model.coefficients().c1, 0.01, 1e-9);
  EXPECT_EQ(model.coefficients().c0, 0);
  EXPECT_EQ(model.coefficients().c2, 0);
}

TEST(CostModel, AFitThatPredictsWorseThanWhatItReplacesIsRejected) {
  CostModel model(kTrue);
  Machine machine(kTrue);
  for (int i = 0; i < 16; ++i) {
    const StepLoad load = machine.MixedStep();
    const bool held_out = i % CostModel::kHeldOutEvery == CostModel::kHeldOutEvery - 1;
    model.Add(load, machine.Seconds(load, 0) * (held_out ? 1 : 1.5));
  }
  EXPECT_EQ(model.num_rejected(), 1);
  EXPECT_EQ(model.num_fits(), 0);
  EXPECT_EQ(model.coefficients().c1, kTrue.c1);
}

// The optimum of four terms, against a search over a grid around it.
TEST(FitSums, NoSmallStepThatStaysNonNegativeImprovesTheSolution) {
  SeededRng rng(11);
  for (int round = 0; round < 50; ++round) {
    std::vector<FitTerms> points;
    std::vector<double> targets;
    FitSums sums;
    for (int i = 0; i < 400; ++i) {
      FitTerms terms;
      for (double& term : terms) term = rng.UniformDouble();
      // The fourth term's true coefficient is negative, so that the bound is active.
      const double target =
          3 * terms[0] + 2 * terms[1] + terms[2] - terms[3] + 0.1 * rng.UniformDouble();
      points.push_back(terms);
      targets.push_back(target);
      sums.Add(terms, target, 1);
    }
    const auto squares = [&](const FitTerms& c) {
      double sum = 0;
      for (size_t i = 0; i < points.size(); ++i) {
        double rest = targets[i];
        for (size_t k = 0; k < kFitTerms; ++k) rest -= c[k] * points[i][k];
        sum += rest * rest;
      }
      return sum;
    };
    const FitTerms solution = sums.Solve();
    EXPECT_EQ(solution[3], 0);
    for (size_t k = 0; k < kFitTerms; ++k) {
      for (const double step : {-1e-3, 1e-3}) {
        FitTerms moved = solution;
        moved[k] += step;
        EXPECT_TRUE(moved[k] < 0 || squares(moved) > squares(solution));
      }
    }
  }
}

TEST(FitSums, OfEqualTermsTheFirstIsTaken) {
  FitSums sums;
  for (int i = 1; i <= 100; ++i) sums.Add({1.0 * i, 2.0 * i, 1.0 * i, 0}, 3.0 * i, 1);
  const FitTerms solution = sums.Solve();
  EXPECT_NEAR(solution[0], 3, 1e-9);
  EXPECT_EQ(solution[1], 0);
  EXPECT_EQ(solution[2], 0);
  EXPECT_EQ(solution[3], 0);
}

// One row a sequence: as many rows as squares of them, to the last digit.
TEST(FitSums, OfEqualTermsTheFirstIsTakenAlsoBesideOthersAndNoise) {
  SeededRng rng(12);
  for (int round = 0; round < 200; ++round) {
    FitSums sums;
    for (int i = 0; i < 100; ++i) {
      const double rows = 1.0 + static_cast<double>(rng.Uniform(32));
      sums.Add({rows, 1, rows, 0}, (3 * rows + 50) * (1 + 0.1 * rng.UniformDouble()), 1 / rows);
    }
    const FitTerms solution = sums.Solve();
    EXPECT_GT(solution[0], 2);
    EXPECT_EQ(solution[2], 0);
  }
}

// Noise alone gives every other term a positive coefficient half of the time.
TEST(FitSums, ATermThatExplainsNoMoreThanChanceIsLeftOut) {
  SeededRng rng(13);
  int num_used = 0;
  for (int round = 0; round < 200; ++round) {
    FitSums sums;
    for (int i = 0; i < 100; ++i) {
      FitTerms terms;
      for (double& term : terms) term = rng.UniformDouble();
      sums.Add(terms, 2 * terms[0] + terms[1] + 0.2 * rng.UniformDouble() - 0.1, 1);
    }
    num_used += sums.Solve()[2] > 0;
  }
  EXPECT_LE(num_used, 20);
}

TEST(CostModel, ErrorsAreThoseOfHeldOutSteps) {
  CostModel model;
  Machine machine(kTrue);
  int32_t num_steps = 0;
  for (; num_steps < 64; ++num_steps) {
    const StepLoad load = LoadOf(64 + num_steps, 10 * num_steps);
    model.Add(load, machine.Seconds(load, 0));
  }
  // Four in five held-out steps are as predicted, every fifth takes twice as long.
  for (; num_steps < 64 + 5 * CostModel::kHeldOutSteps; ++num_steps) {
    const StepLoad load = LoadOf(64 + num_steps % 64, 0);
    const bool held_out = num_steps % CostModel::kHeldOutEvery == CostModel::kHeldOutEvery - 1;
    const bool slow = held_out && num_steps / CostModel::kHeldOutEvery % 5 == 0;
    model.Add(load, machine.Seconds(load, 0) * (slow ? 2 : 1));
  }
  EXPECT_EQ(model.Errors().num_steps, CostModel::kHeldOutSteps);
  EXPECT_NEAR(model.Errors().median, 0, 1e-6);
  EXPECT_NEAR(model.Errors().p95, 0.5, 1e-6);
}

}  // namespace
}  // namespace deepinfer
