#include "model/tensor_spec.h"

#include <gtest/gtest.h>

#include "base/disk.h"
#include "model/testing/tiny_checkpoint.h"

namespace deepinfer {
namespace {

ModelConfig RealConfig() {
  const std::string path =
      StrCat(DI_SOURCE_DIR, "/src/model/testdata/deepseek_v41_flash_config.json");
  return ParseModelConfig(RealDisk().ReadText(path).value(), path).value();
}

void ExpectRow(const CensusRow& row, int64_t num_tensors, int64_t num_bytes) {
  EXPECT_EQ(row.num_tensors, num_tensors);
  EXPECT_EQ(row.num_bytes, num_bytes);
}

// The published totals and the split by element type of DeepSeek-V4.1-Flash.
TEST(TensorSpec, RealCensusEqualsThePublishedOne) {
  const Census census = CountTensors(ExpectedTensors(RealConfig()));
  ExpectRow(census.total, 96085, 510286023000);
  ExpectRow(census.of(Dtype::kI8), 47232, 278585671680);
  ExpectRow(census.of(Dtype::kF8E4m3), 357, 204015223296);
  ExpectRow(census.of(Dtype::kF8E8m0), 47589, 23563015184);
  ExpectRow(census.of(Dtype::kBf16), 520, 3952883712);
  ExpectRow(census.of(Dtype::kF32), 387, 169229128);
}

TEST(TensorSpec, RealPartsEqualThePublishedSizes) {
  const Census census = CountTensors(ExpectedTensors(RealConfig()));
  // 15,360 experts of 3 x (5,898,240 + 368,640) bytes.
  EXPECT_EQ(census.of(Part::kRoutedExperts).num_bytes, 15360 * int64_t{18800640});
  EXPECT_EQ(census.of(Part::kEngramTables).num_bytes, 202758032400);
  EXPECT_EQ(census.of(Part::kDraftExperts).num_bytes, 3 * 128 * int64_t{18800640});
  EXPECT_NEAR(static_cast<double>(census.of(Part::kVision).num_bytes), 0.97e9, 0.01e9);
  EXPECT_NEAR(static_cast<double>(census.of(Part::kEngramProjections).num_bytes), 0.31e9, 0.01e9);
  EXPECT_NEAR(static_cast<double>(census.of(Part::kEmbedHead).num_bytes), 2.65e9, 0.01e9);
}

TEST(TensorSpec, OneMoreLayerChangesTheCensus) {  // negative control of the two tests above
  ModelConfig config = RealConfig();
  config.num_hidden_layers = 39;
  EXPECT_NE(CountTensors(ExpectedTensors(config)).total.num_tensors, 96085);
}

TEST(TensorSpec, ATextOnlyCheckpointHasNoVisionAndNoImageRows) {
  ModelConfig config = RealConfig();
  const auto image_rows = [&config] {
    int64_t n = 0;
    for (const TensorSpec& tensor : ExpectedTensors(config)) n += tensor.name.starts_with("image_");
    return n;
  };
  EXPECT_EQ(image_rows(), 3);
  config.has_vision = false;
  EXPECT_EQ(image_rows(), 0);
  EXPECT_EQ(CountTensors(ExpectedTensors(config)).of(Part::kVision).num_tensors, 0);
}

TEST(TensorSpec, PlacesOptionalTensorsByLayerRole) {
  std::map<std::string, std::string> shapes;
  for (const TensorSpec& tensor : ExpectedTensors(RealConfig())) {
    shapes[tensor.name] = DescribeTensor(tensor.dtype, tensor.shape);
  }
  EXPECT_TRUE(shapes.contains("layers.14.attn.compressor.wgate.weight"));
  EXPECT_FALSE(shapes.contains("layers.20.attn.compressor.wgate.weight"));
  EXPECT_FALSE(shapes.contains("layers.24.attn.indexer.wk.weight"));
  EXPECT_EQ(shapes["layers.24.attn.indexer.wq_b.scale"], "F8_E8M0 [128, 40]");
  EXPECT_EQ(shapes["layers.0.ffn.experts.383.w2.weight"], "I8 [5120, 1152]");
  EXPECT_EQ(shapes["layers.0.ffn.experts.383.w2.scale"], "F8_E8M0 [5120, 72]");
  EXPECT_EQ(shapes["layers.1.engram.wkv.weight"], "F8_E4M3 [25600, 6144]");
  EXPECT_EQ(shapes["layers.39.hc_ffn_fn"], "F32 [24, 20480]");
  EXPECT_EQ(shapes["mtp.0.main_proj.scale"], "F8_E8M0 [160, 480]");
  EXPECT_EQ(shapes["mtp.2.confidence_head.proj.weight"], "BF16 [1, 5376]");
  EXPECT_EQ(shapes["aligner.w1.weight"], "BF16 [5120, 9216]");
}

TEST(TensorSpec, DtypeNamesRoundTrip) {
  for (const char* name : {"F8_E4M3", "F8_E8M0", "I8", "BF16", "F32", "F16", "I64"}) {
    EXPECT_EQ(DtypeName(*DtypeFromName(name)), name);
  }
  EXPECT_FALSE(DtypeFromName("F4").has_value());
}

}  // namespace
}  // namespace deepinfer
