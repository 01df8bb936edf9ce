#include "apps/answer_collector.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

TEST(AnswerCollector, EveryErrorCodeHasItsName) {
  const auto code = [](ErrorCode value) {
    return DumpJson(*ErrorJson({.code = value, .message = "m"}).Find("code"));
  };
  EXPECT_EQ(code(ErrorCode::kInvalidArgument), "\"invalid_argument\"");
  EXPECT_EQ(code(ErrorCode::kNotFound), "\"not_found\"");
  EXPECT_EQ(code(ErrorCode::kFailedPrecondition), "\"failed_precondition\"");
  EXPECT_EQ(code(ErrorCode::kResourceExhausted), "\"resource_exhausted\"");
  EXPECT_EQ(code(ErrorCode::kDeadlineExceeded), "\"deadline_exceeded\"");
  EXPECT_EQ(code(ErrorCode::kDataLoss), "\"data_loss\"");
  EXPECT_EQ(code(ErrorCode::kInternal), "\"internal\"");
}

TEST(AnswerCollector, EveryTokenOfAnEventKeepsItsText) {
  AnswerCollector answers(1);
  answers.Take(TokensEvent{.ids = {5, 6}, .text = "ab", .pieces = {"a", "b"}});
  answers.Take(TokensEvent{.first_idx = 2, .ids = {7}, .text = "c", .pieces = {"c"}});
  EXPECT_EQ(answers.choices()[0].pieces, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(answers.num_output_tokens(), 3);
}

}  // namespace
}  // namespace deepinfer
