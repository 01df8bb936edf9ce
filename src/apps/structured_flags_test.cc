#include "apps/structured_flags.h"

#include <gtest/gtest.h>

#include "base/simulated_disk.h"
#include "request/structured_fields.h"

namespace deepinfer {
namespace {

using Kind = StructuredOutput::Kind;

class StructuredFlagsTest : public ::testing::Test {
 protected:
  StatusOr<StructuredOutput> Read(const std::vector<std::string>& arguments) {
    StructuredFlags flags;
    OptionSet options("generate", "Produces text.");
    flags.AddTo(options);
    DI_RETURN_IF_ERROR(options.Parse(arguments, {environment_, disk_}));
    return flags.Read(disk_);
  }
  std::string Error(const std::vector<std::string>& arguments) {
    return MessageOf(Read(arguments).status());
  }

  Environment environment_;
  SimulatedDisk disk_;
};

TEST_F(StructuredFlagsTest, NoneIsFree) { EXPECT_EQ(*Read({}), StructuredOutput{}); }

TEST_F(StructuredFlagsTest, EachKind) {
  EXPECT_EQ(*Read({"--json-object"}), StructuredOutput{.kind = Kind::kJsonObject});
  EXPECT_EQ(*Read({"--regex", "a+"}), (StructuredOutput{.kind = Kind::kRegex, .text = "a+"}));
  EXPECT_EQ(*Read({"--json-schema", " {\"type\":\"string\"}"}),
            (StructuredOutput{.kind = Kind::kJsonSchema, .text = " {\"type\":\"string\"}"}));
  EXPECT_EQ(*Read({"--grammar", "root ::= \"a\""}),
            (StructuredOutput{.kind = Kind::kGrammar, .text = "root ::= \"a\""}));
}

TEST_F(StructuredFlagsTest, WhatIsNoTextIsAFile) {
  ASSERT_TRUE(disk_.WriteText("/s.json", "true").ok());
  ASSERT_TRUE(disk_.WriteText("/g.ebnf", "root ::= [a-z]").ok());
  EXPECT_EQ(Read({"--json-schema", "/s.json"})->text, "true");
  EXPECT_EQ(Read({"--grammar", "/g.ebnf"})->text, "root ::= [a-z]");
  EXPECT_EQ(Error({"--grammar", "/no.ebnf"}).find("--grammar: "), 0u);
}

TEST_F(StructuredFlagsTest, WhereItBegins) {
  const auto read = Read({"--regex", "a", "--trigger-token-ids", "7,8", "--bound-token-id", "9"});
  EXPECT_EQ(read->trigger_token_ids, (std::vector<int32_t>{7, 8}));
  EXPECT_EQ(read->bound_token_id, 9);
}

TEST_F(StructuredFlagsTest, InAChatThatThinksItStartsBehindTheThinking) {
  const AnswerTokens tokens;
  const auto bound = [&](const std::vector<std::string>& arguments) {
    StructuredOutput structured = *Read(arguments);
    StartBehindThinking(tokens, structured);
    return structured.bound_token_id;
  };
  EXPECT_EQ(bound({"--regex", "a"}), tokens.think_end);
  EXPECT_EQ(bound({"--regex", "a", "--bound-token-id", "9"}), 9);
  EXPECT_EQ(bound({"--regex", "a", "--trigger-token-ids", "9"}), std::nullopt);
  EXPECT_EQ(bound({}), std::nullopt);
}

TEST_F(StructuredFlagsTest, WhatDoesNotFitTogetherIsNamed) {
  EXPECT_EQ(Error({"--regex", "a", "--json-object"}),
            "--json-object, --json-schema, --regex, --grammar: found several, expected one");
  EXPECT_EQ(Error({"--bound-token-id", "9"}).find("--trigger-token-ids, --bound-token-id: "), 0u);
  EXPECT_EQ(Error({"--regex", "a", "--trigger-token-ids", "x"}).find("--trigger-token-ids: "), 0u);
}

}  // namespace
}  // namespace deepinfer
