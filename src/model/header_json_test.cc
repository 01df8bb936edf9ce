#include "model/header_json.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "model/usual_json.h"

namespace deepinfer {
namespace {

// What is wrong with an entry "a" of this text; empty when it is read.
std::string FaultOf(std::string_view entry) {
  return MessageOf(ReadHeaderJson(StrCat("{\"a\":", entry, "}")).status());
}

TEST(HeaderJson, ReadsEntriesInTheirOrder) {
  const auto entries = ReadHeaderJson(
      R"({"b": {"shape": [2, 3.0], "more": {"shape": ["x", {}]}, "data_offsets": [0, 6], "dtype": "F8_E4M3"},
          "__metadata__": {"dtype": 1, "shape": "no", "list": [[]]},
          "a": {"dtype": "F32", "data_offsets": [9, 8, 7], "shape": []}})");
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_EQ((*entries)[0].name, "b");
  EXPECT_EQ((*entries)[0].dtype, "F8_E4M3");
  EXPECT_EQ((*entries)[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ((*entries)[0].data_offsets, (std::vector<int64_t>{0, 6}));
  EXPECT_EQ((*entries)[1].name, "a");
  EXPECT_TRUE((*entries)[1].shape.empty());
  EXPECT_EQ((*entries)[1].data_offsets, (std::vector<int64_t>{9, 8, 7}));
}

TEST(HeaderJson, AMemberThatComesTwiceCountsAsTheLast) {
  const auto entries = ReadHeaderJson(
      R"({"a": {"dtype": "F32", "shape": [1], "shape": [2, 2], "dtype": "BF16", "data_offsets": []}})");
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_EQ(entries->front().dtype, "BF16");
  EXPECT_EQ(entries->front().shape, (std::vector<int64_t>{2, 2}));
}

TEST(HeaderJson, FaultsNameEntryAndMember) {
  EXPECT_EQ(FaultOf("[]"), "header entry a: not an object");
  EXPECT_EQ(FaultOf("{}"), "header entry a: dtype: missing");
  EXPECT_EQ(FaultOf(R"({"dtype":"F32","data_offsets":[]})"), "header entry a: shape: missing");
  EXPECT_EQ(FaultOf(R"({"dtype":"F32","shape":[]})"), "header entry a: data_offsets: missing");
  EXPECT_EQ(FaultOf(R"({"dtype":7})"), "header entry a: dtype: expected text, found 7");
  EXPECT_EQ(FaultOf(R"({"dtype":{}})"), "header entry a: dtype: expected text, found an object");
  EXPECT_EQ(FaultOf(R"({"shape":"2"})"),
            "header entry a: shape: expected a list of whole numbers, found \"2\"");
  EXPECT_EQ(FaultOf(R"({"shape":{}})"),
            "header entry a: shape: expected a list of whole numbers, found an object");
  const std::string expected = StrCat("expected an integer in [0, ", INT64_MAX, "], found ");
  for (const auto& [value, found] : std::initializer_list<std::pair<const char*, const char*>>{
           {"-1", "-1"}, {"1.5", "1.5"}, {"9223372036854775808", "9223372036854775808"},
           {"null", "null"}, {"true", "true"}, {"\"1\"", "\"1\""}, {"[1]", "an array"},
           {"{}", "an object"}, {"1e300", "1e+300"}}) {
    EXPECT_EQ(FaultOf(StrCat(R"({"shape":[4,)", value, "]}")),
              StrCat("header entry a: shape[1]: ", expected, found));
  }
}

// simdjson reads what is usual; the events are the reference for it.
TEST(HeaderJson, TheQuickWayAgreesWithTheEvents) {
  const std::string entry = R"("a":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]})";
  const std::string usual[] = {
      "{}", "{" + entry + "}", " {\t" + entry + "\n} ", R"({"__metadata__":{"format":"pt"}})",
      R"({"__metadata__":7,)" + entry + "}", "{" + entry + "," + entry + "}",
      R"({"\u00e9\"\\\ud83d\ude00\u0000":{"data_offsets":[0,0],"x":[{"y":1.5e3}],"shape":[],"dtype":"F32"}})",
      R"({"a":{"dtype":"x","dtype":"","shape":[1],"shape":[-0],"data_offsets":[9223372036854775807]}})"};
  for (const std::string& text : usual) {
    const auto quick = ReadUsualHeader(text);
    const auto slow = ReadHeaderByEvents(text);
    ASSERT_TRUE(quick.has_value() && slow.ok()) << text;
    EXPECT_EQ(*quick, *slow) << text;
  }
  // What is broken or odd is left to the events, whatever they say of it.
  for (const std::string& text :
       {std::string(), std::string("[]"), "{" + entry, "{" + entry + "} x", "{" + entry + ",}",
        std::string(R"({"a":{"dtype":"F32","shape":[1]}})"),
        std::string(R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})"),
        std::string(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})"),
        std::string(R"({"a":{"dtype":"F32","shape":[9223372036854775808],"data_offsets":[]}})"),
        std::string(R"({"a":{"dtype":3,"shape":[],"data_offsets":[]}})"),
        std::string("{\"\xff\":{}}"), std::string(R"({"\ud800":{}})"),
        "{\"x\":" + std::string(300, '[') + std::string(300, ']') + "}"}) {
    EXPECT_FALSE(ReadUsualHeader(text).has_value()) << text;
  }
}

TEST(HeaderJson, WhatIsNoJsonSaysWhere) {
  EXPECT_EQ(MessageOf(ReadHeaderJson("{\"a\":").status()),
            "header: not JSON: broken at byte 6 of 5");
  EXPECT_EQ(MessageOf(ReadHeaderJson("{} x").status()), "header: not JSON: broken at byte 4 of 4");
  EXPECT_EQ(MessageOf(ReadHeaderJson(std::string_view("{}\0 ", 4)).status()),
            "header: not JSON: broken at byte 3 of 4");
  EXPECT_EQ(MessageOf(ReadHeaderJson("").status()), "header: not JSON: broken at byte 1 of 0");
  for (const char* other : {"7", "[]", "\"a\"", "null"}) {
    EXPECT_EQ(MessageOf(ReadHeaderJson(other).status()), "the header is not a JSON object");
  }
  EXPECT_EQ(FaultOf(R"({"shape":[1e999]})"),
            "header: a number is too large for 64-bit floating point");
}

TEST(HeaderJson, DeepNestingIsRefused) {
  const auto nested = [](size_t depth) {
    return StrCat("{\"__metadata__\":", std::string(depth, '['), std::string(depth, ']'), "}");
  };
  EXPECT_TRUE(ReadHeaderJson(nested(255)).ok());
  EXPECT_EQ(MessageOf(ReadHeaderJson(nested(256)).status()), "nested deeper than 256 levels");
  EXPECT_EQ(MessageOf(ReadHeaderJson(nested(1'000'000)).status()), "nested deeper than 256 levels");
}

std::string IndexText(std::string_view json, std::string* found) {
  return MessageOf(ReadIndexJson(json, "i", [&](std::string&& tensor, std::string&& file) {
    *found += StrCat(tensor, "=", file, " ");
    return file == "bad" ? InvalidArgument("bad file") : OkStatus();
  }));
}

TEST(IndexJson, TellsEachMember) {
  std::string found;
  EXPECT_EQ(IndexText(R"({"metadata": {"weight": [{"weight_map": {"x": "y"}}], "n": 1},
                          "weight_map": {"b": "2", "a": "1"}, "other": {"c": "3"}})",
                      &found),
            "");
  EXPECT_EQ(found, "b=2 a=1 ");
}

TEST(IndexJson, FaultsNameTheMember) {
  std::string found;
  const std::string none = "i: no weight_map; expected {\"weight_map\": {tensor: file}}";
  for (const char* text : {"{}", "[]", "3", R"({"weight_map":{}})", R"({"weight_map":[{"a":"b"}]})",
                           R"({"weight_map":"a"})"}) {
    EXPECT_EQ(IndexText(text, &found), none) << text;
  }
  EXPECT_EQ(IndexText(R"({"weight_map":{"a":3}})", &found),
            "i: weight_map.a: expected the name of a file, found 3");
  EXPECT_EQ(IndexText(R"({"weight_map":{"a":["b"]}})", &found),
            "i: weight_map.a: expected the name of a file, found an array");
  EXPECT_EQ(IndexText(R"({"weight_map":{"a":"bad","b":"c"}})", &found), "bad file");
  EXPECT_EQ(IndexText(R"({"weight_map")", &found), "i: not JSON: broken at byte 14 of 13");
  EXPECT_EQ(found, "a=bad ");
}

}  // namespace
}  // namespace deepinfer
