// Products with matrices in panels, in every CPU variant of this machine.
#include "kernels/linear/linear.h"
#include "kernels/testing/batch.h"
#include "kernels/testing/packed.h"

namespace deepinfer::testing {
namespace {

// Limits of kernels.md 7, against the oracle's unrounded (F32) result.
constexpr double kBf16RelL2 = 2e-3, kBf16Max = 1e-2, kF32RelL2 = 2e-5;

struct Shape {
  WeightFormat format;
  int32_t rows, cols;
};
// Whole tiles and single panels, last panels cut off, columns that fill no group.
constexpr Shape kShapes[] = {{WeightFormat::kFp8, 64, 96},    {WeightFormat::kFp8, 160, 1280},
                             {WeightFormat::kFp4, 33, 64},    {WeightFormat::kFp4, 144, 1056},
                             {WeightFormat::kBf16, 100, 588}, {WeightFormat::kBf16, 13, 37}};

std::vector<bf16> MakeX(DataKind kind, int32_t num_rows, int32_t cols, Random& random) {
  return cols % 32 == 0 ? MakeFp8Grid(kind, num_rows, cols, random)
                        : MakeBf16(kind, num_rows, cols, random);
}

void RunInto(const Backend& backend, const Matrix& w, const bf16* x, int32_t num_rows, bf16* out) {
  Linear(backend, {.num_tokens = num_rows,
                   .weight = w,
                   .x = x,
                   .x_stride = w.cols,
                   .out = out,
                   .out_stride = w.rows});
}
void RunInto(const Backend& backend, const Matrix& w, const bf16* x, int32_t num_rows, float* out) {
  Linear(backend, {.num_tokens = num_rows,
                   .weight = w,
                   .x = x,
                   .x_stride = w.cols,
                   .out_f32 = out,
                   .out_stride = w.rows});
}

template <typename Out>
std::vector<Out> Output(const Backend& backend, const Matrix& w, const std::vector<bf16>& x) {
  const auto num_rows = static_cast<int32_t>(x.size()) / w.cols;
  Guarded<Out> out(int64_t{num_rows} * w.rows);
  RunInto(backend, w, x.data(), num_rows, out.data());
  EXPECT_TRUE(out.GuardsIntact());
  return out.ToVector();
}

class LinearPanels : public CpuVariants {
 protected:
  void ExpectCloseToOracle(const Matrix& w, const std::vector<bf16>& x, DataKind kind) const {
    const std::vector<float> exact = Output<float>(kRef, w, x);
    const std::vector<bf16> out = Output<bf16>(backend(), w, x);
    const std::vector<float> out_f32 = Output<float>(backend(), w, x);
    if (kind == DataKind::kInteger || kind == DataKind::kZero) {
      EXPECT_TRUE(out_f32 == exact);
      EXPECT_TRUE(out == Output<bf16>(kRef, w, x));
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
    EXPECT_GE(EqualShare(out, Output<bf16>(kRef, w, x)), 0.99);
  }
};

TEST_P(LinearPanels, MatchTheOracle) {
  for (const Shape& shape : kShapes) {
    for (const DataKind kind : kAllDataKinds) {
      SCOPED_TRACE(static_cast<int>(shape.format) * 10 + static_cast<int>(kind));
      Random random(31);
      const PackedMatrix w = MakePacked(shape.format, kind, shape.rows, shape.cols, random);
      for (const int32_t num_rows : {1, 7, 8, 9, 64}) {
        ExpectCloseToOracle(w.view, MakeX(kind, num_rows, shape.cols, random), kind);
      }
    }
  }
}

TEST_P(LinearPanels, MatchTheOracleAtRealShapes) {
  const Shape shapes[] = {{WeightFormat::kFp8, 256, 8192},
                          {WeightFormat::kFp4, 256, 5120},
                          {WeightFormat::kBf16, 384, 5120}};
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(static_cast<int>(shape.format));
    Random random(32);
    const PackedMatrix w =
        MakePacked(shape.format, DataKind::kNormal, shape.rows, shape.cols, random);
    for (const int32_t num_rows : {1, 8, 13}) {
      ExpectCloseToOracle(w.view, MakeX(DataKind::kNormal, num_rows, shape.cols, random),
                          DataKind::kNormal);
    }
  }
}

TEST_P(LinearPanels, RowsDoNotDependOnTheBatch) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(static_cast<int>(shape.format));
    Random random(33);
    const PackedMatrix w =
        MakePacked(shape.format, DataKind::kNormal, shape.rows, shape.cols, random);
    // More rows than a block of them, so that both sides of its edge are seen.
    for (const int32_t most : {kMostRows, 2 * kMostRows + 3}) {
      const std::vector<bf16> x = MakeX(DataKind::kNormal, most, shape.cols, random);
      const auto run = [&](const Backend& b, int32_t begin, int32_t count, auto* out) {
        RunInto(b, w.view, x.data() + int64_t{begin} * shape.cols, count, out);
      };
      ExpectBatchInvariant<bf16>(most, shape.rows, run, GetParam());
      ExpectBatchInvariant<float>(most, shape.rows, run, GetParam());
    }
  }
}

TEST_P(LinearPanels, DecodeEveryCode) {
  for (const WeightFormat format : {WeightFormat::kFp8, WeightFormat::kFp4}) {
    Random random(34);
    PackedMatrix w = MakePacked(format, DataKind::kZero, 256, 32, random);
    for (int code = 0; code < 256; ++code) {
      const int64_t row = format == WeightFormat::kFp8 ? int64_t{code} * 32 : int64_t{code} * 16;
      const bool nan = format == WeightFormat::kFp8 && IsE4m3Nan(static_cast<uint8_t>(code));
      w.plain.data[static_cast<size_t>(row + code % 16)] = static_cast<uint8_t>(nan ? 0 : code);
    }
    w.Pack();
    for (const int32_t num_rows : {1, 9}) {
      std::vector<bf16> x;
      for (int k = 0; k < 32 * num_rows; ++k) x.push_back(ToBf16(1.0f + static_cast<float>(k)));
      EXPECT_TRUE(Output<float>(backend(), w.view, x) == Output<float>(kRef, w.view, x));
    }
  }
}

TEST_P(LinearPanels, ScalesMayReachTheEndsOfTheirUsualRange) {
  for (const WeightFormat format : {WeightFormat::kFp8, WeightFormat::kFp4}) {
    for (const uint8_t scale : {64, 190}) {
      Random random(35);
      PackedMatrix w = MakePacked(format, DataKind::kInteger, 64, 64, random);
      std::fill(w.plain.scale.begin(), w.plain.scale.end(), scale);
      w.Pack();
      const std::vector<bf16> x = MakeFp8Grid(DataKind::kInteger, 9, 64, random);
      EXPECT_TRUE(Output<float>(backend(), w.view, x) == Output<float>(kRef, w.view, x));
    }
  }
}

TEST_P(LinearPanels, UnusualScalesTakeTheExactPath) {
  Random random(36);
  PackedMatrix w = MakePacked(WeightFormat::kFp8, DataKind::kMaxCode, 32, 64, random);
  std::fill(w.plain.scale.begin(), w.plain.scale.end(), uint8_t{0});
  w.Pack();
  w.view.usual_scales = false;
  std::vector<bf16> x;
  for (int i = 0; i < 3 * 64; ++i)
    x.push_back(ToBf16(0x1p60f * static_cast<float>(random.Below(9) - 4)));
  EXPECT_TRUE(Output<float>(backend(), w.view, x) == Output<float>(kRef, w.view, x));
}

// Panels that differ from the plain weights prove that the panels are what is read.
TEST_P(LinearPanels, AreRead) {
  Random random(37);
  PackedMatrix w = MakePacked(WeightFormat::kFp4, DataKind::kNormal, 64, 640, random);
  const std::vector<bf16> x = MakeFp8Grid(DataKind::kNormal, 4, 640, random);
  const std::vector<float> exact = Output<float>(kRef, w.view, x);
  for (uint8_t& pair : w.plain.data) pair = static_cast<uint8_t>(pair << 4 | pair >> 4);
  w.Pack();
  EXPECT_GT(Compare(Output<bf16>(backend(), w.view, x), exact).rel_l2, kBf16RelL2);
}

DI_INSTANTIATE_CPU_VARIANTS(LinearPanels);

}  // namespace
}  // namespace deepinfer::testing
