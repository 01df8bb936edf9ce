// kernels/testing/linear_case.h: products under test, and their distance from the oracle.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/linear/linear.h"
#include "kernels/testing/batch.h"
#include "kernels/testing/data.h"

namespace deepinfer::testing {

// Limits of kernels.md 7, against the oracle's unrounded (F32) result.
inline constexpr double kBf16RelL2 = 2e-3, kBf16Max = 1e-2, kF32RelL2 = 2e-5;

struct LinearShape {
  WeightFormat format;
  int32_t rows, cols;
};

inline std::string Describe(const LinearShape& shape, DataKind kind) {
  return "format " + std::to_string(static_cast<int>(shape.format)) + " [" +
         std::to_string(shape.rows) + ", " + std::to_string(shape.cols) + "] data " +
         std::to_string(static_cast<int>(kind));
}

// Rows on the FP8 grid where they are long enough to have one.
inline std::vector<bf16> MakeX(DataKind kind, int32_t num_rows, int32_t cols, Random& random) {
  return cols % 32 == 0 ? MakeFp8Grid(kind, num_rows, cols, random)
                        : MakeBf16(kind, num_rows, cols, random);
}

// x [num_rows, w.cols] times w into out [num_rows, w.rows], through the dispatcher.
template <typename Out>
void RunLinear(const Backend& backend, const Matrix& w, const bf16* x, int32_t num_rows, Out* out) {
  LinearParams params{
      .num_tokens = num_rows, .weight = w, .x = x, .x_stride = w.cols, .out_stride = w.rows};
  if constexpr (std::is_same_v<Out, bf16>) {
    params.out = out;
  } else {
    params.out_f32 = out;
  }
  Linear(backend, params);
}

template <typename Out>
std::vector<Out> LinearOutput(const Backend& backend, const Matrix& w, const std::vector<bf16>& x) {
  const auto num_rows = static_cast<int32_t>(x.size()) / w.cols;
  Guarded<Out> out(int64_t{num_rows} * w.rows);
  RunLinear(backend, w, x.data(), num_rows, out.data());
  EXPECT_TRUE(out.GuardsIntact());
  return out.ToVector();
}

// Of sums that are exact in F32 the same bits, of others a distance inside the limits.
inline void ExpectCloseToOracle(const Matrix& w, const std::vector<bf16>& x, DataKind kind,
                                const std::vector<bf16>& out, const std::vector<float>& out_f32) {
  const std::vector<float> exact = LinearOutput<float>(kRef, w, x);
  const std::vector<bf16> rounded = LinearOutput<bf16>(kRef, w, x);
  if (kind == DataKind::kInteger || kind == DataKind::kZero) {
    EXPECT_TRUE(out_f32 == exact);
    EXPECT_TRUE(out == rounded);
    return;
  }
  const Difference d = Compare(out, exact);
  // A few outputs may all round badly; the limit is meant for tensors.
  if (out.size() >= 1024) {
    EXPECT_LT(d.rel_l2, kBf16RelL2);
  }
  EXPECT_LT(WorstRow(out.data(), exact.data(), std::ssize(x) / w.cols, w.rows), 2 * kBf16RelL2);
  EXPECT_LE(d.max_abs, kBf16Max * d.max_ref);
  EXPECT_LT(Compare(out_f32, exact).rel_l2, kF32RelL2);
  EXPECT_GE(EqualShare(out, rounded), 0.99);
}

inline void ExpectCloseToOracle(const Backend& backend, const Matrix& w, const std::vector<bf16>& x,
                                DataKind kind) {
  ExpectCloseToOracle(w, x, kind, LinearOutput<bf16>(backend, w, x),
                      LinearOutput<float>(backend, w, x));
}

}  // namespace deepinfer::testing
