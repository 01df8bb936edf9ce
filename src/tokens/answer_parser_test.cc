#include "tokens/answer_parser.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "tokens/answer_test_util.h"
#include "tokens/json.h"

namespace deepinfer {
namespace {

const std::string kSeoul = Block(Invoke("get_weather", TextParameter("city", "Seoul")));
const ParsedCall kSeoulCall{.name = "get_weather", .arguments = R"({"city": "Seoul"})"};

std::string ArgumentOf(const ParsedAnswer& answer) {
  EXPECT_EQ(answer.calls.size(), 1u) << answer.first_problem;
  if (answer.calls.size() != 1) return "";
  const StatusOr<JsonValue> arguments = ParseJson(answer.calls[0].arguments);
  EXPECT_TRUE(arguments.ok()) << arguments.status() << " " << answer.calls[0].arguments;
  return arguments.ok() && !arguments->members.empty() ? arguments->members[0].value.text : "";
}

TEST(AnswerParser, ReasoningContentAndCalls) {
  const ParsedAnswer answer =
      ParseAllWays("Let me think.\n</think>Here:" + kSeoul + kEos + "ignored", true);
  EXPECT_EQ(answer.reasoning, "Let me think.\n");
  EXPECT_EQ(answer.content, "Here:");
  EXPECT_EQ(answer.calls, std::vector{kSeoulCall});
  EXPECT_TRUE(answer.ended);
  EXPECT_EQ(answer.num_malformed, 0);
}

TEST(AnswerParser, ContentKeepsItsOwnNewlinesAndAngleBrackets) {
  for (const std::string text :
       {"a\n", "a\n\n", "a\n\n\n<", "\n\n", "a</", "<", "</b>\n\n<i>", "a << b"}) {
    EXPECT_EQ(ParseAllWays(text + kEos, false).content, text);
    EXPECT_EQ(ParseAllWays(text, false).content, text);
    EXPECT_EQ(ParseAllWays(text, true).reasoning, text);
  }
}

TEST(AnswerParser, OnlyTwoNewlinesBelongToTheSeparator) {
  EXPECT_EQ(ParseAllWays("a\n\n\n" + kSeoul, false).content, "a\n\n\n");
  EXPECT_EQ(ParseAllWays("a\n" + kSeoul.substr(2), false).content, "a");
  EXPECT_EQ(ParseAllWays("a" + kSeoul.substr(2), false).content, "a");
}

TEST(AnswerParser, HeldTextIsGivenOutAsSoonAsItIsCertain) {
  AnswerParser parser(AnswerTokens(), false);
  EXPECT_EQ(parser.Feed(kOrdinaryToken, "a").at(0).text, "a");
  EXPECT_TRUE(parser.Feed(kOrdinaryToken, "\n\n").empty());
  EXPECT_EQ(parser.Feed(kOrdinaryToken, "b").at(0).text, "\n\nb");
  EXPECT_TRUE(parser.Feed(kOrdinaryToken, "\n\n<").empty());
  EXPECT_EQ(parser.Finish().at(0).text, "\n\n<");
}

TEST(AnswerParser, InThinkingFollowsTheStream) {
  AnswerParser parser(AnswerTokens(), true);
  parser.Feed(kOrdinaryToken, "why");
  EXPECT_TRUE(parser.in_thinking());
  parser.Feed(AnswerTokens().think_end, kThinkEndToken);
  EXPECT_FALSE(parser.in_thinking());
  EXPECT_FALSE(parser.ended());
  parser.Feed(AnswerTokens().eos, "");  // detokenizers may leave special tokens out
  EXPECT_TRUE(parser.ended());
}

TEST(AnswerParser, TextHeldByTheDetokenizerComesBeforeItsControlToken) {
  AnswerParser parser(AnswerTokens(), true);
  const auto deltas = parser.Feed(AnswerTokens().think_end, "\xEF\xBF\xBD</think>");
  ASSERT_EQ(deltas.size(), 1u);
  EXPECT_EQ(deltas[0].text, "\xEF\xBF\xBD");
  EXPECT_FALSE(parser.in_thinking());
}

TEST(AnswerParser, BytesThatStandForControlTokensInsideCannotBeFed) {
  const ParsedAnswer answer =
      ParseAnswer({{kOrdinaryToken, "a<\xFF calls>\xFC b"}}, AnswerTokens(), false);
  EXPECT_EQ(answer.content, "a<\xEF\xBF\xBD calls>\xEF\xBF\xBD b");
}

TEST(AnswerParser, case_01_every_cut_gives_the_same_call) {
  const std::string text = kSeoul + kEos;
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const ParsedAnswer answer =
        ParseAnswer({{kUnknownToken, text.substr(0, cut)}, {kUnknownToken, text.substr(cut)}},
                    AnswerTokens(), false);
    EXPECT_EQ(answer.content, "") << cut;
    EXPECT_EQ(answer.calls, std::vector{kSeoulCall}) << cut;
    EXPECT_TRUE(answer.ended);
  }
}

TEST(AnswerParser, case_02_values_come_through_byte_for_byte) {
  for (const std::string& value :
       {std::string("Paris"), std::string("ls 2>&1"), std::string("a<b"), std::string("</"),
        std::string("x｜y"), std::string("<|DSML| parameter name=\"k\" string=\"true\">"),
        std::string("</parameter>\n</invoke>"),
        std::string("\" string=\"true\">\\ \"\t\r\n\b\f\x01\x7F"), std::string("<"),
        std::string("a</<</"), std::string(1 << 20, 'x'), std::string()}) {
    EXPECT_EQ(ArgumentOf(ParseAllWays(Block(Invoke("f", TextParameter("k", value))), false)),
              value);
  }
}

// The tokenizer spells control strings with ordinary tokens when they are only text.
TEST(AnswerParser, case_02_literal_tags_spelled_by_ordinary_tokens_are_text) {
  const std::string value = TextParameter("k", "v") + Close("invoke") + "</think>" + kEos;
  const std::string begin =
      Open("invoke name=\"f\"") + Open("parameter name=\"k\" string=\"true\"");
  std::vector<AnswerToken> tokens = AsTokens(begin);
  tokens.push_back({kOrdinaryToken, value});
  const std::string end = Close("parameter") + Close("invoke");
  for (const AnswerToken& token : AsTokens(end)) tokens.push_back(token);
  EXPECT_EQ(ArgumentOf(ParseAnswer(tokens, AnswerTokens(), false)), value);

  const std::string said = "hello </think> world " + kSeoul;
  EXPECT_EQ(ParseAnswer({{kOrdinaryToken, said}}, AnswerTokens(), false).content, said);
}

TEST(AnswerParser, ValuesOfAllKinds) {
  const ParsedAnswer answer = ParseAllWays(
      Block(Invoke("f", TextParameter("s", "1") + "\n" + JsonParameter("n", " [1, {\"a\": null}]") +
                            "\n" + JsonParameter("b", "true") + TextParameter("", "é\"\n"))),
      false);
  ASSERT_EQ(answer.calls.size(), 1u) << answer.first_problem;
  EXPECT_EQ(answer.calls[0].arguments,
            "{\"s\": \"1\", \"n\":  [1, {\"a\": null}], \"b\": true, \"\": \"é\\\"\\n\"}");
}

TEST(AnswerParser, NamesMayBeOddOrQualified) {
  for (const std::string name : {"", "a b", "x=1", "a>b", "a\"b", "a/", "名"}) {
    const ParsedAnswer answer = ParseAllWays(Block(Invoke(name, TextParameter(name, "v"))), false);
    ASSERT_EQ(answer.calls.size(), 1u) << name << ": " << answer.first_problem;
    EXPECT_EQ(answer.calls[0].name, name);
    EXPECT_EQ(ParseJson(answer.calls[0].arguments)->members[0].key, name);
  }
  const ParsedAnswer answer = ParseAllWays(Block(Invoke("files::find", "")), false);
  ASSERT_EQ(answer.calls.size(), 1u);
  EXPECT_EQ(answer.calls[0].name_space, "files");
  EXPECT_EQ(answer.calls[0].name, "find");
  EXPECT_EQ(answer.calls[0].arguments, "{}");
}

TEST(AnswerParser, case_06_a_block_inside_thinking_ends_the_thinking) {
  for (const std::string& block :
       {kSeoul, "\n\n" + Invoke("get_weather", TextParameter("city", "Seoul"))}) {
    const ParsedAnswer answer = ParseAllWays("I ask." + block + "</think>" + kEos, true);
    EXPECT_EQ(answer.reasoning, "I ask.");
    EXPECT_EQ(answer.content, "");
    EXPECT_EQ(answer.calls, std::vector{kSeoulCall});
  }
}

TEST(AnswerParser, case_07_a_cut_anywhere_leaves_no_broken_call) {
  const std::string text = "Hi" + Block(Invoke("a", TextParameter("k", "v")) + "\n" +
                                        Invoke("b", TextParameter("k", "long value")));
  const size_t first_whole = text.find(Close("invoke")) + Close("invoke").size();
  const size_t second_whole = text.rfind(Close("invoke")) + Close("invoke").size();
  std::vector<AnswerToken> tokens;
  size_t cut = 0;
  for (const AnswerToken& token : AsTokens(text)) {
    tokens.push_back(token);
    cut += token.text.size();
    const ParsedAnswer answer = ParseAnswer(tokens, AnswerTokens(), false);
    EXPECT_EQ(answer.calls.size(), size_t{cut >= first_whole} + size_t{cut >= second_whole}) << cut;
    for (const ParsedCall& call : answer.calls) EXPECT_TRUE(ParseJson(call.arguments).ok()) << cut;
    EXPECT_EQ(answer.content, cut > text.find(kM) ? "Hi" : text.substr(0, cut)) << cut;
    ExpectNoLeak(answer, text.substr(0, cut));
    EXPECT_FALSE(answer.ended);
  }
}

TEST(AnswerParser, case_13_thinking_without_an_end_is_reasoning_only) {
  const ParsedAnswer answer = ParseAllWays("Good morning!" + kEos, true);
  EXPECT_EQ(answer.reasoning, "Good morning!");
  EXPECT_EQ(answer.content, "");
  EXPECT_TRUE(answer.ended);
}

TEST(AnswerParser, TextBetweenAndAfterCallsIsContent) {
  const std::string f = Invoke("f", ""), g = Invoke("g", "");
  const ParsedAnswer answer =
      ParseAllWays("One." + Block(f + "\n Two. \n" + g) + "\nThree.\n", false);
  EXPECT_EQ(answer.content, "One.\n\nTwo. \n\nThree.\n");
  EXPECT_EQ(answer.calls.size(), 2u);
  EXPECT_EQ(ParseAllWays(Block(f) + " \n" + kEos, false).content, "");
}

TEST(AnswerParser, MarkupOutOfPlaceIsLeftOut) {
  const struct {
    std::string text, content;
  } kCases[] = {
      {"a" + kM + "b", "ab"},
      {"a<think>b</think>c", "abc"},
      {"a" + Open("other x=1") + "b", "ab"},
      {"a" + Close("invoke") + "b", "a\n\nb"},
      {"a" + Close("parameter") + "b", "ab"},
      {"a<" + kM + "nothing\nb", "a\nb"},
      {"a" + Open("parameter name=\"k\" string=\"true\"") + "b" + Close("parameter"), "ab"},
      {"</" + kM, ""},
      {"a" + Open("calls") + Close("calls") + "b", "a\n\nb"},
  };
  for (const auto& [text, content] : kCases) {
    const ParsedAnswer answer = ParseAllWays(text, false);
    EXPECT_EQ(answer.content, content) << text;
    EXPECT_TRUE(answer.calls.empty()) << text;
    EXPECT_EQ(answer.num_malformed, 0) << text;
  }
}

TEST(AnswerParser, MalformedCallsAreDroppedAndCountedAndTheOthersStay) {
  const std::string good = Invoke("good", TextParameter("k", "v"));
  const std::string head = Open("invoke name=\"f\"");
  const std::string open = Open("parameter name=\"k\" string=\"true\"");
  const std::string kCases[] = {
      Invoke("f", TextParameter("k", "1") + TextParameter("k", "2")),
      Invoke("f", JsonParameter("k", "{\"a\":")),
      Invoke("f", JsonParameter("k", "")),
      Invoke("f", JsonParameter("k", "NaN")),
      Invoke("f", "text"),
      Invoke("f", Open("other")),
      Invoke("f", Open("parameter name=\"k\"") + "v" + Close("parameter")),
      Invoke("f", Open("parameter string=\"true\"") + "v" + Close("parameter")),
      Invoke("f", open + "v</think>" + Close("parameter")),
      Invoke("f", open + "v" + kM + Close("parameter")),
      Invoke("f", open + "not closed"),
      Invoke("f",
             open + "v" + Open("parameter name=\"l\" string=\"true\"") + "w" + Close("parameter")),
      Invoke("a::b::c", ""),
      Invoke("::c", ""),
      Open("invoke") + Close("invoke"),
      Open("invoke id=\"f\"") + Close("invoke"),
      head,
      head + open + "v" + Close("parameter"),
  };
  for (const std::string& bad : kCases) {
    const std::string text = StrCat("x", Block(StrCat(good, "\n", bad, "\n", good)), kEos);
    const ParsedAnswer answer = ParseAllWays(text, false);
    EXPECT_EQ(answer.calls.size(), 2u) << text;
    EXPECT_EQ(answer.content, "x") << text;
    EXPECT_EQ(answer.num_malformed, 1) << text;
    EXPECT_FALSE(answer.first_problem.empty()) << text;
  }
}

TEST(AnswerParser, ReportedArgumentsCanBeReadAgainHoweverDeepTheyAre) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  const ParsedAnswer answer =
      ParseAllWays(Invoke("f", JsonParameter("k", nested(kMaxJsonDepth - 1))) +
                       Invoke("g", JsonParameter("k", nested(kMaxJsonDepth))),
                   false);
  ASSERT_EQ(answer.calls.size(), 1u);
  EXPECT_TRUE(ParseJson(answer.calls[0].arguments).ok());
  EXPECT_EQ(answer.num_malformed, 1);
}

TEST(AnswerParser, TheFirstProblemIsOneLine) {
  const std::string twice = TextParameter("a\nb", "1") + TextParameter("a\nb", "2");
  EXPECT_EQ(ParseAllWays(Invoke("f", twice), false).first_problem,
            "the parameter a\\nb occurs twice");
}

TEST(AnswerParser, TextAfterAMalformedCallStays) {
  const std::string open = Open("parameter name=\"k\" string=\"true\"");
  for (const std::string& bad :
       {Open("invoke") + Close("invoke"), Invoke("f", Open("parameter") + "v" + Close("parameter")),
        Invoke("f", open + "v"), Invoke("f", "text")}) {
    for (const std::string& text : {StrCat("a", Block(bad), "b"), StrCat("a\n\n", bad, "\nb")}) {
      const ParsedAnswer answer = ParseAllWays(text, false);
      EXPECT_EQ(answer.content, "a\n\nb") << text;
      EXPECT_EQ(answer.num_malformed, 1) << text;
    }
  }
}

TEST(AnswerParser, AClosingTagAloneDoesNotEndTheThinking) {
  for (const std::string_view name : {"calls", "invoke", "parameter"}) {
    const ParsedAnswer answer = ParseAllWays("I mean " + Close(name) + "so</think>Yes", true);
    EXPECT_EQ(answer.reasoning, "I mean so") << name;
    EXPECT_EQ(answer.content, "Yes") << name;
  }
}

TEST(AnswerParser, UnknownTokensMayBeMixedWithKnownOnes) {
  const ParsedAnswer answer =
      ParseAnswer({{kUnknownToken, "a</thi"}, {kOrdinaryToken, "nk>b"}}, AnswerTokens(), false);
  EXPECT_EQ(answer.content, "a</think>b");
}

TEST(AnswerParser, TokensOfATokenizerWithoutThemAreNamed) {
  const auto tokenizer = Tokenizer::Load(RealDisk(), DI_SOURCE_DIR "/tools/tiny/tokenizer.json");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const StatusOr<AnswerTokens> tokens = AnswerTokens::Of(**tokenizer);
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ((*tokenizer)->TokenText(tokens->dsml), kDsmlToken);
  EXPECT_EQ((*tokenizer)->TokenText(tokens->eos), kEosToken);
}

}  // namespace
}  // namespace deepinfer
