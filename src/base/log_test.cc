#include "base/log.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

TEST(Log, TextLinesShowFieldsBehindTheMessage) {
  EXPECT_EQ(LogText(LogFormat::kText, "message",
                    {{"a", std::string("x\ny")}, {"b", int64_t{2}}, {"c", 0.5}, {"d", true}}),
            "message a=x\\ny b=2 c=0.5 d=true");
}

TEST(Log, JsonLinesAreJson) {
  EXPECT_EQ(LogText(LogFormat::kJson, "say \"\\\n\"",
                    {{"a", std::string("x\x01")}, {"b", int64_t{-2}}, {"c", 0.5}, {"d", false}}),
            R"("message":"say \"\\\u000a\"","a":"x\u0001","b":-2,"c":0.5,"d":false)");
}

TEST(Log, WhatIsNotUtf8IsReplaced) {
  const auto json = [](std::string_view text) { return LogText(LogFormat::kJson, text, {}); };
  EXPECT_EQ(json("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"),
            "\"message\":\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
  EXPECT_EQ(json("a\xff\xc3z"), R"("message":"a??z")");
  EXPECT_EQ(json("\xc0\xaf"), R"("message":"??")");            // too long a form
  EXPECT_EQ(json("\xed\xa0\x80"), R"("message":"???")");       // half of a pair
  EXPECT_EQ(json("\xf4\x90\x80\x80"), R"("message":"????")");  // beyond the last character
  EXPECT_EQ(json("\xe2\x82"), R"("message":"??")");            // cut off
}

}  // namespace
}  // namespace deepinfer
