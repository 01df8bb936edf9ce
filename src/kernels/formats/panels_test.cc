#include "kernels/formats/panels.h"

#include "kernels/testing/packed.h"

namespace deepinfer::testing {
namespace {

// The code (or BF16 bits) of element (row, col) as the header describes the order.
uint32_t CodeInPanels(const Matrix& w, int32_t row, int32_t col) {
  const uint8_t* group =
      w.panels + row / 16 * PanelBytes(w.format, w.cols) + col / 32 * PanelGroupBytes(w.format);
  const int32_t r = row % 16, k = col % 32;
  switch (w.format) {
    case WeightFormat::kFp4: {
      const uint8_t pair = group[k / 8 * 64 + r * 4 + k % 2 * 2 + k % 8 / 4];
      return k / 2 % 2 != 0 ? pair >> 4 : pair & 15;
    }
    case WeightFormat::kFp8:
      return group[k / 4 * 64 + r / 4 * 16 + k % 4 / 2 * 8 + r % 4 * 2 + k % 2];
    default: {
      const uint8_t* bytes = group + k / 2 * 64 + r * 4 + k % 2 * 2;
      return bytes[0] | uint32_t{bytes[1]} << 8;
    }
  }
}

uint32_t CodeInRows(const Matrix& w, int32_t row, int32_t col) {
  const int64_t index = int64_t{row} * w.cols + col;
  switch (w.format) {
    case WeightFormat::kFp4:
      return (w.bytes()[index / 2] >> (index % 2 * 4)) & 15;
    case WeightFormat::kFp8:
      return w.bytes()[index];
    default:
      return w.bf16_data()[index].bits;
  }
}

uint8_t ScaleInPanels(const Matrix& w, int32_t row, int32_t col) {
  const uint8_t* scales = w.panels + row / 16 * PanelBytes(w.format, w.cols) +
                          NumGroups(w.cols) * PanelGroupBytes(w.format);
  return w.format == WeightFormat::kFp4 ? scales[col / 32 * 16 + row % 16] : scales[col / 32];
}

void ExpectSameWeights(const Matrix& w) {
  for (int32_t row = 0; row < w.rows; ++row) {
    for (int32_t col = 0; col < w.cols; ++col) {
      ASSERT_EQ(CodeInPanels(w, row, col), CodeInRows(w, row, col)) << row << ", " << col;
      if (w.format == WeightFormat::kBf16) continue;
      const int32_t scale_row = w.format == WeightFormat::kFp8 ? row / 32 : row;
      ASSERT_EQ(ScaleInPanels(w, row, col), w.scale[scale_row * (w.cols / 32) + col / 32]);
    }
  }
}

TEST(Panels, HoldEveryWeightWhereTheHeaderSays) {
  Random random(1);
  ExpectSameWeights(MakePacked(WeightFormat::kFp4, DataKind::kNormal, 37, 96, random).view);
  ExpectSameWeights(MakePacked(WeightFormat::kFp8, DataKind::kNormal, 64, 96, random).view);
  ExpectSameWeights(MakePacked(WeightFormat::kBf16, DataKind::kNormal, 19, 37, random).view);
}

TEST(Panels, PadWithZeros) {
  Random random(2);
  const PackedMatrix m = MakePacked(WeightFormat::kBf16, DataKind::kNormal, 3, 37, random);
  Matrix padded = m.view;
  padded.cols = 64;  // the same number of groups
  for (int32_t row = 0; row < 16; ++row) {
    for (int32_t col = row < 3 ? 37 : 0; col < 64; ++col) {
      ASSERT_EQ(CodeInPanels(padded, row, col), 0u) << row << ", " << col;
    }
  }
}

// Full and partial panels, columns that fill no vector, scales that fill none.
TEST(Panels, FastFormWritesTheBytesOfThePlainOne) {
  Random random(4);
  for (const WeightFormat format : {WeightFormat::kFp4, WeightFormat::kFp8, WeightFormat::kBf16}) {
    for (const int32_t rows : {16, 19, 64, 65}) {
      if (format == WeightFormat::kFp8 && rows % 32 != 0) continue;
      for (const int32_t cols : {32, 37, 64, 96, 129, 256, 544, 1120}) {
        if (format != WeightFormat::kBf16 && cols % 32 != 0) continue;
        const PackedMatrix m = MakePacked(format, DataKind::kNormal, rows, cols, random);
        AlignedScratch plain;
        const int64_t bytes = PackedBytes(format, rows, cols);
        auto* const out = plain.Get<uint8_t>(bytes);
        std::fill_n(out, bytes, uint8_t{0xaa});
        PackPanelsPlain(m.plain.view, 0, NumPanels(rows), out);
        ASSERT_TRUE(std::equal(out, out + bytes, m.view.panels))
            << static_cast<int>(format) << " " << rows << " x " << cols;
      }
    }
  }
}

TEST(Panels, APartGoesWhereItIsTold) {
  Random random(5);
  const PackedMatrix m = MakePacked(WeightFormat::kFp4, DataKind::kNormal, 70, 96, random);
  AlignedScratch part;
  const int64_t bytes = PanelBytes(WeightFormat::kFp4, 96);
  auto* const out = part.Get<uint8_t>(2 * bytes);
  PackPanels(m.plain.view, 3, 5, out);
  EXPECT_TRUE(std::equal(out, out + 2 * bytes, m.view.panels + 3 * bytes));
}

TEST(Panels, SlicesAreTheSameRows) {
  Random random(3);
  const PackedMatrix m = MakePacked(WeightFormat::kFp8, DataKind::kNormal, 96, 64, random);
  const Matrix slice = RowSlice(m.view, 32, 64);
  ExpectSameWeights(slice);
  EXPECT_EQ(CodeInRows(slice, 1, 5), CodeInRows(m.view, 33, 5));
  EXPECT_EQ(slice.scale[0], m.view.scale[2]);
  EXPECT_EQ(RowSlice(m.plain.view, 32, 64).panels, nullptr);
  EXPECT_DEATH(RowSlice(m.view, 16, 32), "first % 32");
  const PackedMatrix fp4 = MakePacked(WeightFormat::kFp4, DataKind::kNormal, 96, 64, random);
  ExpectSameWeights(RowSlice(fp4.view, 16, 48));
  EXPECT_DEATH(RowSlice(fp4.view, 8, 32), "first % kPanelRows");
}

}  // namespace
}  // namespace deepinfer::testing
