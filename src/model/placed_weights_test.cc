#include "model/placed_weights.h"

#include <gtest/gtest.h>

#include <array>

#include "model/testing/test_model.h"

namespace deepinfer {
namespace {

class PlacedWeightsTest : public ::testing::Test {
 protected:
  // Loads the checkpoint as the engine does.
  std::unique_ptr<PackedWeights> Load(bool keep_experts) {
    return PackedWeights::Load(
               model_.checkpoint(),
               {.cache_directory = "cache", .disk = &model_.disk(), .keep_experts = keep_experts})
        .value();
  }
  StatusOr<std::unique_ptr<PlacedWeights>> Place(const PackedWeights* packed,
                                                 const PlacementOptions& options) {
    return PlacedWeights::Place(model_.disk(), model_.checkpoint(), packed, options);
  }
  TestModel model_{"tiny"};
};

TEST_F(PlacedWeightsTest, EveryPlaceGivesTheSameBits) {
  const std::vector<float> expected = RunEverything(model_.model());
  for (const WeightPlace experts : {WeightPlace::kMmap, WeightPlace::kDisk, WeightPlace::kRam}) {
    const auto packed = Load(experts == WeightPlace::kRam);
    for (const WeightPlace engram : {WeightPlace::kRam, WeightPlace::kMmap, WeightPlace::kDisk}) {
      const auto placed = Place(packed.get(), {.experts = experts, .engram = engram}).value();
      const auto model = model_.MakeModel(*placed);
      EXPECT_TRUE(RunEverything(*model) == expected) << placed->Description();
    }
  }
}

// The experts of ram are in memory, those of mmap and disk never are, a first start included.
TEST_F(PlacedWeightsTest, ExpertsElsewhereTakeNoMemory) {
  const auto without = Load(false), again = Load(false), with = Load(true);
  EXPECT_EQ(without->num_bytes(), with->layout().routed_experts_begin());
  EXPECT_EQ(again->num_bytes(), without->num_bytes());
  EXPECT_EQ(with->num_bytes(), with->layout().image_bytes());
  const auto panels = [&](const PlacedWeights& placed) {
    return placed.weights().layers[2].experts[1].w2.panels != nullptr;
  };
  EXPECT_FALSE(panels(**Place(without.get(), {.experts = WeightPlace::kDisk})));
  EXPECT_TRUE(panels(**Place(without.get(), {.experts = WeightPlace::kMmap})));
  EXPECT_TRUE(panels(**Place(with.get(), {})));
}

// What a disk changed on its own is not computed with.
TEST_F(PlacedWeightsTest, ADamagedExpertFailsItsPass) {
  const std::vector<float> expected = RunEverything(model_.model());
  const auto packed = Load(false);
  const auto placed = Place(packed.get(), {.experts = WeightPlace::kDisk}).value();
  const auto model = model_.MakeModel(*placed);
  const ImageFile& image = *packed->image_file();
  const int64_t at = image.image_offset + packed->layout().Expert(7, 3).offset + 99;
  const auto flip = [&] {
    std::array<uint8_t, 1> byte;
    ASSERT_TRUE(model_.disk().OpenRead(image.path).value()->ReadAt(at, byte).ok());
    byte[0] ^= 4;
    ASSERT_TRUE(model_.disk().OpenUpdate(image.path).value()->WriteAt(at, byte).ok());
  };
  const auto run = [&] {
    TestSequence sequence(*model, TestTokens(40, model->config().vocab_size, 9));
    return model->Forward({{sequence.Segment(0, 40)}}).status();
  };
  flip();
  EXPECT_EQ(run().code(), StatusCode::kDataLoss);
  const std::string message = MessageOf(run());
  EXPECT_TRUE(
      message.starts_with("experts of block 7: expert 3: " + image.path + ": damaged at byte "))
      << message;
  flip();
  EXPECT_TRUE(RunEverything(*model) == expected);
}

// An interrupted copy: the records are there, the experts are not.
TEST_F(PlacedWeightsTest, ACacheCutShortIsFilledUpBeforeItIsUsed) {
  const std::vector<float> expected = RunEverything(model_.model());
  const std::string path = Load(false)->image_file()->path;
  const std::string whole = model_.disk().ReadText(path).value();
  for (const WeightPlace place : {WeightPlace::kMmap, WeightPlace::kDisk}) {
    for (const int64_t size : {std::ssize(whole) - 1, std::ssize(whole) / 2}) {
      model_.disk().Truncate(path, size);
      const auto packed = Load(false);
      EXPECT_TRUE(model_.disk().ReadText(path).value() == whole);
      const auto placed = Place(packed.get(), {.experts = place});
      ASSERT_TRUE(placed.ok()) << placed.status();
      EXPECT_TRUE(RunEverything(*model_.MakeModel(**placed)) == expected);
    }
  }
}

TEST_F(PlacedWeightsTest, AnImageCutShortSinceItWasOpenedIsNotMapped) {
  const auto packed = Load(false);
  const std::string& path = packed->image_file()->path;
  const int64_t size = std::ssize(model_.disk().ReadText(path).value());
  model_.disk().Truncate(path, size - 1);
  EXPECT_EQ(MessageOf(Place(packed.get(), {.experts = WeightPlace::kMmap}).status()),
            StrCat(path, ": cut short to ", size - 1, " bytes since it was opened, ", size,
                   " were expected; start again"));
}

TEST_F(PlacedWeightsTest, TooSmallACacheIsRefused) {
  const auto packed = Load(false);
  const auto placed = Place(packed.get(), {.experts = WeightPlace::kDisk, .expert_cache_bytes = 1});
  ASSERT_FALSE(placed.ok());
  EXPECT_TRUE(MessageOf(placed.status()).starts_with("expert_cache: found 1 bytes, expected at"));
}

TEST(Placement, OptionsThatCannotWorkAreNamed) {
  const auto error = [](std::string_view experts, std::string_view engram, int64_t cache,
                        bool has_image) {
    return MessageOf(ParsePlacement(experts, engram, cache, has_image).status());
  };
  EXPECT_EQ(error("ram", "disk", 0, false), "");
  EXPECT_EQ(error("disk", "ram", 5, true), "");
  EXPECT_EQ(error("tape", "ram", 0, true), "experts: found \"tape\", expected ram, mmap or disk");
  EXPECT_EQ(error("ram", "", 0, true), "engram: found \"\", expected ram, mmap or disk");
  EXPECT_EQ(error("mmap", "ram", 0, false),
            "experts: mmap reads packed weights from a file; give a directory for it "
            "(--weights-cache DIR) and a variant other than ref");
  EXPECT_EQ(error("mmap", "ram", 5, true),
            "expert_cache: found 5 bytes with experts mmap, expected none: only experts of disk "
            "have a cache");
}

TEST_F(PlacedWeightsTest, DescriptionAndCountsSayWhatIsWhere) {
  const auto packed = Load(false);
  const auto placed =
      Place(packed.get(), {.experts = WeightPlace::kDisk, .engram = WeightPlace::kDisk}).value();
  EXPECT_EQ(placed->memory().total(),
            packed->num_bytes() + placed->expert_source()->memory_bytes());
  EXPECT_TRUE(placed->Description().starts_with("weights: experts on disk ("))
      << placed->Description();
  EXPECT_NE(placed->Description().find("engram tables on disk, packed in memory: "),
            std::string::npos);
  const auto model = model_.MakeModel(*placed);
  RunEverything(*model);
  EXPECT_GT(placed->expert_source()->counts().read, 0);
  EXPECT_NE(placed->CountsText().find(" experts used, "), std::string::npos);
  EXPECT_NE(placed->CountsText().find(" engram rows used, "), std::string::npos);
}

TEST(ExpertSlots, FollowTheWishOrAQuarterOfWhatIsFree) {
  const auto slots = [](int64_t wanted, int64_t free) {
    return NumExpertSlots(wanted, free, /*slot_bytes=*/100, /*num_experts=*/50,
                          /*num_experts_per_tok=*/6);
  };
  EXPECT_EQ(slots(0, 8000).value(), 20);
  EXPECT_EQ(slots(0, 0).value(), 8);
  EXPECT_EQ(slots(0, 1'000'000).value(), 50);
  EXPECT_EQ(slots(1234, 0).value(), 12);
  EXPECT_EQ(slots(800, 0).value(), 8);
  EXPECT_EQ(MessageOf(slots(799, 0).status()),
            "expert_cache: found 799 bytes, expected at least 800, the experts of one token and "
            "two more");
}

}  // namespace
}  // namespace deepinfer
