#include "model/synthetic_checkpoint.h"

#include <gtest/gtest.h>

#include "base/disk.h"
#include "base/simulated_disk.h"

namespace deepinfer {
namespace {

const std::string kSource = DI_SOURCE_DIR;

struct Variant {
  const char* config;  // in tools/tiny
  const char* golden;  // in the golden data
  uint64_t seed;
  int64_t num_tensors;
  int64_t payload_bytes;
  const char* digest;
};

// Counts and digests of the published golden data.
constexpr Variant kTiny = {
    "tiny", "tiny",  101,
    852,    4438866, "8ea3cbf21f000437a4350f1fb81d040560ed94750b352d4669e72137fc9334b3"};
constexpr Variant kStressA = {
    "stress_a", "A",      202,
    14130,      18590912, "009455b3fcbb6d828bab800eb861095300e42ddb84ccceb8423a00045f79206b"};
constexpr Variant kStressB = {
    "stress_b", "B",      303,
    696,        38094192, "ee9116b86b5595d12315018c3046e9db40e130f2624ce61124a31ae207548e9b"};

std::string ConfigText(const Variant& variant) {
  return RealDisk().ReadText(StrCat(kSource, "/tools/tiny/", variant.config, ".json")).value();
}

class SyntheticDigest : public ::testing::TestWithParam<Variant> {};

TEST_P(SyntheticDigest, EqualsTheGoldenData) {
  SimulatedDisk disk;
  ThreadPool pool(2);
  const auto report = WriteSyntheticCheckpoint(disk, ConfigText(GetParam()), GetParam().seed, "out",
                                               {.pool = &pool});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->num_tensors, GetParam().num_tensors);
  EXPECT_EQ(report->payload_bytes, GetParam().payload_bytes);
  EXPECT_EQ(report->digest, GetParam().digest);
}

INSTANTIATE_TEST_SUITE_P(All, SyntheticDigest, ::testing::Values(kTiny, kStressA, kStressB),
                         [](const auto& info) { return std::string(info.param.config); });

TEST(SyntheticCheckpoint, AnotherSeedGivesAnotherDigestAndNoFiles) {
  SimulatedDisk disk;
  const auto report = WriteSyntheticCheckpoint(disk, ConfigText(kTiny), 102, "out",
                                               {.expected_digest = kTiny.digest});
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), StatusCode::kDataLoss);
  EXPECT_NE(MessageOf(report.status()).find(kTiny.digest), std::string::npos);
  EXPECT_EQ(disk.List("out").value(), std::vector<std::string>());
}

TEST(SyntheticCheckpoint, FullDiskLeavesNothing) {
  SimulatedDisk disk;
  disk.set_capacity_bytes(2 << 20);
  const auto report = WriteSyntheticCheckpoint(disk, ConfigText(kTiny), 101, "out");
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(disk.used_bytes(), 0);
}

// config.json cannot be put into place, because a directory has its name; shards already were.
TEST(SyntheticCheckpoint, FailureAtTheLastStepTakesBackTheFirst) {
  const std::string out = ::testing::TempDir() + "synthetic_checkpoint_test_out";
  ASSERT_TRUE(RealDisk().CreateDirectories(out + "/config.json/in_the_way").ok());
  EXPECT_FALSE(WriteSyntheticCheckpoint(RealDisk(), ConfigText(kTiny), 101, out).ok());
  EXPECT_EQ(RealDisk().List(out).value(), std::vector<std::string>{"config.json"});
}

TEST(SyntheticCheckpoint, ThreadsDoNotChangeTheFiles) {
  SimulatedDisk one, two;
  ThreadPool pool(3);
  ASSERT_TRUE(WriteSyntheticCheckpoint(one, ConfigText(kTiny), 5, "out").ok());
  ASSERT_TRUE(WriteSyntheticCheckpoint(two, ConfigText(kTiny), 5, "out", {.pool = &pool}).ok());
  const std::vector<std::string> names = one.List("out").value();
  ASSERT_EQ(names, two.List("out").value());
  for (const std::string& name : names) {
    EXPECT_EQ(one.ReadText("out/" + name).value(), two.ReadText("out/" + name).value()) << name;
  }
}

// Golden folders lie beside the repository, if at all.
std::string GoldenDir(const Variant& variant) {
  return StrCat(kSource, "/../shared/data/golden/", variant.golden);
}

#define SKIP_WITHOUT_GOLDEN(variant)                                 \
  if (!RealDisk().IsDirectory(GoldenDir(variant))) {                 \
    GTEST_SKIP() << GoldenDir(variant) << " is not on this machine"; \
  }

TEST(SyntheticCheckpoint, TinyFilesEqualTheStoredOnesByteForByte) {
  SKIP_WITHOUT_GOLDEN(kTiny);
  SimulatedDisk disk;
  ASSERT_TRUE(WriteSyntheticCheckpoint(disk, ConfigText(kTiny), 101, "out").ok());
  const std::string folder = GoldenDir(kTiny) + "/checkpoint";
  const std::vector<std::string> names = RealDisk().List(folder).value();
  EXPECT_EQ(names.size(), 7u);
  for (const std::string& name : names) {
    EXPECT_TRUE(disk.ReadText("out/" + name).value() ==
                RealDisk().ReadText(folder + "/" + name).value())
        << name;
  }
}

class GoldenTable : public ::testing::TestWithParam<Variant> {};

TEST_P(GoldenTable, GivesACheckpointWithTheStoredDigest) {
  SKIP_WITHOUT_GOLDEN(GetParam());
  // Through a copy of the two small texts, so that the golden folder stays read-only.
  const std::string golden = GoldenDir(GetParam());
  SimulatedDisk disk;
  ThreadPool pool(2);
  for (const char* name :
       {"/tensors.tsv", "/checkpoint/config.json", "/checkpoint/generator.json"}) {
    ASSERT_TRUE(
        disk.WriteText("golden" + std::string(name), RealDisk().ReadText(golden + name).value())
            .ok());
  }
  const auto report = WriteGoldenCheckpoint(disk, "golden", "out", {.pool = &pool});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->digest, GetParam().digest);
  EXPECT_EQ(disk.ReadText("out/engram_classes.bin").value(),
            RealDisk().ReadText(golden + "/checkpoint/engram_classes.bin").value());
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTable, ::testing::Values(kTiny, kStressA, kStressB),
                         [](const auto& info) { return std::string(info.param.config); });

TEST(SyntheticCheckpoint, WrongTableRowIsNamed) {
  SKIP_WITHOUT_GOLDEN(kTiny);
  const std::string golden = GoldenDir(kTiny);
  SimulatedDisk disk;
  for (const char* name : {"/checkpoint/config.json", "/checkpoint/generator.json"}) {
    ASSERT_TRUE(
        disk.WriteText("golden" + std::string(name), RealDisk().ReadText(golden + name).value())
            .ok());
  }
  const auto write_with = [&](std::string_view from, std::string_view to) {
    std::string table = RealDisk().ReadText(golden + "/tensors.tsv").value();
    table.replace(table.find(from), from.size(), to);
    EXPECT_TRUE(disk.WriteText("golden/tensors.tsv", table).ok());
    return MessageOf(WriteGoldenCheckpoint(disk, "golden", "out").status());
  };
  EXPECT_NE(write_with("exp=-2", "exp=-3").find("tensor embed.weight: SHA-256 starts with"),
            std::string::npos);
  EXPECT_NE(write_with("bf16i", "bf17i").find("tensors.tsv line 2"), std::string::npos);
  EXPECT_NE(write_with("head.weight", "heat.weight").find("asks for head.weight"),
            std::string::npos);
}

}  // namespace
}  // namespace deepinfer
