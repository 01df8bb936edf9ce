#include "kernels/linear/linear.h"

#include "kernels/testing/linear_case.h"

namespace deepinfer::testing {
namespace {

constexpr LinearShape kSmallShapes[] = {
    {WeightFormat::kFp8, 64, 96},  {WeightFormat::kFp8, 32, 1280}, {WeightFormat::kFp4, 33, 64},
    {WeightFormat::kFp4, 8, 1056}, {WeightFormat::kBf16, 7, 588},  {WeightFormat::kBf16, 13, 37},
    {WeightFormat::kF32, 24, 512}, {WeightFormat::kF32, 3, 1021},  {WeightFormat::kF32, 26, 1040}};

TEST(Linear, MatchesTheOracleForEveryFormatAndKindOfData) {
  for (const LinearShape& shape : kSmallShapes) {
    for (const DataKind kind : kAllDataKinds) {
      SCOPED_TRACE(Describe(shape, kind));
      Random random(11);
      const OwnedMatrix w = MakeMatrix(shape.format, kind, shape.rows, shape.cols, random);
      ExpectCloseToOracle(kCpu, w.view, MakeX(kind, 67, shape.cols, random), kind);
    }
  }
}

TEST(Linear, MatchesTheOracleAtRealShapes) {
  const LinearShape shapes[] = {{WeightFormat::kFp8, 512, 5120},
                                {WeightFormat::kFp4, 2304, 5120},
                                {WeightFormat::kBf16, 384, 5120},
                                {WeightFormat::kF32, 24, 20480}};
  for (const LinearShape& shape : shapes) {
    SCOPED_TRACE(Describe(shape, DataKind::kNormal));
    Random random(12);
    const OwnedMatrix w =
        MakeMatrix(shape.format, DataKind::kNormal, shape.rows, shape.cols, random);
    ExpectCloseToOracle(kCpu, w.view, MakeX(DataKind::kNormal, 2, shape.cols, random),
                        DataKind::kNormal);
  }
}

TEST(Linear, RowsDoNotDependOnTheBatch) {
  for (const LinearShape& shape : kSmallShapes) {
    SCOPED_TRACE(Describe(shape, DataKind::kNormal));
    Random random(13);
    const OwnedMatrix w =
        MakeMatrix(shape.format, DataKind::kNormal, shape.rows, shape.cols, random);
    const std::vector<bf16> x = MakeX(DataKind::kNormal, kMostRows, shape.cols, random);
    const auto run = [&](const Backend& backend, int32_t begin, int32_t count, auto* out) {
      RunLinear(backend, w.view, x.data() + int64_t{begin} * shape.cols, count, out);
    };
    ExpectBatchInvariant<bf16>(kMostRows, shape.rows, run);
    ExpectBatchInvariant<float>(kMostRows, shape.rows, run);
  }
}

TEST(Linear, ReadsAndWritesRowsAtTheirStrides) {
  Random random(14);
  const OwnedMatrix w = MakeMatrix(WeightFormat::kFp8, DataKind::kNormal, 32, 64, random);
  const std::vector<bf16> x = MakeFp8Grid(DataKind::kNormal, 5, 96, random);
  std::vector<bf16> dense;
  for (int t = 0; t < 5; ++t) dense.insert(dense.end(), x.data() + t * 96, x.data() + t * 96 + 64);
  for (const Backend& backend : {kRef, kCpu}) {
    Guarded<bf16> out(5 * 40);
    Linear(backend, {.num_tokens = 5,
                     .weight = w.view,
                     .x = x.data(),
                     .x_stride = 96,
                     .out = out.data(),
                     .out_stride = 40});
    const std::vector<bf16> expected = LinearOutput<bf16>(backend, w.view, dense);
    for (int t = 0; t < 5; ++t) {
      EXPECT_TRUE(BitEqual(&out[t * 40], &expected[t * 32], 32));
      for (int n = 32; n < 40; ++n) EXPECT_EQ(out[t * 40 + n].bits, 0xffff) << "gap written";
    }
  }
}

// A scale near the end of E8M0 overflows F32 once 448 or the F16 bias is multiplied in.
TEST(Linear, UnusualScalesStayExact) {
  for (const WeightFormat format : {WeightFormat::kFp8, WeightFormat::kFp4}) {
    for (const uint8_t scale : {0, 20, 252, 254}) {
      Random random(15);
      OwnedMatrix w = MakeMatrix(format, DataKind::kMaxCode, 32, 64, random);
      std::fill(w.scale.begin(), w.scale.end(), scale);
      w.view.usual_scales = false;
      const float size = scale < 127 ? 0x1p60f : 0x1p-60f;
      std::vector<bf16> x;
      for (int i = 0; i < 3 * 64; ++i)
        x.push_back(ToBf16(size * static_cast<float>(random.Below(9) - 4)));
      const auto exact = LinearOutput<float>(kRef, w.view, x);
      EXPECT_TRUE(std::isfinite(exact[0]) && exact[0] != 0) << int{scale};
      EXPECT_TRUE(LinearOutput<float>(kCpu, w.view, x) == exact) << int{scale};
      EXPECT_TRUE(LinearOutput<bf16>(kCpu, w.view, x) == LinearOutput<bf16>(kRef, w.view, x))
          << int{scale};
      // The usual path must not be trusted with them.
      w.view.usual_scales = true;
      if (scale == 254) {
        EXPECT_FALSE(LinearOutput<float>(kCpu, w.view, x) == exact);
      }
    }
  }
}

// Every code of both formats through both forms, one code a row.
TEST(Linear, DecodesEveryCode) {
  for (const WeightFormat format : {WeightFormat::kFp8, WeightFormat::kFp4}) {
    Random random(16);
    OwnedMatrix w = MakeMatrix(format, DataKind::kZero, 256, 32, random);
    for (int code = 0; code < 256; ++code) {
      const int64_t row = format == WeightFormat::kFp8 ? int64_t{code} * 32 : int64_t{code} * 16;
      const bool nan = format == WeightFormat::kFp8 && IsE4m3Nan(static_cast<uint8_t>(code));
      w.data[row + code % 16] = static_cast<uint8_t>(nan ? 0 : code);
    }
    std::vector<bf16> x;
    for (int k = 0; k < 32; ++k) x.push_back(ToBf16(1.0f + static_cast<float>(k)));
    EXPECT_TRUE(LinearOutput<float>(kCpu, w.view, x) == LinearOutput<float>(kRef, w.view, x));
  }
}

// Negative controls of kernels.md 7: the limits see these mistakes.
TEST(Linear, ADoubledScaleInOneBlockIsSeen) {
  for (const WeightFormat format : {WeightFormat::kFp8, WeightFormat::kFp4}) {
    Random random(17);
    OwnedMatrix w = MakeMatrix(format, DataKind::kNormal, 64, 640, random);
    std::fill(w.scale.begin(), w.scale.end(), uint8_t{120});
    const std::vector<bf16> x = MakeFp8Grid(DataKind::kNormal, 4, 640, random);
    const std::vector<float> exact = LinearOutput<float>(kRef, w.view, x);
    ++w.scale[3];
    const std::vector<bf16> wrong = LinearOutput<bf16>(kCpu, w.view, x);
    EXPECT_GT(Compare(wrong, exact).rel_l2, kBf16RelL2);
    EXPECT_GT(WorstRow(wrong.data(), exact.data(), 4, 64), 2 * kBf16RelL2);
  }
}

TEST(Linear, SwappedNibblesAreSeen) {
  Random random(18);
  OwnedMatrix w = MakeMatrix(WeightFormat::kFp4, DataKind::kNormal, 64, 640, random);
  const std::vector<bf16> x = MakeFp8Grid(DataKind::kNormal, 4, 640, random);
  const std::vector<float> exact = LinearOutput<float>(kRef, w.view, x);
  for (uint8_t& pair : w.data) pair = static_cast<uint8_t>(pair << 4 | pair >> 4);
  EXPECT_GT(Compare(LinearOutput<bf16>(kCpu, w.view, x), exact).rel_l2, kBf16RelL2);
}

TEST(Linear, WrongParametersStopTheProgram) {
  Random random(19);
  const OwnedMatrix w = MakeMatrix(WeightFormat::kFp8, DataKind::kNormal, 32, 64, random);
  const std::vector<bf16> x = MakeFp8Grid(DataKind::kNormal, 1, 64, random);
  std::vector<bf16> out(32);
  const LinearParams good{.num_tokens = 1,
                          .weight = w.view,
                          .x = x.data(),
                          .x_stride = 64,
                          .out = out.data(),
                          .out_stride = 32};
  LinearParams narrow = good, silent = good, empty = good;
  narrow.x_stride = 63;
  silent.out = nullptr;
  empty.weight = {};
  Linear(kCpu, good);
  EXPECT_DEATH(Linear(kCpu, narrow), "x_stride");
  EXPECT_DEATH(Linear(kCpu, silent), "out_f32");
  EXPECT_DEATH(Linear(kCpu, empty), "empty");
}

}  // namespace
}  // namespace deepinfer::testing
