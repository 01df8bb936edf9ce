#include "model/checkpoint.h"

#include <gtest/gtest.h>

#include "model/testing/tiny_checkpoint.h"

namespace deepinfer {
namespace {

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

constexpr const char* kWqA = "layers.0.attn.wq_a.weight";  // F8_E4M3 [64, 128]
constexpr const char* kFirstShard = "model-00001-of-00003.safetensors";

// Opens what `checkpoint` holds now; the message of the refusal, empty when it opens.
std::string RefusalOf(TinyCheckpoint& checkpoint) {
  checkpoint.Write();
  return MessageOf(Checkpoint::Open(checkpoint.disk, checkpoint.directory()).status());
}

void ExpectOneLine(const std::string& message) {
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

TEST(Checkpoint, OpensWithViewsIntoTheFiles) {
  TinyCheckpoint tiny;
  tiny.Write();
  ThreadPool pool(2);
  const auto opened = Checkpoint::Open(tiny.disk, tiny.directory(), {.pool = &pool});
  ASSERT_TRUE(opened.ok()) << opened.status();
  const Checkpoint& checkpoint = **opened;
  EXPECT_EQ(checkpoint.census().total.num_tensors, 852);
  EXPECT_EQ(checkpoint.census().total.num_bytes, 4438866);
  EXPECT_EQ(checkpoint.file_names().size(), 3u);
  const ModelWeights& weights = checkpoint.weights();
  ASSERT_EQ(weights.layers.size(), 8u);
  ASSERT_EQ(weights.mtp.size(), 3u);
  const Matrix& wq_a = weights.layers[0].wq_a;
  EXPECT_EQ(wq_a.rows, 64);
  EXPECT_EQ(wq_a.cols, 128);
  EXPECT_TRUE(wq_a.usual_scales);
  EXPECT_EQ(std::memcmp(wq_a.bytes(), tiny.At(kWqA).bytes.data(), 64 * 128), 0);
  const Matrix& w2 = weights.layers[7].experts[7].w2;
  EXPECT_EQ(w2.format, WeightFormat::kFp4);
  EXPECT_EQ(w2.rows, 128);
  EXPECT_EQ(w2.cols, 64);
  EXPECT_TRUE(weights.layers[3].compressor_wkv.empty());
  EXPECT_FALSE(weights.layers[2].compressor_wgate.empty());
  EXPECT_TRUE(weights.layers[4].compressor_wgate.empty());
  EXPECT_TRUE(weights.layers[4].indexer_wk.format == WeightFormat::kBf16);
  EXPECT_TRUE(weights.layers[6].indexer_wk.empty());
  EXPECT_FALSE(weights.layers[6].indexer_wq_b.empty());
  EXPECT_EQ(weights.layers[3].engram.table.rows, 6332);
  EXPECT_EQ(weights.layers[3].engram.table.dim, 32);
  EXPECT_EQ(weights.confidence_proj.cols, 160);
  EXPECT_EQ(weights.main_proj.cols, 384);
  EXPECT_EQ(checkpoint.scan().engram_scale_min, 124);
  EXPECT_TRUE(checkpoint.scan().engram_direct());
}

TEST(Checkpoint, ATextOnlyOneOpensWithoutVisionTensors) {
  TinyCheckpoint tiny;
  // The value stays, under a name that says nothing about the model.
  tiny.config_json = Replaced(tiny.config_json, "\"vision_config\"", "\"auto_map\"");
  std::erase_if(tiny.tensors, [](const LooseTensor& tensor) {
    return tensor.name.starts_with("vision.") || tensor.name.starts_with("aligner.") ||
           tensor.name.starts_with("image_");
  });
  tiny.Write();
  const auto opened = Checkpoint::Open(tiny.disk, tiny.directory());
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ((*opened)->weights().image_start, nullptr);
  EXPECT_NE((*opened)->weights().norm, nullptr);
}

TEST(Checkpoint, AlignedWeightsAreNotCopied) {
  TinyCheckpoint tiny;
  tiny.Write();
  const auto opened = Checkpoint::Open(tiny.disk, tiny.directory());
  ASSERT_TRUE(opened.ok());
  const std::span<const uint8_t> mapped =
      tiny.disk.OpenRead(StrCat("model/", kFirstShard)).value()->Map().value();
  const auto* sink = reinterpret_cast<const uint8_t*>((*opened)->weights().layers[0].attn_sink);
  EXPECT_TRUE(sink >= mapped.data() && sink < mapped.data() + mapped.size());
}

// Nothing in the format aligns the payload: a header of odd length moves every tensor by a byte.
TEST(Checkpoint, MisalignedWeightsAreCopied) {
  TinyCheckpoint tiny;
  tiny.Write();
  const std::string path = StrCat("model/", kFirstShard);
  std::string shard = tiny.disk.ReadText(path).value();
  size_t header_bytes = 0;
  for (size_t i = 8; i-- > 0;) header_bytes = header_bytes << 8 | static_cast<uint8_t>(shard[i]);
  shard.insert(8 + header_bytes, " ");
  ++shard[0];  // the length was a multiple of 8
  ASSERT_TRUE(tiny.disk.WriteText(path, shard).ok());
  const auto opened = Checkpoint::Open(tiny.disk, tiny.directory());
  ASSERT_TRUE(opened.ok()) << opened.status();
  const BlockWeights& layer = (*opened)->weights().layers[0];
  EXPECT_EQ(reinterpret_cast<uintptr_t>(layer.attn_sink) % 4, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(layer.q_norm) % 2, 0u);
  EXPECT_EQ(std::memcmp(layer.attn_sink, tiny.At("layers.0.attn.attn_sink").bytes.data(), 16), 0);
  EXPECT_EQ(std::memcmp(layer.q_norm, tiny.At("layers.0.attn.q_norm.weight").bytes.data(), 128), 0);
}

TEST(Checkpoint, ReadsNamesWithTheModelPrefix) {
  TinyCheckpoint tiny;
  for (LooseTensor& tensor : tiny.tensors) tensor.name = "model." + tensor.name;
  EXPECT_EQ(RefusalOf(tiny), "");
}

TEST(Checkpoint, ReadsASingleFileWithoutIndex) {
  TinyCheckpoint tiny;
  for (LooseTensor& tensor : tiny.tensors) tensor.file = "model.safetensors";
  tiny.write_index = false;
  EXPECT_EQ(RefusalOf(tiny), "");
}

TEST(Checkpoint, case_68_MissingTensor) {
  TinyCheckpoint tiny;
  tiny.Remove(kWqA);
  const std::string message = RefusalOf(tiny);
  EXPECT_EQ(message,
            "model: layers.0.attn.wq_a.weight: expected F8_E4M3 [64, 128], found no such tensor");
}

TEST(Checkpoint, case_68_MissingFromItsFile) {
  TinyCheckpoint tiny;
  tiny.Remove(kWqA);
  tiny.index_says[kWqA] = kFirstShard;
  EXPECT_EQ(RefusalOf(tiny), StrCat("model: layers.0.attn.wq_a.weight: expected in ", kFirstShard,
                                    " (by the index), found not in it, file ", kFirstShard));
}

TEST(Checkpoint, case_68_ExtraTensor) {
  TinyCheckpoint tiny;
  tiny.tensors.push_back({"layers.0.attn.ape", "F32", {2}, std::vector<uint8_t>(8), kFirstShard});
  EXPECT_EQ(
      RefusalOf(tiny),
      StrCat("model: layers.0.attn.ape: expected no tensor of this name, found F32 [2], file ",
             kFirstShard));
}

TEST(Checkpoint, case_68_RenamedTensorSuggestsTheNearName) {
  TinyCheckpoint tiny;
  tiny.At(kWqA).name = "layers.0.attn.wqa.weight";
  const std::string message = RefusalOf(tiny);
  EXPECT_HAS(message,
             "layers.0.attn.wq_a.weight: expected F8_E4M3 [64, 128], found "
             "layers.0.attn.wqa.weight of that type and shape");
  EXPECT_HAS(message, StrCat("file ", kFirstShard, "; did you mean it?"));
  EXPECT_EQ(message.find("more differences"), std::string::npos) << message;
}

TEST(Checkpoint, case_68_WrongShape) {
  TinyCheckpoint tiny;
  tiny.At(kWqA).shape = {128, 64};
  EXPECT_EQ(
      RefusalOf(tiny),
      StrCat(
          "model: layers.0.attn.wq_a.weight: expected F8_E4M3 [64, 128], found F8_E4M3 [128, 64], "
          "file ",
          kFirstShard));
}

TEST(Checkpoint, case_68_WrongScaleGrid) {  // 128x128 blocks, as DeepSeek-V4 has them
  TinyCheckpoint tiny;
  LooseTensor& scale = tiny.At("layers.0.attn.wq_a.scale");
  scale.shape = {1, 1};
  scale.bytes.resize(1);
  EXPECT_HAS(RefusalOf(tiny),
             "layers.0.attn.wq_a.scale: expected F8_E8M0 [2, 4], found F8_E8M0 [1, 1], file ");
}

TEST(Checkpoint, case_68_WrongElementType) {
  TinyCheckpoint tiny;
  tiny.At(kWqA).dtype = "F8_E5M2";
  tiny.At("layers.0.attn.q_norm.weight").dtype = "F16";
  const std::string message = RefusalOf(tiny);
  EXPECT_HAS(
      message,
      "layers.0.attn.wq_a.weight: expected F8_E4M3 [64, 128], found F8_E5M2 [64, 128], file");
  EXPECT_HAS(message, "(and 1 more differences, `deepinfer inspect` lists them)");
  ExpectOneLine(message);
}

TEST(Checkpoint, case_68_TruncatedShard) {
  TinyCheckpoint tiny;
  tiny.Write();
  const std::string path = StrCat("model/", kFirstShard);
  const int64_t size = tiny.disk.OpenRead(path).value()->size();
  tiny.disk.Truncate(path, size - 100);
  const std::string message = MessageOf(Checkpoint::Open(tiny.disk, "model").status());
  EXPECT_HAS(message, StrCat("found a file of ", size - 100, " bytes, file ", kFirstShard));
  EXPECT_HAS(message, "the file is cut short by 100 bytes");
  ExpectOneLine(message);
}

TEST(Checkpoint, case_68_HeaderCutOff) {
  TinyCheckpoint tiny;
  tiny.Write();
  tiny.disk.Truncate(StrCat("model/", kFirstShard), 500);
  const std::string message = MessageOf(Checkpoint::Open(tiny.disk, "model").status());
  EXPECT_HAS(message, StrCat("model: ", kFirstShard,
                             ": expected a safetensors header, found the header length says "));
  EXPECT_EQ(message.find("more differences"), std::string::npos) << message;  // one cause, one line
}

TEST(Checkpoint, case_68_MissingShard) {
  TinyCheckpoint tiny;
  tiny.Write();
  ASSERT_TRUE(tiny.disk.Remove(StrCat("model/", kFirstShard)).ok());
  EXPECT_HAS(MessageOf(Checkpoint::Open(tiny.disk, "model").status()),
             StrCat(kFirstShard, ": expected a readable file, found model/", kFirstShard));
}

TEST(Checkpoint, case_68_BytesAfterTheLastTensor) {
  TinyCheckpoint tiny;
  tiny.Write();
  const std::string path = StrCat("model/", kFirstShard);
  const std::string text = tiny.disk.ReadText(path).value();
  ASSERT_TRUE(tiny.disk.WriteText(path, text + "xyz").ok());
  EXPECT_HAS(MessageOf(Checkpoint::Open(tiny.disk, "model").status()),
             StrCat(text.size(), " bytes (by its header), found ", text.size() + 3, " bytes"));
}

TEST(Checkpoint, SameTensorInTwoFiles) {
  TinyCheckpoint tiny;
  LooseTensor copy = tiny.At(kWqA);
  copy.file = "model-00003-of-00003.safetensors";
  tiny.tensors.push_back(copy);
  tiny.index_says[kWqA] = kFirstShard;
  EXPECT_HAS(RefusalOf(tiny), StrCat("expected once, in ", kFirstShard, ", found a second time"));
}

TEST(Checkpoint, UnfoldedHyperConnectionsAreRefusedWithTheReason) {
  TinyCheckpoint tiny;
  tiny.tensors.push_back(
      {"layers.0.hc_attn_norm.weight", "BF16", {512}, std::vector<uint8_t>(1024), kFirstShard});
  EXPECT_HAS(RefusalOf(tiny), "fold hc_*_norm.weight into hc_*_fn");
}

TEST(Checkpoint, NanIsRefusedUnlessTheScanIsLeftOut) {
  TinyCheckpoint tiny;
  tiny.At(kWqA).bytes[5] = 0x7f;
  EXPECT_HAS(RefusalOf(tiny), StrCat("model: ", kWqA, ": expected numbers, found an FP8 NaN code"));
  const auto unscanned = Checkpoint::Open(tiny.disk, "model", {.scan_weights = false});
  ASSERT_TRUE(unscanned.ok());
  EXPECT_FALSE((*unscanned)->scan().done);
  EXPECT_FALSE((*unscanned)->weights().layers[0].wq_a.usual_scales);  // nothing is promised
}

TEST(Checkpoint, UnusualScalesTakeTheSlowPathOfTheirMatrixOnly) {
  TinyCheckpoint tiny;
  tiny.At("layers.0.attn.wq_a.scale").bytes[0] = 0;
  tiny.At("layers.1.ffn.experts.3.w2.scale").bytes[9] = 200;
  tiny.Write();
  const auto opened = Checkpoint::Open(tiny.disk, "model");
  ASSERT_TRUE(opened.ok()) << opened.status();
  const ModelWeights& weights = (*opened)->weights();
  EXPECT_EQ((*opened)->scan().num_unusual_scales, 2);
  EXPECT_FALSE(weights.layers[0].wq_a.usual_scales);
  EXPECT_FALSE(weights.layers[1].experts[3].w2.usual_scales);
  EXPECT_TRUE(weights.layers[0].wq_b.usual_scales);
  EXPECT_TRUE(weights.layers[1].experts[3].w1.usual_scales);
}

TEST(Checkpoint, case_69_OtherDirectoriesGetOneLineWithWhatIsSupported) {
  const auto refusal_with = [](const std::string& file, const std::string& text) {
    SimulatedDisk disk;
    EXPECT_TRUE(disk.CreateDirectories("model").ok());
    if (!file.empty()) {
      EXPECT_TRUE(disk.WriteText("model/" + file, text).ok());
    }
    const std::string message = MessageOf(Checkpoint::Open(disk, "model").status());
    ExpectOneLine(message);
    EXPECT_HAS(message, "supported: ");
    return message;
  };
  EXPECT_HAS(refusal_with("", ""), "model: the directory is empty");
  EXPECT_HAS(refusal_with("adapter_config.json", "{}"), "a LoRA adapter, not a whole model");
  EXPECT_HAS(refusal_with("v4.gguf", ""), "GGUF files");
  EXPECT_HAS(refusal_with("pytorch_model.bin", ""), "PyTorch files");
  EXPECT_HAS(refusal_with("readme.txt", ""), "no config.json");
  EXPECT_HAS(refusal_with("config.json", "{\"model_type\": \"deepseek_v4\"}"), "DeepSeek-V4");
}

TEST(Checkpoint, MissingDirectoryIsNotFound) {
  SimulatedDisk disk;
  EXPECT_EQ(Checkpoint::Open(disk, "nowhere").status().code(), StatusCode::kNotFound);
}

// Byte samples of the real checkpoint and the values they stand for (layers.0.attn.wkv; expert 0
// w1).
TEST(NumberFormats, RealByteSamplesDecodeToTheirValues) {
  const uint8_t fp8[] = {0xd8, 0x71, 0xf2, 0x79};
  const float fp8_values[] = {-0.00390625f, 0.03515625f, -0.0390625f, 0.0703125f};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(E4m3ToFloat(fp8[i]) * E8m0ToFloat(0x73), fp8_values[i]);
  const uint8_t fp4[] = {0xa0, 0xa8, 0xec, 0x4a};
  const float fp4_values[] = {0.0f,     -0x1p-7f, -0.0f,    -0x1p-7f,
                              -0x1p-6f, -0x1p-5f, -0x1p-7f, 0x1p-6f};
  for (int k = 0; k < 8; ++k) {
    const uint8_t code = k % 2 == 0 ? fp4[k / 2] & 15 : fp4[k / 2] >> 4;
    const float value = E2m1ToFloat(code) * E8m0ToFloat(0x78);
    EXPECT_EQ(value, fp4_values[k]) << k;
    EXPECT_EQ(std::signbit(value), std::signbit(fp4_values[k])) << k;
  }
}

}  // namespace
}  // namespace deepinfer
