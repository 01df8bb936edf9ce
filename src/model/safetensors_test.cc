#include "model/safetensors.h"

#include <gtest/gtest.h>

#include "model/testing/tiny_checkpoint.h"

namespace deepinfer {
namespace {

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

std::string WithLength(std::string_view header, std::string_view payload = "") {
  std::string text;
  for (int shift = 0; shift < 64; shift += 8) text += static_cast<char>(header.size() >> shift);
  return StrCat(text, header, payload);
}

// The message with which a file of these bytes is refused; empty when it is read.
std::string RefusalOf(const std::string& bytes) {
  SimulatedDisk disk;
  EXPECT_TRUE(disk.WriteText("f", bytes).ok());
  const auto file = disk.OpenRead("f").value();
  return MessageOf(ReadSafetensorsHeader(*file, 0).status());
}

TEST(SafetensorsHeader, ReadsNamesTypesShapesAndPlaces) {
  SimulatedDisk disk;
  ASSERT_TRUE(disk.WriteText("f", WithLength("{\"__metadata__\":{\"format\":\"pt\"},"
                                             "\"model.b\":{\"dtype\":\"BF16\",\"shape\":[2,3],"
                                             "\"data_offsets\":[4,16]},"
                                             "\"a\":{\"dtype\":\"F32\",\"shape\":[],"
                                             "\"data_offsets\":[0,4]}}",
                                             std::string(16, '\0')))
                  .ok());
  const auto file = disk.OpenRead("f").value();
  const auto tensors = ReadSafetensorsHeader(*file, 7);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  ASSERT_EQ(tensors->size(), 2u);
  EXPECT_EQ((*tensors)[0].name, "a");
  EXPECT_EQ((*tensors)[1].name, "b");
  EXPECT_EQ((*tensors)[1].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ((*tensors)[1].offset, file->size() - 12);
  EXPECT_EQ((*tensors)[1].num_bytes, 12);
  EXPECT_EQ((*tensors)[1].file, 7);
}

TEST(SafetensorsHeader, RefusesBrokenHeadersInOneLine) {
  const auto entry = [](std::string_view text) {
    return RefusalOf(WithLength(StrCat("{\"a\":", text, "}"), std::string(64, '\0')));
  };
  EXPECT_HAS(RefusalOf("abc"), "the file has 3 bytes");
  EXPECT_HAS(RefusalOf(std::string(8, '\xff')),
             "the header length says 18446744073709551615 bytes");
  EXPECT_HAS(RefusalOf(WithLength("{}").substr(0, 9)), "the file has 1 after it");
  EXPECT_HAS(RefusalOf(WithLength("{\"a\":")), "header: not JSON: broken at byte");
  EXPECT_HAS(RefusalOf(WithLength("[]")), "not a JSON object");
  EXPECT_HAS(entry("1"), "header entry a: not an object");
  EXPECT_HAS(entry("{\"shape\":[1],\"data_offsets\":[0,4]}"), "a: dtype: missing");
  EXPECT_HAS(entry("{\"dtype\":\"F4\",\"shape\":[1],\"data_offsets\":[0,4]}"),
             "unknown element type F4");
  EXPECT_HAS(entry("{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}"),
             "shape[0]: expected");
  EXPECT_HAS(entry("{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}"),
             "must be [begin, end]");
  EXPECT_HAS(entry("{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}"),
             "F32 [2] does not have the 4 bytes");
  EXPECT_HAS(entry("{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,4]}"),
             "does not have the 4 bytes");
}

TEST(SafetensorsHeader, NamesFromTheFileCannotBreakTheLine) {
  EXPECT_HAS(RefusalOf(WithLength("{\"a\\nb\":1}")), "header entry a\\nb: not an object");
  EXPECT_EQ(ToLine({.tensor = "a\nb", .expected = "x", .found = "y"}),
            "a\\nb: expected x, found y");
}

TEST(SafetensorsHeader, RefusesOverlapsAndHoles) {
  const auto second_at = [](int begin) {
    return RefusalOf(
        WithLength(StrCat("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                          "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[",
                          begin, ",", begin + 4, "]}}"),
                   std::string(16, '\0')));
  };
  EXPECT_EQ(second_at(4), "");
  EXPECT_HAS(second_at(2), "header entry b: starts at payload byte 2, expected 4 (overlaps");
  EXPECT_HAS(second_at(8), "(bytes that belong to no tensor)");
}

TEST(OpenTensorFiles, SaysWhenThereAreNoWeightsOrNoIndex) {
  SimulatedDisk disk;
  ASSERT_TRUE(disk.WriteText("d/config.json", "{}").ok());
  EXPECT_EQ(OpenTensorFiles(disk, "d").status().code(), StatusCode::kNotFound);
  ASSERT_TRUE(disk.WriteText("d/model-00001-of-00002.safetensors", "").ok());
  EXPECT_HAS(MessageOf(OpenTensorFiles(disk, "d").status()),
             "1 .safetensors files but no model.safetensors.index.json");
}

TEST(OpenTensorFiles, RefusesAnIndexThatLeavesTheDirectory) {
  SimulatedDisk disk;
  ASSERT_TRUE(disk.WriteText("d/model.safetensors.index.json",
                             "{\"weight_map\":{\"a\":\"../x.safetensors\"}}")
                  .ok());
  EXPECT_HAS(MessageOf(OpenTensorFiles(disk, "d").status()),
             "is not the name of a .safetensors file");
  ASSERT_TRUE(disk.WriteText("d/model.safetensors.index.json", "{\"weight_map\":{}}").ok());
  EXPECT_HAS(MessageOf(OpenTensorFiles(disk, "d").status()), "no weight_map");
}

}  // namespace
}  // namespace deepinfer
