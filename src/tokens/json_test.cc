#include "tokens/json.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

std::string Dumped(std::string_view text) {
  const StatusOr<JsonValue> value = ParseJson(text);
  EXPECT_TRUE(value.ok()) << value.status();
  return value.ok() ? DumpJson(*value) : "";
}

// Expected texts are json.dumps(json.loads(x), ensure_ascii=False) of Python 3.11.
TEST(Json, NumbersAreSpelledAsPythonDoes) {
  const std::pair<std::string_view, std::string_view> kCases[] = {
      {"1", "1"},
      {"-0", "0"},
      {"-0.0", "-0.0"},
      {"1.0", "1.0"},
      {"1e5", "100000.0"},
      {"1E22", "1e+22"},
      {"1e16", "1e+16"},
      {"1e15", "1000000000000000.0"},
      {"123456789012345680.0", "1.2345678901234568e+17"},
      {"0.0001", "0.0001"},
      {"0.00001", "1e-05"},
      {"0.00012345", "0.00012345"},
      {"2.5e-7", "2.5e-07"},
      {"5e-324", "5e-324"},
      {"1.7976931348623157e308", "1.7976931348623157e+308"},
      {"123.456", "123.456"},
      {"9007199254740993.0", "9007199254740992.0"},
      {"18446744073709551616", "18446744073709551616"},
      {"-123456789012345678901234567890", "-123456789012345678901234567890"},
  };
  for (const auto& [text, expected] : kCases) EXPECT_EQ(Dumped(text), expected) << text;
}

TEST(Json, StringsKeepWhatIsNotAscii) {
  EXPECT_EQ(Dumped(R"("\u00e9\ud83d\ude00 / \/ \u0007\u007f\u2028\"\\\n\r\t\b\f")"),
            "\"é😀 / / \\u0007\x7F\u2028\\\"\\\\\\n\\r\\t\\b\\f\"");
}

TEST(Json, OrderStaysAndTheLastOfRepeatedKeysCounts) {
  EXPECT_EQ(Dumped(R"( {"b":[ ],"a":{},"b":[1,null,true,false],"c":"x"} )"),
            R"({"b": [1, null, true, false], "a": {}, "c": "x"})");
}

TEST(Json, WhatIsNotJsonIsRefusedWithItsPosition) {
  for (const std::string_view text :
       {"", " ", "{", "[1,]", "{\"a\" 1}", "NaN", "Infinity", "1e999", "01", "'a'", "\"\n\"", "1 2",
        "\"\\ud800\"", "\"\xFF\"", "\xEF\xBB\xBF{}"}) {
    const StatusOr<JsonValue> value = ParseJson(text);
    ASSERT_FALSE(value.ok()) << text;
    EXPECT_EQ(MessageOf(value.status()).rfind("not JSON", 0), 0u) << value.status();
    EXPECT_EQ(MessageOf(value.status()).find('\n'), std::string::npos) << value.status();
    EXPECT_EQ(MessageOf(value.status()).find('\xFF'), std::string::npos) << value.status();
  }
}

TEST(Json, ANulByteDoesNotEndTheText) {
  using namespace std::string_literals;
  EXPECT_EQ(MessageOf(ParseJson("1\0[[["s).status()), "not JSON at byte 2: a NUL byte");
  EXPECT_FALSE(ParseJson("{}\0"s).ok());
  EXPECT_FALSE(ParseJson("\"a\0b\""s).ok());
}

TEST(Json, NestingHasALimit) {
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') +
           std::string(static_cast<size_t>(depth), ']');
  };
  EXPECT_TRUE(ParseJson(nested(kMaxJsonDepth)).ok());
  EXPECT_FALSE(ParseJson(nested(kMaxJsonDepth + 1)).ok());
  EXPECT_FALSE(ParseJson(std::string(1 << 20, '[')).ok());
  EXPECT_TRUE(ParseJson(nested(3), 3).ok());
  EXPECT_FALSE(ParseJson(nested(4), 3).ok());
}

TEST(Json, ManyKeysAreReadInLinearTime) {
  std::string text = "{";
  for (int i = 0; i < 100'000; ++i) text += StrCat(i > 0 ? "," : "", "\"key", i, "\":0");
  const StatusOr<JsonValue> value = ParseJson(text + "}");
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(value->members.size(), 100'000u);
}

TEST(SameJson, IsByValue) {
  const auto same = [](std::string_view a, std::string_view b) {
    return SameJson(*ParseJson(a), *ParseJson(b));
  };
  EXPECT_TRUE(same(R"({"a": 1, "b": [true, null]})", R"({"b":[true,null],"a":1.0})"));
  EXPECT_TRUE(same("1e2", "100"));
  EXPECT_TRUE(same("-0.0", "0"));
  EXPECT_FALSE(same("[1, 2]", "[2, 1]"));
  EXPECT_FALSE(same("1", "\"1\""));
  EXPECT_FALSE(same(R"({"a": 1})", R"({"a": 1, "b": null})"));
  EXPECT_FALSE(same(R"({"a": 1})", R"({"b": 1})"));
  EXPECT_FALSE(same("true", "false"));
  // The same in F64.
  EXPECT_FALSE(same("9007199254740993", "9007199254740992"));
}

}  // namespace
}  // namespace deepinfer
