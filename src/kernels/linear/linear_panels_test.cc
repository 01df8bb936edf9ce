// Products with matrices in panels, in every CPU variant of this machine.
#include "kernels/testing/linear_case.h"
#include "kernels/testing/packed.h"

namespace deepinfer::testing {
namespace {

// Whole tiles and single panels, last panels cut off, columns that fill no group.
constexpr LinearShape kShapes[] = {{WeightFormat::kFp8, 64, 96},    {WeightFormat::kFp8, 160, 1280},
                                   {WeightFormat::kFp4, 33, 64},    {WeightFormat::kFp4, 144, 1056},
                                   {WeightFormat::kBf16, 100, 588}, {WeightFormat::kBf16, 13, 37}};

class LinearPanels : public CpuVariants {};

TEST_P(LinearPanels, MatchTheOracle) {
  for (const LinearShape& shape : kShapes) {
    for (const DataKind kind : kAllDataKinds) {
      SCOPED_TRACE(static_cast<int>(shape.format) * 10 + static_cast<int>(kind));
      Random random(31);
      const PackedMatrix w = MakePacked(shape.format, kind, shape.rows, shape.cols, random);
      for (const int32_t num_rows : {1, 7, 8, 9, 64}) {
        ExpectCloseToOracle(backend(), w.view, MakeX(kind, num_rows, shape.cols, random), kind);
      }
    }
  }
}

TEST_P(LinearPanels, MatchTheOracleAtRealShapes) {
  const LinearShape shapes[] = {{WeightFormat::kFp8, 256, 8192},
                                {WeightFormat::kFp4, 256, 5120},
                                {WeightFormat::kBf16, 384, 5120}};
  for (const LinearShape& shape : shapes) {
    SCOPED_TRACE(static_cast<int>(shape.format));
    Random random(32);
    const PackedMatrix w =
        MakePacked(shape.format, DataKind::kNormal, shape.rows, shape.cols, random);
    for (const int32_t num_rows : {1, 8, 13}) {
      ExpectCloseToOracle(backend(), w.view, MakeX(DataKind::kNormal, num_rows, shape.cols, random),
                          DataKind::kNormal);
    }
  }
}

TEST_P(LinearPanels, RowsDoNotDependOnTheBatch) {
  for (const LinearShape& shape : kShapes) {
    SCOPED_TRACE(static_cast<int>(shape.format));
    Random random(33);
    const PackedMatrix w =
        MakePacked(shape.format, DataKind::kNormal, shape.rows, shape.cols, random);
    // More rows than a block of them, so that both sides of its edge are seen.
    for (const int32_t most : {kMostRows, 2 * kMostRows + 3}) {
      const std::vector<bf16> x = MakeX(DataKind::kNormal, most, shape.cols, random);
      const auto run = [&](const Backend& b, int32_t begin, int32_t count, auto* out) {
        RunLinear(b, w.view, x.data() + int64_t{begin} * shape.cols, count, out);
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
      EXPECT_TRUE(LinearOutput<float>(backend(), w.view, x) ==
                  LinearOutput<float>(kRef, w.view, x));
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
      EXPECT_TRUE(LinearOutput<float>(backend(), w.view, x) ==
                  LinearOutput<float>(kRef, w.view, x));
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
  EXPECT_TRUE(LinearOutput<float>(backend(), w.view, x) == LinearOutput<float>(kRef, w.view, x));
}

// Rows that no quantiser made, between rows on the FP8 grid: each is its own matter.
TEST_P(LinearPanels, RowsOffTheGridMixWithRowsOnIt) {
  for (const WeightFormat format : {WeightFormat::kFp8, WeightFormat::kFp4}) {
    Random random(38);
    const PackedMatrix w = MakePacked(format, DataKind::kNormal, 96, 640, random);
    std::vector<bf16> x = MakeFp8Grid(DataKind::kNormal, kMostRows, 640, random);
    const std::vector<bf16> any = MakeBf16(DataKind::kHotOutlier, kMostRows, 640, random);
    for (int64_t t = 0; t < kMostRows; t += 1 + random.Below(4)) {
      std::copy_n(any.data() + t * 640, 640, x.data() + t * 640);
    }
    const auto run = [&](const Backend& b, int32_t begin, int32_t count, auto* out) {
      RunLinear(b, w.view, x.data() + int64_t{begin} * 640, count, out);
    };
    ExpectCloseToOracle(w.view, x, DataKind::kNormal,
                        ExpectBatchInvariant<bf16>(kMostRows, 96, run, GetParam()),
                        ExpectBatchInvariant<float>(kMostRows, 96, run, GetParam()));
  }
}

// Groups whose smallest and largest values lie `span` powers of two apart.
TEST_P(LinearPanels, GroupsOfWideRange) {
  for (const int span : {17, 18, 19, 20, 40}) {
    SCOPED_TRACE(span);
    Random random(39);
    const PackedMatrix w = MakePacked(WeightFormat::kFp4, DataKind::kMaxCode, 48, 128, random);
    std::vector<bf16> x;
    for (int i = 0; i < 65 * 128; ++i) {
      const double size = std::exp2(i % 32 == 5 ? 0 : i % 32 == 9 ? span : random.Below(span));
      x.push_back(ToBf16(static_cast<float>((1 + random.Below(128) / 128.0) * size *
                                            (random.Below(2) != 0 ? 1 : -1))));
    }
    const auto run = [&](const Backend& b, int32_t begin, int32_t count, auto* out) {
      RunLinear(b, w.view, x.data() + int64_t{begin} * 128, count, out);
    };
    ExpectCloseToOracle(w.view, x, DataKind::kNormal,
                        ExpectBatchInvariant<bf16>(65, 48, run, GetParam()),
                        ExpectBatchInvariant<float>(65, 48, run, GetParam()));
  }
}

// Negative controls of kernels.md 7. That panels with other weights give other products also proves
// that the panels are what is read.
// Several products at once, of all formats, one of them without panels: the bits of each alone.
TEST_P(LinearPanels, TogetherAsOneByOne) {
  ThreadPool pool(3);
  for (const int32_t num_rows : {1, 5, 70}) {
    Random random(38);
    std::vector<PackedMatrix> matrices;
    for (const LinearShape& shape : {LinearShape{WeightFormat::kFp8, 64, 96},
                                     {WeightFormat::kFp4, 144, 1056},
                                     {WeightFormat::kBf16, 100, 588},
                                     {WeightFormat::kFp4, 33, 64}}) {
      matrices.push_back(
          MakePacked(shape.format, DataKind::kNormal, shape.rows, shape.cols, random));
    }
    matrices[3].view.panels = nullptr;
    std::vector<std::vector<bf16>> x;
    std::vector<std::vector<float>> out;
    std::vector<LinearParams> products;
    for (const PackedMatrix& m : matrices) {
      const Matrix& w = m.view;
      x.push_back(MakeX(DataKind::kNormal, num_rows, w.cols, random));
      out.emplace_back(static_cast<size_t>(num_rows) * static_cast<size_t>(w.rows), NAN);
      products.push_back({.num_tokens = num_rows,
                          .weight = w,
                          .x = x.back().data(),
                          .x_stride = w.cols,
                          .out_f32 = out.back().data(),
                          .out_stride = w.rows});
    }
    Linears({.variant = GetParam(), .threads = &pool}, products);
    for (size_t i = 0; i < matrices.size(); ++i) {
      EXPECT_TRUE(out[i] == LinearOutput<float>(backend(), matrices[i].view, x[i])) << i;
    }
  }
}

class LinearPanelMistakes : public CpuVariants {
 protected:
  // The distance from the oracle of the right weights, after `spoil` has been at the panels.
  template <typename Spoil>
  double DistanceAfter(WeightFormat format, const Spoil& spoil) const {
    Random random(37);
    PackedMatrix w = MakePacked(format, DataKind::kNormal, 64, 640, random);
    std::fill(w.plain.scale.begin(), w.plain.scale.end(), uint8_t{120});
    w.Pack();
    const std::vector<bf16> x = MakeFp8Grid(DataKind::kNormal, 33, 640, random);
    const std::vector<float> exact = LinearOutput<float>(kRef, w.view, x);
    EXPECT_LT(Compare(LinearOutput<bf16>(backend(), w.view, x), exact).rel_l2, kBf16RelL2);
    spoil(w);
    return Compare(LinearOutput<bf16>(backend(), w.view, x), exact).rel_l2;
  }
};
DI_INSTANTIATE_CPU_VARIANTS(LinearPanelMistakes);

TEST_P(LinearPanelMistakes, ADoubledScaleInOneBlockIsSeen) {
  for (const WeightFormat format : {WeightFormat::kFp8, WeightFormat::kFp4}) {
    EXPECT_GT(DistanceAfter(format,
                            [](PackedMatrix& w) {
                              ++w.plain.scale[3];
                              w.Pack();
                            }),
              kBf16RelL2);
  }
}

TEST_P(LinearPanelMistakes, SwappedNibblesAreSeen) {
  EXPECT_GT(DistanceAfter(WeightFormat::kFp4,
                          [](PackedMatrix& w) {
                            for (uint8_t& pair : w.plain.data) {
                              pair = static_cast<uint8_t>(pair << 4 | pair >> 4);
                            }
                            w.Pack();
                          }),
            kBf16RelL2);
}

TEST_P(LinearPanelMistakes, ALostLastGroupIsSeen) {
  for (const WeightFormat format : {WeightFormat::kFp8, WeightFormat::kFp4, WeightFormat::kBf16}) {
    EXPECT_GT(DistanceAfter(format,
                            [](PackedMatrix& w) {
                              const int64_t group = PanelGroupBytes(w.view.format);
                              auto* const panels = const_cast<uint8_t*>(w.view.panels);
                              std::fill_n(panels + 19 * group, group, uint8_t{0});
                            }),
              kBf16RelL2);
  }
}

DI_INSTANTIATE_CPU_VARIANTS(LinearPanels);

}  // namespace
}  // namespace deepinfer::testing
