#include "model/memory_plan.h"

#include <gtest/gtest.h>

#include "base/disk.h"

namespace deepinfer {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// What an engine takes, as these tests need it.
EngineMemory SmallEngine() {
  using Place = EngineMemory::Place;
  return {.parts = {{"packed_weights", "weights", 7 * kMiB, Place::kWeights, ""},
                    {"kv_pages", "KV pages", 900 * kMiB, Place::kDevice, "900 pages"},
                    {"row_scratch", "scratch", 100 * kMiB, Place::kDevice, ""},
                    {"swa_slots", "SWA slots", 50 * kMiB, Place::kHost, ""}},
          .about = "a test",
          .kv_page_bytes = 900 * kMiB};
}

MemoryPlan RealPlan(std::string_view machine) {
  const std::string path =
      StrCat(DI_SOURCE_DIR, "/src/model/testdata/deepseek_v41_flash_config.json");
  const ModelConfig config = ParseModelConfig(RealDisk().ReadText(path).value(), path).value();
  return PlanMemory(config, CountTensors(ExpectedTensors(config)), ParseMachine(machine).value(),
                    SmallEngine());
}

std::vector<int32_t> EpSizesThatFit(const MemoryPlan& plan, Place experts, Place engram) {
  std::vector<int32_t> sizes;
  for (const PlanRow& row : plan.rows) {
    if (row.experts == experts && row.engram == engram && row.fits) sizes.push_back(row.ep_size);
  }
  return sizes;
}

TEST(MemoryPlan, PartsAddUpToTheCheckpoint) {
  const MemoryPlan plan = RealPlan("ram=1TiB");
  EXPECT_EQ(plan.resident_bytes + plan.expert_bytes + plan.engram_bytes, 510286023000);
  EXPECT_EQ(plan.page_bytes, 56960);
  // 1,048,576 tokens at 890 bytes, and 43 rings of 134 rows of 528 bytes.
  EXPECT_EQ(plan.sequence_bytes, 933232640 + 43 * 134 * 528);
}

// 296 GB of experts and 17 GB that every rank holds: 8 GPUs of 139 GiB take the experts from EP 4
// on.
TEST(MemoryPlan, EightGpusHoldTheExpertsFromEpFourOn) {
  const MemoryPlan plan = RealPlan("ram=512GiB,gpus=8x139GiB");
  EXPECT_EQ(EpSizesThatFit(plan, Place::kDevice, Place::kRam), (std::vector<int32_t>{4, 8}));
  EXPECT_EQ(EpSizesThatFit(plan, Place::kDevice, Place::kDevice), (std::vector<int32_t>{4, 8}));
  EXPECT_EQ(EpSizesThatFit(plan, Place::kRam, Place::kRam), (std::vector<int32_t>{1, 2, 4, 8}));
}

TEST(MemoryPlan, EngramGoesToDiskWhenRamIsShort) {
  const MemoryPlan plan = RealPlan("ram=64GiB,gpus=4x139GiB");
  EXPECT_EQ(EpSizesThatFit(plan, Place::kDevice, Place::kRam), std::vector<int32_t>());
  EXPECT_EQ(EpSizesThatFit(plan, Place::kDevice, Place::kDisk), std::vector<int32_t>{4});
}

TEST(MemoryPlan, EpSizesDivideBothExpertCounts) {
  const std::string path = StrCat(DI_SOURCE_DIR, "/tools/tiny/stress_b.json");
  ModelConfig config = ParseModelConfig(RealDisk().ReadText(path).value(), path).value();
  const auto sizes_with = [&](int32_t routed, int32_t draft) {
    config.n_routed_experts = routed;
    config.dspark_n_routed_experts = draft;
    return EpSizesThatFit(PlanMemory(config, CountTensors(ExpectedTensors(config)),
                                     ParseMachine("ram=64GiB,gpus=16x80GB").value(), SmallEngine()),
                          Place::kDevice, Place::kRam);
  };
  EXPECT_EQ(sizes_with(8, 4), (std::vector<int32_t>{1, 2, 4}));
  EXPECT_EQ(sizes_with(8, 48), (std::vector<int32_t>{1, 2, 4, 8}));
  EXPECT_EQ(sizes_with(32, 48), (std::vector<int32_t>{1, 2, 4, 8, 16}));
}

TEST(MemoryPlan, WithoutGpusExpertsMayStayOnDisk) {
  const MemoryPlan plan = RealPlan("64GiB");
  ASSERT_EQ(plan.rows.size(), 4u);  // experts and engram, each in RAM or on disk
  EXPECT_EQ(EpSizesThatFit(plan, Place::kRam, Place::kRam), std::vector<int32_t>());
  EXPECT_EQ(EpSizesThatFit(plan, Place::kDisk, Place::kDisk), std::vector<int32_t>{1});
  EXPECT_EQ(plan.rows.back().disk_bytes, plan.expert_bytes + plan.engram_bytes);
  EXPECT_GT(plan.rows.back().kv_tokens, 1048576);
}

TEST(MemoryPlan, TheEnginesMemoryIsInEveryRowWhereItLies) {
  const MemoryPlan cpu = RealPlan("64GiB");
  EXPECT_EQ(cpu.rows.back().ram_bytes, kRamReserveBytes + cpu.resident_bytes + 1050 * kMiB);
  const MemoryPlan gpu = RealPlan("ram=64GiB,gpus=1x139GiB");
  EXPECT_EQ(gpu.rows.back().gpu_bytes, kGpuReserveBytes + gpu.resident_bytes + 1000 * kMiB);
  EXPECT_EQ(gpu.rows.back().ram_bytes, kRamReserveBytes + 50 * kMiB);
  // Its own KV pages are room for KV.
  const PlanRow& row = gpu.rows.back();
  EXPECT_EQ(row.kv_tokens, (gpu.machine.gpu_bytes - row.gpu_bytes + 900 * kMiB) / 56960 * 64);
}

TEST(MemoryPlan, TextListsThePartsAndTheirSum) {
  const std::string text = PlanAsText(RealPlan("64GiB"));
  EXPECT_TRUE(text.starts_with("at its start the engine takes (a test)\n")) << text;
  EXPECT_NE(text.find("KV pages                  943.7 MB   900 pages\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find(StrCat(1057 * kMiB, " bytes\n")), std::string::npos) << text;
}

TEST(MemoryPlan, TextSaysWhatIsShort) {
  const std::string text = PlanAsText(RealPlan("ram=8GB"));
  EXPECT_NE(text.find("of RAM short"), std::string::npos) << text;
  EXPECT_EQ(text.find("fits"), std::string::npos) << text;
}

TEST(ParseMachine, ReadsUnitsAndNamesWhatItCannotRead) {
  const MachineMemory machine = ParseMachine("gpus=2x80GB,ram=1.5TiB").value();
  EXPECT_EQ(machine.num_gpus, 2);
  EXPECT_EQ(machine.gpu_bytes, 80000000000);
  EXPECT_EQ(machine.ram_bytes, 3 * (int64_t{1} << 39));
  for (const char* text : {"", "64", "ram=-1GB", "gpus=8x139GiB", "gpus=0x1GB,ram=1GB",
                           "gpus=x1GB,ram=1GB", "ram=1GB,disk=2GB", "ram=nanGB", "ram=1GBx"}) {
    const Status status = ParseMachine(text).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << text;
    EXPECT_NE(MessageOf(status).find(StrCat("plan '", text, "'")), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace deepinfer
