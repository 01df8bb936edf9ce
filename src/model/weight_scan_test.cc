#include "model/weight_scan.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

struct Tensor {
  TensorSpec spec;
  std::vector<uint8_t> bytes;
  ScanItem item() const { return {&spec, bytes, "f.safetensors"}; }
};

Tensor Filled(const std::string& name, Dtype dtype, int64_t count, uint8_t value,
              Part part = Part::kDense) {
  Tensor tensor{{name, dtype, {count}, part}, {}};
  tensor.bytes.assign(static_cast<size_t>(tensor.spec.num_bytes()), value);
  return tensor;
}

std::string RefusalOf(const Tensor& tensor) {
  const ScanItem items[] = {tensor.item()};
  return MessageOf(ScanWeights(items, nullptr, {}).status());
}

TEST(WeightScan, RefusesBothFp8NanCodesAndNamesTheElement) {
  for (const uint8_t nan : {0x7f, 0xff}) {
    Tensor tensor = Filled("w", Dtype::kF8E4m3, 1000, 0x7e);
    EXPECT_EQ(RefusalOf(tensor), "");
    tensor.bytes[777] = nan;
    EXPECT_EQ(
        RefusalOf(tensor),
        "w: expected numbers, found an FP8 NaN code at element 777 of 1000, file f.safetensors");
  }
}

TEST(WeightScan, RefusesNanScales) {
  Tensor tensor = Filled("s", Dtype::kF8E8m0, 64, 127);
  tensor.bytes[63] = 255;
  EXPECT_HAS(RefusalOf(tensor), "a NaN scale (255) at element 63");
}

TEST(WeightScan, RefusesBf16AndF32ThatAreNotFinite) {
  Tensor half = Filled("b", Dtype::kBf16, 10, 0);
  half.bytes[2 * 4] = 0x80;
  half.bytes[2 * 4 + 1] = 0x7f;  // +infinity
  EXPECT_HAS(RefusalOf(half), "not finite at element 4 of 10");
  Tensor single = Filled("f", Dtype::kF32, 10, 0);
  single.bytes[4 * 9 + 2] = 0xc0;
  single.bytes[4 * 9 + 3] = 0xff;  // a NaN
  EXPECT_HAS(RefusalOf(single), "not finite at element 9 of 10");
  single.bytes[4 * 9 + 3] = 0x7e;
  EXPECT_EQ(RefusalOf(single), "");
}

TEST(WeightScan, CountsUnusualScalesWithoutRefusingThem) {
  Tensor usual = Filled("usual", Dtype::kF8E8m0, 64, 64),
         odd = Filled("odd", Dtype::kF8E8m0, 64, 190);
  odd.bytes[1] = 63;
  odd.bytes[2] = 191;
  odd.bytes[3] = 0;
  const ScanItem items[] = {usual.item(), odd.item()};
  const StatusOr<ScanReport> report = ScanWeights(items, nullptr, {});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->num_unusual_scales, 3);
  EXPECT_EQ(report->num_unusual_tensors, 1);
  EXPECT_EQ(report->first_unusual_tensor, "odd");
  EXPECT_EQ(report->has_unusual, (std::vector<uint8_t>{0, 1}));
}

TEST(WeightScan, NotesTheSmallestEngramScale) {
  Tensor table = Filled("e", Dtype::kF8E8m0, 64, 120, Part::kEngramTables);
  Tensor other = Filled("o", Dtype::kF8E8m0, 64, 70);
  const auto min_with = [&](uint8_t byte) {
    table.bytes[40] = byte;
    const ScanItem items[] = {table.item(), other.item()};
    return ScanWeights(items, nullptr, {}).value();
  };
  EXPECT_EQ(min_with(105).engram_scale_min, 105);
  EXPECT_TRUE(min_with(105).engram_direct());
  EXPECT_FALSE(min_with(104).engram_direct());
}

// Tensors larger than one piece of work, several of them bad: the report is the same for any
// threads.
TEST(WeightScan, ReportsTheFirstBadTensorForAnyNumberOfThreads) {
  std::vector<Tensor> tensors;
  for (int i = 0; i < 4; ++i) {
    tensors.push_back(Filled(StrCat("t", i), Dtype::kF8E4m3, 9 << 20, 0x11));
  }
  tensors[1].bytes[(8 << 20) + 5] = 0x7f;
  tensors[1].bytes[3 << 20] = 0xff;
  tensors[3].bytes[0] = 0x7f;
  std::vector<ScanItem> items;
  for (const Tensor& tensor : tensors) items.push_back(tensor.item());
  ThreadPool pool(4);
  const std::string message = MessageOf(ScanWeights(items, &pool, {}).status());
  EXPECT_EQ(message, MessageOf(ScanWeights(items, nullptr, {}).status()));
  EXPECT_HAS(message,
             StrCat("t1: expected numbers, found an FP8 NaN code at element ", 3 << 20, " of"));
  EXPECT_HAS(message, "; 1 more tensors have such values");
}

TEST(WeightScan, ProgressEndsAtTheTotal) {
  const Tensor tensor = Filled("t", Dtype::kI8, 5 << 20, 0xff);
  const ScanItem items[] = {tensor.item()};
  int64_t done = 0, total = 0;
  ASSERT_TRUE(ScanWeights(items, nullptr, [&](int64_t d, int64_t t) {
                done = d;
                total = t;
              }).ok());
  EXPECT_EQ(done, 5 << 20);
  EXPECT_EQ(total, 5 << 20);
}

}  // namespace
}  // namespace deepinfer
