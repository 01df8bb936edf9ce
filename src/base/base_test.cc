#include <gtest/gtest.h>

#include "base/check.h"
#include "base/log.h"
#include "base/status.h"
#include "base/strings.h"

namespace deepinfer {
namespace {

TEST(Strings, StrCatJoinsValuesOfAllKinds) {
  const std::string text = "layer";
  EXPECT_EQ(StrCat(text, ' ', 3, ": ", 0.5, " ", true, " ", uint8_t{200}, " ", INT64_MIN),
            "layer 3: 0.5 true 200 -9223372036854775808");
  EXPECT_EQ(StrCat(), "");
}

TEST(Strings, JoinPutsSeparatorsBetween) {
  EXPECT_EQ(Join(std::vector<int>{1, 2, 3}, ", "), "1, 2, 3");
  EXPECT_EQ(Join(std::vector<std::string>{"a"}, ", "), "a");
  EXPECT_EQ(Join(std::vector<int>{}, ", "), "");
}

TEST(Status, CarriesCodeAndLine) {
  const Status status = NotFound("a/b", ": no such file, ", 2, " were looked at");
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_EQ(MessageOf(status), "a/b: no such file, 2 were looked at");
}

TEST(Status, MessagesAreOneLineWhateverTheyQuote) {
  EXPECT_EQ(MessageOf(NotFound("a\nb\t\x1b[2J\x7f\r", std::string(1, '\0'), "\u00e9")),
            "a\\nb\\t\\x1b[2J\\x7f\\x0d\\x00\u00e9");
}

TEST(Status, AnnotateKeepsTheCodeAndLeavesOkAlone) {
  const Status status = Annotate(DataLoss("byte 3"), "shard ", 7);
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_EQ(MessageOf(status), "shard 7: byte 3");
  EXPECT_TRUE(Annotate(OkStatus(), "shard").ok());
}

StatusOr<int> Half(int value) {
  if (value % 2 != 0) return InvalidArgument(value, " is odd");
  return value / 2;
}
StatusOr<int> Quarter(int value) {
  DI_ASSIGN_OR_RETURN(const int half, Half(value));
  DI_ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}
Status QuarterIs(int value, int expected) {
  DI_RETURN_IF_ERROR(Quarter(value).status());
  return *Quarter(value) == expected ? OkStatus() : Internal("wrong");
}

TEST(Status, MacrosReturnTheFirstFailure) {
  EXPECT_EQ(*Quarter(12), 3);
  EXPECT_EQ(MessageOf(Quarter(6).status()), "3 is odd");
  EXPECT_EQ(MessageOf(QuarterIs(7, 0)), "7 is odd");
  EXPECT_TRUE(QuarterIs(8, 2).ok());
}

TEST(CheckDeathTest, SaysWhereAndBothValues) {
  const int rows = 3;
  EXPECT_DEATH(CHECK_EQ(rows, 4), "base_test.cc:[0-9]+: CHECK failed: rows == 4 \\(3 against 4\\)");
  EXPECT_DEATH(CHECK(rows > 3), "CHECK failed: rows > 3");
  CHECK_LT(rows, 4);
}

TEST(Log, LevelDecidesWhatIsPrinted) {
  SetLogLevel(LogLevel::kWarning);
  ::testing::internal::CaptureStderr();
  LogInfo("hidden");
  LogWarning("seen ", 1);
  const std::string printed = ::testing::internal::GetCapturedStderr();
  SetLogLevel(LogLevel::kInfo);
  EXPECT_EQ(printed.find("hidden"), std::string::npos);
  EXPECT_NE(printed.find("warning] seen 1\n"), std::string::npos);
}

}  // namespace
}  // namespace deepinfer
