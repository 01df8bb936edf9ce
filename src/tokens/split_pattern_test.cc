#include "tokens/split_pattern.h"

#include <gtest/gtest.h>

#include "tokens/pattern_syntax.h"
#include "tokens/utf8.h"

namespace deepinfer {
namespace {

std::vector<std::string> Split(std::string_view pattern, std::string_view text) {
  const auto compiled = SplitPattern::Compile(pattern);
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  if (!compiled.ok()) return {};
  const TextSpan whole{0, text.size()};
  std::vector<std::string> parts;
  for (const TextSpan& part : compiled->Split(text, std::span(&whole, 1))) {
    parts.emplace_back(text.substr(part.begin, part.end - part.begin));
  }
  return parts;
}
using Parts = std::vector<std::string>;

TEST(SplitPattern, GivesMatchesAndWhatIsBetween) {
  EXPECT_EQ(Split(R"(\p{N}{1,3})", "ab12345c"), (Parts{"ab", "123", "45", "c"}));
  EXPECT_EQ(Split("x", "abc"), Parts{"abc"});
  EXPECT_EQ(Split("x", "xx"), (Parts{"x", "x"}));
  EXPECT_EQ(Split("x", ""), Parts{});
}

TEST(SplitPattern, EmptyMatchesCutAndGoOn) {
  EXPECT_EQ(Split("x*", "abxxc"), (Parts{"a", "b", "xx", "c"}));
  EXPECT_EQ(Split("(?=b)", "\u00E9\u00E9b"), (Parts{"\u00E9\u00E9", "b"}));
}

TEST(SplitPattern, SeesNothingOutsideThePiece) {
  const auto num_parts = [](const char* pattern, std::string_view text, TextSpan piece) {
    return SplitPattern::Compile(pattern)->Split(text, std::span(&piece, 1)).size();
  };
  EXPECT_EQ(num_parts("(?<=a)b", "abb", {0, 3}), 3u);
  EXPECT_EQ(num_parts("(?<=a)b", "abb", {1, 3}), 1u);
  EXPECT_EQ(num_parts("b(?!c)", "abc", {0, 3}), 1u);
  EXPECT_EQ(num_parts("b(?!c)", "abc", {0, 2}), 2u);
}

// PCRE2's own \s is another set: it has U+180E.
TEST(SplitPattern, WhiteSpaceIsExactlyUnicodeWhiteSpace) {
  const auto space = SplitPattern::Compile(R"(\s)"), other = SplitPattern::Compile(R"(\S)");
  const auto in_class = SplitPattern::Compile(R"([\s])"),
             not_in_class = SplitPattern::Compile(R"([^\S])");
  for (char32_t code = 0; code <= 0x10FFFF; ++code) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    std::string text = "ab";
    AppendUtf8(code, text);
    const std::vector<TextSpan> piece = {{1, text.size()}};  // 'b' and the character
    const size_t num_parts = IsWhiteSpace(code) ? 2 : 1;
    ASSERT_EQ(space->Split(text, piece).size(), num_parts) << static_cast<uint32_t>(code);
    ASSERT_EQ(in_class->Split(text, piece).size(), num_parts) << static_cast<uint32_t>(code);
    ASSERT_EQ(not_in_class->Split(text, piece).size(), num_parts) << static_cast<uint32_t>(code);
    ASSERT_EQ(other->Split(text, piece).size(), 2u) << static_cast<uint32_t>(code);
  }
}

TEST(SplitPattern, MegabyteRunsStayInOneMatch) {
  const std::string_view pattern = R"([^\r\n\p{L}]?[\p{L}\p{M}]+|\s*[\r\n]+|\s+(?!\S)|\s+)";
  EXPECT_EQ(Split(pattern, std::string(1 << 20, 'a')).size(), 1u);
  EXPECT_EQ(Split(pattern, std::string(1 << 20, ' ')).size(), 1u);
  EXPECT_EQ(Split(pattern, std::string(1 << 20, ' ') + "a").size(), 2u);
  EXPECT_EQ(Split("(?:ab|cd)+x", std::string(1 << 20, 'c')).size(), 1u);
}

// Each turn of a group takes stack in compiled code; the interpreter takes over.
TEST(SplitPattern, DeepGroupsDoNotEndTheStack) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "ab";
  EXPECT_EQ(Split("(?:(?:a|ab)(?:b|))+", text + "c").size(), 2u);
}

TEST(SplitPattern, AnExplodingPatternLeavesTheRestInOnePiece) {
  const std::string text = "1" + std::string(18, 'a') + "c";
  const auto num_parts = [&](uint32_t match_limit) {
    const auto pattern = SplitPattern::Compile("1|(?:a+)+b|a", match_limit);
    const TextSpan whole{0, text.size()};
    return pattern->Split(text, std::span(&whole, 1)).size();
  };
  EXPECT_EQ(num_parts(1'000), 2u);
  EXPECT_EQ(num_parts(UINT32_MAX), text.size());
}

TEST(SplitPattern, SaysWhatIsWrongWithAPattern) {
  const auto broken = SplitPattern::Compile("(a");
  ASSERT_FALSE(broken.ok());
  EXPECT_NE(MessageOf(broken.status()).find("(a: missing closing parenthesis"), std::string::npos)
      << broken.status();
}

TEST(PatternSyntax, RewritesWhatThePcre2WouldReadDifferently) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"(\s)", R"(\p{White_Space})"},
      {R"([^\S])", R"([^\P{White_Space}])"},
      {R"([\w-])", R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}-])"},
      {R"(\W)", R"([^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}])"},
      {R"(\h\v)", R"([0-9a-fA-F]\x0B)"},
      {R"(\u4e00\x41\x{1F600})", R"(\x{4e00}\x{41}\x{1F600})"},
      {R"(\p{Han}\P{Lu}\p{^L})", R"(\p{sc:Han}\P{Lu}\p{^L})"},
      {R"((?i:'s|'t) ?[^\r\n\p{L}]+[\\\]\-&]{1,3}?a++b*?)",
       R"((?i:'s|'t) ?[^\r\n\p{L}]+[\\\]\-&]{1,3}?a++b*?)"}};
  for (const auto& [from, to] : cases) {
    const auto result = ToPcre2(from);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(*result, to);
  }
}

TEST(PatternSyntax, RefusesWhatIsNotKnownToBeTheSame) {
  for (const char* pattern :
       {"^a",       "a$",          R"(\ba)",         R"(\Ra)",  R"(\Aa)",
        R"((a)\1)", "[[:alpha:]]", "[a&&b]",         "[a[b]]",  "[]a]",
        "a{,3}",    "a{2}+",       "a{2}?",          "a{",      "a{x}",
        "(?x)a",    "(?P<n>a)",    "(*UCP)a",        R"([\W])", R"(\p{sc=Han})",
        R"(\pL)",   R"(\xE4)",     R"(\x{1234567})", R"(\u12)", "[a",
        "a\\",      "a**"}) {
    const auto result = ToPcre2(pattern);
    EXPECT_FALSE(result.ok()) << pattern << " became " << *result;
    if (result.ok()) continue;
    EXPECT_NE(MessageOf(result.status()).find(pattern), std::string::npos) << result.status();
    EXPECT_EQ(MessageOf(result.status()).find('\n'), std::string::npos);
  }
  EXPECT_EQ(MessageOf(ToPcre2("[a[\u00e9]").status()),
            "pattern [a[\u00e9]: \"[\u00e9\" at byte 2 is not supported");
}

}  // namespace
}  // namespace deepinfer
