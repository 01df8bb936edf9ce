#include "apps/calibration.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

void Add(Calibration& calibration, double probability, int num_happened, int num_not) {
  for (int i = 0; i < num_happened; ++i) calibration.Add(probability, true);
  for (int i = 0; i < num_not; ++i) calibration.Add(probability, false);
}

TEST(Calibration, IsZeroWhereWhatIsSaidHappens) {
  Calibration calibration;
  Add(calibration, 0.75, 3, 1);
  Add(calibration, 0.25, 5, 15);
  Add(calibration, 1.0, 7, 0);
  Add(calibration, 0.0, 0, 7);
  EXPECT_NEAR(calibration.Error(), 0, 1e-12);
  EXPECT_EQ(calibration.num_events(), 38);
}

TEST(Calibration, WeighsBinsByTheirEvents) {
  Calibration calibration;
  Add(calibration, 0.9, 30, 30);  // 0.4 too much, 60 events
  Add(calibration, 0.35, 35, 5);  // 0.525 too little, 40 events
  EXPECT_NEAR(calibration.Error(), 0.6 * 0.4 + 0.4 * 0.525, 1e-12);
  EXPECT_NEAR(calibration.MeanProbability(), 0.6 * 0.9 + 0.4 * 0.35, 1e-12);
  EXPECT_NEAR(calibration.ShareHappened(), 0.65, 1e-12);
}

// Inside a bin errors of opposite sign cancel; in two bins they do not.
TEST(Calibration, ComparesMeansOfABin) {
  Calibration one_bin, two_bins;
  Add(one_bin, 0.42, 1, 1);
  Add(one_bin, 0.48, 2, 2);
  EXPECT_NEAR(one_bin.Error(), 0.5 - (0.42 + 2 * 0.48) / 3, 1e-12);
  Add(two_bins, 0.42, 1, 0);
  Add(two_bins, 0.58, 0, 1);
  EXPECT_NEAR(two_bins.Error(), 0.58, 1e-12);
}

}  // namespace
}  // namespace deepinfer
