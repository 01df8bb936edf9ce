#include "model/checkpoint_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "model/testing/tiny_checkpoint.h"

namespace deepinfer {
namespace {

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(CheckpointReport, GoodCheckpointHasNoDifferences) {
  TinyCheckpoint tiny;
  tiny.Write();
  const auto report = ExamineCheckpoint(tiny.disk, "model", {});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->ok());
  EXPECT_EQ(report->stored.num_tensors, 852);
  const std::string text = ReportAsText(*report);
  EXPECT_HAS(text, "differences from the specification: none");
  EXPECT_HAS(text, "smallest engram scale byte 124 (rows feed their projection as stored)");
  const nlohmann::json json = nlohmann::json::parse(ReportAsJson(*report));
  EXPECT_EQ(json["ok"], true);
  EXPECT_EQ(json["expected"]["total"]["bytes"], 4438866);
  EXPECT_EQ(json["expected"]["by_type"]["F32"]["tensors"], 11 * 9);
  EXPECT_EQ(json["expected"]["by_part"]["engram_tables"]["tensors"], 4);
  EXPECT_EQ(json["weights"]["engram_direct"], true);
}

TEST(CheckpointReport, ListsEveryDifferenceAndRefusedWeights) {
  TinyCheckpoint tiny;
  tiny.Remove("norm.weight");
  tiny.At("image_end").shape = {64, 2};
  tiny.At("layers.0.attn.wq_a.weight").bytes[0] = 0xff;
  tiny.Write();
  const auto report = ExamineCheckpoint(tiny.disk, "model", {});
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->ok());
  ASSERT_EQ(report->problems.size(), 2u);
  const std::string text = ReportAsText(*report);
  EXPECT_HAS(text, "differences from the specification: 2");
  EXPECT_HAS(text, "  image_end: expected BF16 [128], found BF16 [64, 2], file ");
  EXPECT_HAS(text, "weights refused: layers.0.attn.wq_a.weight");
  const nlohmann::json json = nlohmann::json::parse(ReportAsJson(*report));
  EXPECT_EQ(json["ok"], false);
  EXPECT_EQ(json["differences"][0]["tensor"], "norm.weight");
  EXPECT_EQ(json["differences"][0]["found"], "no such tensor");
}

// Bytes past the end of a cut file are never touched.
TEST(CheckpointReport, TruncatedShardIsReportedNotRead) {
  TinyCheckpoint tiny;
  tiny.Write();
  tiny.disk.Truncate("model/model-00002-of-00003.safetensors", 100000);
  const auto report = ExamineCheckpoint(tiny.disk, "model", {});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->problems.size(), 1u);
  EXPECT_TRUE(report->scan_error.empty());
}

TEST(CheckpointReport, DirectoryWithoutWeightsSaysSo) {
  TinyCheckpoint tiny;
  ASSERT_TRUE(tiny.disk.WriteText("model/config.json", tiny.config_json).ok());
  const auto report = ExamineCheckpoint(tiny.disk, "model", {});
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->ok());
  EXPECT_HAS(ReportAsText(*report),
             "expected 852 tensors in safetensors files, found model: no weights");
}

TEST(CheckpointReport, BareConfigurationGivesCountsAndAPlan) {
  const std::string path =
      StrCat(DI_SOURCE_DIR, "/src/model/testdata/deepseek_v41_flash_config.json");
  auto report = ExamineCheckpoint(RealDisk(), path, {});
  ASSERT_TRUE(report.ok()) << report.status();
  using Place = EngineMemory::Place;
  report->plan =
      PlanMemory(report->config, report->expected, ParseMachine("ram=512GiB,gpus=8x139GiB").value(),
                 {.parts = {{"kv_pages", "KV pages", 100, Place::kDevice, ""},
                            {"saves", "saved", 23, Place::kHost, ""}}});
  EXPECT_TRUE(report->ok());
  const std::string text = ReportAsText(*report);
  EXPECT_HAS(text, "96085 tensors  510286023000 bytes");
  EXPECT_HAS(text, "memory plan for 549.8 GB of RAM and 8 GPUs");
  EXPECT_EQ(text.find("differences"), std::string::npos);
  const nlohmann::json json = nlohmann::json::parse(ReportAsJson(*report));
  EXPECT_EQ(json["plan"]["placements"].size(), 36u);
  EXPECT_EQ(json["plan"]["engine"]["saves_bytes"], 23);
  EXPECT_EQ(json["plan"]["engine"]["total_bytes"], 123);
  EXPECT_FALSE(json.contains("differences"));
}

TEST(CheckpointReport, AnotherModelsConfigurationIsAnError) {
  SimulatedDisk disk;
  ASSERT_TRUE(disk.WriteText("config.json", "{\"model_type\": \"deepseek_v4\"}").ok());
  EXPECT_FALSE(ExamineCheckpoint(disk, "config.json", {}).ok());
}

}  // namespace
}  // namespace deepinfer
