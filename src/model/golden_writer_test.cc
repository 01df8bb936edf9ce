// A run of the engine in the golden layout, against the check that reads that layout.
#include "model/golden_writer.h"

#include <gtest/gtest.h>

#include "base/simulated_disk.h"
#include "model/golden_check.h"
#include "model/golden_data.h"
#include "model/golden_output.h"
#include "model/synthetic_checkpoint.h"

namespace deepinfer {
namespace {

// "golden/checkpoint" holds the tiny checkpoint; Record() adds outputs.safetensors.
class GoldenWriterTest : public ::testing::Test {
 protected:
  GoldenWriterTest() {
    const std::string config =
        RealDisk().ReadText(StrCat(DI_SOURCE_DIR, "/tools/tiny/tiny.json")).value();
    CHECK(WriteSyntheticCheckpoint(disk_, config, 101, "golden/checkpoint").ok());
  }

  Status Record(VariantId variant = kCpuVariant) {
    return RecordGolden(disk_, "golden", {.backend = {variant, &threads_}, .seed = 5}).status();
  }
  GoldenReport Check(VariantId variant) {
    return RunGoldenCheck(disk_, "golden", {.backend = {variant, &threads_}}).value();
  }
  std::vector<StoredTensor> Header(Disk& disk, const std::string& path) {
    return ReadSafetensorsHeader(*disk.OpenRead(path).value(), 0).value();
  }

  SimulatedDisk disk_;
  ThreadPool threads_{2};
};

TEST_F(GoldenWriterTest, SameFormDiffersNowhere) {
  ASSERT_TRUE(Record().ok());
  const GoldenReport report = Check(kCpuVariant);
  EXPECT_GE(report.figures.size(), 40u);
  for (const GoldenFigure& figure : report.figures) {
    EXPECT_EQ(figure.measured, figure.at_least ? 1.0 : 0.0) << figure.name;
  }
}

TEST_F(GoldenWriterTest, OtherFormPasses) {
  ASSERT_TRUE(Record(kRefVariant).ok());
  for (const GoldenFigure& figure : Check(kCpuVariant).figures) {
    EXPECT_TRUE(figure.pass()) << figure.name << ": " << figure.measured << ", limit "
                               << figure.limit;
  }
}

// The check of a recording is not a check of the engine against whatever it just did.
TEST_F(GoldenWriterTest, OtherWeightsAreSeen) {
  ASSERT_TRUE(Record().ok());
  const std::string config = disk_.ReadText("golden/checkpoint/config.json").value();
  ASSERT_TRUE(WriteSyntheticCheckpoint(disk_, config, 102, "golden/checkpoint").ok());
  EXPECT_FALSE(Check(kCpuVariant).pass());
}

// Names, element types and shapes are those of the official data with a prompt of 72 tokens.
TEST_F(GoldenWriterTest, LayoutIsThatOfTheStoredData) {
  ASSERT_TRUE(Record().ok());
  std::map<std::string, std::string> stored;
  for (const StoredTensor& tensor :
       Header(RealDisk(), StrCat(DI_SOURCE_DIR, "/tests/golden/tiny/outputs.safetensors"))) {
    stored[tensor.name] = DescribeTensor(tensor.dtype, tensor.shape);
  }
  const std::vector<StoredTensor> recorded = Header(disk_, "golden/outputs.safetensors");
  EXPECT_EQ(recorded.size(), 45u);
  for (const StoredTensor& tensor : recorded) {
    EXPECT_EQ(stored[tensor.name], DescribeTensor(tensor.dtype, tensor.shape)) << tensor.name;
  }
}

TEST_F(GoldenWriterTest, GapIsFiniteOnceEntriesAreLeftBehind) {
  ASSERT_TRUE(Record().ok());
  const auto data = GoldenData::Open(disk_, "golden/outputs.safetensors").value();
  // Layer 2 has ratio 2 and selects 8 of all visible entries.
  const auto gaps = data->Get<float>("official.selgap_prompt.2");
  for (size_t t = 0; t < gaps.size(); ++t) {
    EXPECT_EQ(std::isinf(gaps[t]), (t + 1) / 2 <= 8) << t;
    EXPECT_GE(gaps[t], 0) << t;
  }
}

// From the official prompt the first index source, two layers deep, sees the official streams.
TEST_F(GoldenWriterTest, GapsAreTheOfficialOnes) {
  const auto official = GoldenData::Open(RealDisk(), StrCat(DI_SOURCE_DIR, "/tests/golden/tiny/",
                                                            "outputs.safetensors"))
                            .value();
  const auto ids = official->Get<int32_t>("prompt_ids");
  ASSERT_TRUE(
      RecordGolden(disk_, "golden",
                   {.backend = {kCpuVariant, &threads_}, .prompt = {ids.begin(), ids.end()}})
          .ok());
  const auto recorded = GoldenData::Open(disk_, "golden/outputs.safetensors").value();
  const auto expect_same = [&](const std::string& name, size_t rows) {
    const auto want = official->Get<float>(name), got = recorded->Get<float>(name);
    for (size_t t = 0; t < rows; ++t) EXPECT_EQ(got[t], want[t]) << name << " " << t;
  };
  expect_same("official.selgap_prompt.2", ids.size());
  // Greedy steps are the same ones up to the first token that differs.
  const auto want = official->Get<int32_t>("official.decode_tokens");
  const auto got = recorded->Get<int32_t>("official.decode_tokens");
  const auto same = std::mismatch(want.begin(), want.end(), got.begin()).first - want.begin();
  EXPECT_GE(same, 2);
  expect_same("official.selgap_decode.2",
              static_cast<size_t>(std::min<int64_t>(same, kGoldenDecodeSteps)));
}

TEST_F(GoldenWriterTest, PromptsThatCannotBeRunAreRefused) {
  const auto refusal = [&](std::vector<int32_t> prompt) {
    return MessageOf(
        RecordGolden(disk_, "golden", {.backend = {kCpuVariant, &threads_}, .prompt = prompt})
            .status());
  };
  EXPECT_EQ(refusal(std::vector<int32_t>(15, 1)), "prompt: expected at least 16 ids, found 15");
  EXPECT_EQ(refusal(std::vector<int32_t>(16, 512)),
            "prompt: id 512 is outside the vocabulary of 512");
}

TEST_F(GoldenWriterTest, NothingIsOverwritten) {
  ASSERT_TRUE(disk_.WriteText("golden/outputs.safetensors", "mine").ok());
  const Status status = Record();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(MessageOf(status).find("golden/outputs.safetensors"), std::string::npos);
  EXPECT_EQ(disk_.ReadText("golden/outputs.safetensors").value(), "mine");
}

}  // namespace
}  // namespace deepinfer
