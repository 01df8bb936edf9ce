#include "tokens/grammar.h"

#include "tokens/dfa.h"
#include "tokens/grammar_test_util.h"

namespace deepinfer {
namespace {

using Kind = StructuredOutput::Kind;

std::shared_ptr<const Grammar> OfRegex(std::string text) {
  return CompileSmall({.kind = Kind::kRegex, .text = std::move(text)});
}
std::shared_ptr<const Grammar> OfGrammar(std::string text) {
  return CompileSmall({.kind = Kind::kGrammar, .text = std::move(text)});
}
Status Check(Kind kind, std::string text) {
  return CheckStructuredOutput({.kind = kind, .text = std::move(text)});
}

TEST(Grammar, ARegexMatchesTheWholeOutput) {
  const auto grammar = OfRegex("he(llo)?|a{2,3}");
  EXPECT_TRUE(Takes(grammar, "hello"));
  EXPECT_TRUE(Takes(grammar, "he"));
  EXPECT_TRUE(Takes(grammar, "aaa"));
  EXPECT_FALSE(Takes(grammar, "hell"));
  EXPECT_FALSE(Takes(grammar, "aaaa"));
}

// All short texts against what the expression says, where the library has been wrong.
TEST(Grammar, ExpressionsMeanWhatTheySay) {
  for (const std::string regex :
       {"(b{1,2}|b)", "(cb*|b)?", "(ab*|c){2,}", "a?(b|bc*)?", "(a{0,3}|b(a|ab?))", "(b|bb*c){1,3}",
        "(a|(b|b)a{1,2}|ab{0,2})", "[bc](b|ba|b{0,3})", "((a{1,2}){1,2}|a|b{0,2})"}) {
    const auto grammar = OfRegex(regex);
    const auto wanted = Dfa::Of(ParseRegex(regex, RegexMatch::kWhole).value()).value();
    std::vector<std::string> texts{""};
    for (size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(Takes(grammar, texts[i]), wanted.Matches(texts[i])) << regex << ": " << texts[i];
      if (texts[i].size() == 5) continue;
      for (const char c : {'a', 'b', 'c'}) texts.push_back(texts[i] + c);
    }
  }
}

TEST(Grammar, MasksCountTokensByTheirBytesAndNeverControlTokens) {
  GrammarMatcher matcher(
      OfRegex("(hello| wor|<think>|\xEF\xBD\x9C"
              "DSML\xEF\xBD\x9C)"));
  const std::vector<uint32_t> mask = MaskOf(matcher);
  std::vector<int32_t> allowed;
  for (int32_t id = 0; id < SmallVocabulary()->vocab_size(); ++id) {
    if (Allows(mask, id)) allowed.push_back(id);
  }
  const auto byte = [](unsigned char c) { return kSmallByteId + c; };
  // "he", "hell", "hello", " w", " wor" are merges 0, 2, 3, 4, 6. Neither <think> nor the marker.
  EXPECT_EQ(allowed, (std::vector<int32_t>{byte(' '), byte('<'), byte('h'), byte(0xEF),
                                           kSmallMergeId, kSmallMergeId + 2, kSmallMergeId + 3,
                                           kSmallMergeId + 4, kSmallMergeId + 6}));
  EXPECT_FALSE(matcher.Accept(3));
  EXPECT_FALSE(matcher.Accept(kSmallMarker));
}

TEST(Grammar, EndIdsAreAllowedExactlyWhereTheGrammarMayEnd) {
  GrammarMatcher matcher(OfRegex("aa?"));
  EXPECT_FALSE(matcher.Accept(kSmallEnd));
  EXPECT_TRUE(matcher.Accept(kSmallByteId + 'a'));
  EXPECT_TRUE(Allows(MaskOf(matcher), kSmallEnd));
  EXPECT_TRUE(matcher.Accept(kSmallEnd));
  EXPECT_TRUE(matcher.ended());
  EXPECT_FALSE(matcher.Accept(kSmallByteId + 'a'));
  matcher.Rollback(1);
  EXPECT_FALSE(matcher.ended());
  EXPECT_TRUE(matcher.Accept(kSmallByteId + 'a'));
}

TEST(Grammar, ASerializedGrammarTakesTheSame) {
  const auto grammar = CompileSmall({.kind = Kind::kJsonObject});
  const auto text = grammar->Serialize();
  ASSERT_TRUE(text.ok()) << text.status();
  const auto read = Grammar::Deserialize(*text, SmallVocabulary());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(Takes(*read, R"({"a": [1, {"b": null}]})"));
  EXPECT_FALSE(Takes(*read, R"({"a": [1, {"b": nul}]})"));
  EXPECT_EQ(Grammar::Deserialize("{}", SmallVocabulary()).status().code(), StatusCode::kDataLoss);
}

// Built with link-time optimisation by g++ 12, the library crashes on both.
TEST(Grammar, NumbersInUntypedValuesDoNotCrash) {
  const auto object = CompileSmall({.kind = Kind::kJsonObject});
  EXPECT_TRUE(Takes(object, R"({"a": 1})"));
  const auto array = CompileSmall({.kind = Kind::kJsonSchema, .text = R"({"type":"array"})"});
  EXPECT_TRUE(Takes(array, "[1]"));
}

TEST(Grammar, OnlyUtf8ComesOut) {
  for (const auto& grammar :
       {OfRegex(".*"), OfGrammar("root ::= [^a]*"), CompileSmall({.kind = Kind::kJsonObject})}) {
    for (const std::string_view bad : {"\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF",
                                       "\xED\xA0\x80", "\xF0\x80\x80\x80", "\xF0\x8F\xBF\xBF",
                                       "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\x80", "\xFF"}) {
      EXPECT_FALSE(Takes(grammar, bad)) << OneLine(bad);
      EXPECT_FALSE(Takes(grammar, StrCat("{\"", bad, "\": 1}"))) << ByteIds(bad)[0] - kSmallByteId;
    }
    for (const std::string_view good :
         {"\u0080", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff"}) {
      EXPECT_TRUE(Takes(grammar, StrCat("{\"", good, "\": 1}"))) << good;
    }
  }
}

TEST(Grammar, WhiteSpaceIsBounded) {
  const auto object = CompileSmall({.kind = Kind::kJsonObject});
  EXPECT_TRUE(Takes(object, "{\n  \"a\": 1,\n  \"b\": [ 1, 2 ]\n}"));
  EXPECT_FALSE(Takes(object, "{  \"a\": 1}"));
  EXPECT_FALSE(Takes(object, "{\n\n\"a\": 1}"));
  EXPECT_FALSE(Takes(object, "{\"a\":  1}"));
  EXPECT_FALSE(Takes(object, "{\n" + std::string(25, ' ') + "}"));
  EXPECT_FALSE(Takes(object, " {}"));
}

TEST(Grammar, AGrammarOfRules) {
  const auto grammar = OfGrammar(
      "# a list\n"
      "root ::= item (\",\" item){0,2}\n"
      "item ::= [a-c]+ | \"\\\"\" [^\"\\n]* \"\\\"\"\n"
      "       | \"\\x41\" . tail\n"
      "tail ::= \"\" | tail \"!\"\n");
  EXPECT_TRUE(Takes(grammar, "ab,\"x y\",A?!!!"));
  EXPECT_TRUE(Takes(grammar, "A\xE2\x82\xAC"));
  EXPECT_FALSE(Takes(grammar, "a,b,c,a"));
  EXPECT_FALSE(Takes(grammar, "a,"));
  EXPECT_FALSE(Takes(grammar, "d"));
}

struct BadText {
  Kind kind;
  std::string text, message;
};

// case_27: one clear line each, and no crash.
TEST(Grammar, Case27BrokenTextIsRefusedWithOneLine) {
  const BadText all[] = {
      {Kind::kRegex, "(", "regular expression, byte 1: expected ')'"},
      {Kind::kRegex, "a)", "regular expression, byte 1: unmatched ')'"},
      {Kind::kRegex, "[a", "regular expression, byte 2: expected ']'"},
      {Kind::kRegex, "*a", "regular expression, byte 0: nothing to repeat in front of '*'"},
      {Kind::kRegex, "a{3,2}",
       "regular expression, byte 6: a repetition whose end comes before its start"},
      {Kind::kRegex, "a\\", "regular expression, byte 2: nothing behind the last '\\'"},
      {Kind::kGrammar, "root ::= item", "grammar, line 1: rule 'item' is not defined"},
      {Kind::kGrammar, "item ::= \"a\"", "grammar: there is no rule 'root'"},
      {Kind::kGrammar, "root ::= \"a", "grammar, line 1: expected '\"' at the end of the literal"},
      {Kind::kGrammar, "root ::= (\"a\"\n", "grammar, line 2: expected ')'"},
      {Kind::kGrammar, "root ::= i\u00e9", "grammar, line 1: unexpected '\u00e9'"},
      {Kind::kGrammar, "root ::= \u00e9", "grammar, line 1: unexpected '\u00e9'"},
      {Kind::kGrammar, "root ::= \"\\\u00e9\"", "grammar, line 1: unknown escape '\\\u00e9'"},
      {Kind::kGrammar, "root ::= Token(5)",
       "grammar, line 1: 'Token(...)' is not part of the notation"},
      {Kind::kGrammar, "root ::= root", "grammar: rule 'root': nothing can satisfy it"},
      {Kind::kGrammar, "", "grammar: there is no rule 'root'"},
      {Kind::kJsonSchema, R"("{\"type\": \"object\"}")",
       "the schema is a string, expected an object"},
      {Kind::kJsonSchema, R"({"type": "xml"})",
       "at /: keyword 'type' is a string, expected a type of JSON or an array of them"},
      {Kind::kJsonSchema, R"({"properties": []})",
       "at /: keyword 'properties' is an array, expected an object of schemas"},
      {Kind::kJsonSchema, R"({"$ref": "#/$defs/a"})",
       "at /: keyword '$ref': there is no '#/$defs/a' in the schema"},
      {Kind::kJsonSchema, R"({"$ref": "#"})", "at /: the schema refers to itself without an end"},
      {Kind::kJsonSchema, R"({"type": "string", "enum": [1]})", "nothing can satisfy it"},
  };
  for (const BadText& bad : all) {
    const Status status = Check(bad.kind, bad.text);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << bad.text;
    EXPECT_EQ(MessageOf(status), bad.message) << bad.text;
  }
  EXPECT_EQ(Check(Kind::kJsonSchema, "{").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Check(Kind::kJsonSchema, std::string(3 << 20, ' ')).code(),
            StatusCode::kInvalidArgument);
}

// case_27: expressions that explode elsewhere are either small here or refused.
TEST(Grammar, Case27SizeBombs) {
  const auto nested = OfRegex("(a+)+$");
  EXPECT_TRUE(Takes(nested, std::string(40, 'a')));
  EXPECT_FALSE(Takes(nested, std::string(40, 'a') + "b"));
  const Status bomb = Check(Kind::kRegex, "((a{1000}){1000}){1000}");
  EXPECT_EQ(bomb.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(MessageOf(bomb),
            "regular expression: with its repetitions written out it has more than 50000 "
            "characters, which is not supported");
  EXPECT_EQ(Check(Kind::kRegex, std::string(500, '(') + "a" + std::string(500, ')')).code(),
            StatusCode::kUnimplemented);
  // Left recursion is nothing special.
  EXPECT_TRUE(Takes(OfGrammar("root ::= root \"+\" root | \"1\""), "1+1+1"));
}

TEST(Grammar, WhatIsNotRegularIsRefusedByName) {
  const std::pair<std::string, std::string> all[] = {
      {"(?=a)b", "look-ahead"},
      {"(?!a)b", "look-ahead"},
      {"(?<=a)b", "look-behind"},
      {"(?<!a)b", "look-behind"},
      {"(a)\\1", "back-reference"},
      {"(?<n>a)\\k<n>", "back-reference"},
      {"a\\bc", "word boundary"},
      {"a^b", "anchor '^'"},
      {"a$b", "something behind '$'"},
      {"(?i)a", "the group '(?i'"},
      {"(?\u00e9)", "the group '(?\u00e9'"},
      {"\\p{L}", "the escape '\\p'"},
      {"a++", "possessive"},
  };
  for (const auto& [text, what] : all) {
    const Status status = Check(Kind::kRegex, text);
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented) << text;
    EXPECT_NE(MessageOf(status).find(what), std::string::npos) << status;
  }
}

TEST(Grammar, CharacterClassesAgreeWithBothDialects) {
  const auto digit = OfRegex("\\d"), no_digit = OfRegex("\\D"), no_word = OfRegex("[^\\w]");
  EXPECT_TRUE(Takes(digit, "7"));
  EXPECT_FALSE(Takes(digit, "\u0667"));     // a digit to Python
  EXPECT_FALSE(Takes(no_digit, "\u0667"));  // none to ECMAScript
  EXPECT_TRUE(Takes(no_digit, "\u00e9"));
  EXPECT_FALSE(Takes(no_word, "\u00e9"));
  EXPECT_TRUE(Takes(no_word, "\u20ac"));
  EXPECT_TRUE(Takes(OfRegex("[\\]\\-x-z]"), "-"));
  EXPECT_TRUE(Takes(OfRegex("\\u{1F600}|\\uD83D\\uDE01|\\x41"), "\U0001F601"));
}

}  // namespace
}  // namespace deepinfer
