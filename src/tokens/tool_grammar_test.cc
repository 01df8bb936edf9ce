#include "tokens/tool_grammar.h"

#include "tokens/grammar_test_util.h"

namespace deepinfer {
namespace {

constexpr std::string_view kWeather =
    R"({"name": "weather", "strict": true, "parameters": {"type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1},
                       "unit": {"enum": ["C", "F"]}},
        "required": ["city"]}})";

StructuredOutput Calls(std::string_view tools, std::string_view rest = "", bool trigger = false) {
  StructuredOutput structured{.kind = StructuredOutput::Kind::kToolCalls,
                              .text = StrCat("{\"tools\": [", tools, "]", rest, "}")};
  if (trigger) structured.trigger_token_ids = {kSmallMarker};
  return structured;
}

// In the markup, \1 is the marker.
std::string Parameter(std::string_view name, std::string_view is_string, std::string_view value) {
  return StrCat("<\1 parameter name=\"", name, "\" string=\"", is_string, "\">", value,
                "</\1 parameter>");
}
std::string Invoke(std::string_view name, std::string_view parameters) {
  return StrCat("<\1 invoke name=\"", name, "\">\n", parameters, "\n</\1 invoke>\n");
}
std::string Block(std::string_view invokes) {
  return StrCat("\n\n<\1 calls>\n", invokes, "</\1 calls>");
}
const std::string kParis = Parameter("city", "true", "Paris \"<x>\"");

TEST(ToolGrammar, RequiredCallsBeginTheOutputAndKeepToTheSchema) {
  const auto grammar = CompileSmall(Calls(kWeather, R"(, "required": true)"));
  EXPECT_TRUE(Takes(grammar, Block(Invoke("weather", kParis))));
  EXPECT_TRUE(
      Takes(grammar, Block(Invoke("weather", kParis + "\n" + Parameter("days", "false", "3") +
                                                 "\n" + Parameter("unit", "true", "C")))));
  EXPECT_TRUE(Takes(grammar, Block(Invoke("weather", kParis) + Invoke("weather", kParis))));
  EXPECT_FALSE(Takes(grammar, "Hello"));
  EXPECT_FALSE(Takes(grammar, Block("")));
  EXPECT_FALSE(Takes(grammar, Block(Invoke("other", kParis))));
  EXPECT_FALSE(Takes(grammar, Block(Invoke("weather", ""))));
  EXPECT_FALSE(Takes(grammar, Block(Invoke("weather", Parameter("city", "false", "1")))));
  EXPECT_FALSE(
      Takes(grammar, Block(Invoke("weather", kParis + "\n" + Parameter("days", "false", "0")))));
  EXPECT_FALSE(
      Takes(grammar, Block(Invoke("weather", kParis + "\n" + Parameter("unit", "true", "K")))));
  EXPECT_FALSE(
      Takes(grammar, Block(Invoke("weather", kParis + "\n" + Parameter("more", "true", "x")))));
}

TEST(ToolGrammar, ParametersComeInAnyOrderEachOnce) {
  const auto grammar = CompileSmall(Calls(kWeather, R"(, "required": true)"));
  const std::string days = StrCat("\n", Parameter("days", "false", "3"));
  const std::string unit = Parameter("unit", "true", "C"), city = StrCat("\n", kParis);
  EXPECT_TRUE(Takes(grammar, Block(Invoke("weather", unit + city))));
  EXPECT_TRUE(Takes(grammar, Block(Invoke("weather", unit + city + days))));
  EXPECT_TRUE(Takes(grammar, Block(Invoke("weather", unit + days + city))));
  EXPECT_FALSE(Takes(grammar, Block(Invoke("weather", unit + days))));  // no city
  EXPECT_FALSE(Takes(grammar, Block(Invoke("weather", kParis + city))));
  EXPECT_FALSE(Takes(grammar, Block(Invoke("weather", kParis + days + days))));
}

TEST(ToolGrammar, ManyParametersComeInTheOrderOfTheSchema) {
  const auto grammar = CompileSmall(Calls(
      R"({"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"},
          "b": {"type": "integer"}, "c": {"type": "integer"}, "d": {"type": "integer"},
          "e": {"type": "integer"}, "f": {"type": "integer"}}}})",
      R"(, "required": true)"));
  const std::string a = Parameter("a", "false", "1"), f = Parameter("f", "false", "6");
  EXPECT_TRUE(Takes(grammar, Block(Invoke("f", a + "\n" + f))));
  EXPECT_FALSE(Takes(grammar, Block(Invoke("f", f + "\n" + a))));
}

TEST(ToolGrammar, OnlyTheControlTokenIsTheMarker) {
  const auto grammar = CompileSmall(Calls(kWeather, R"(, "required": true)"));
  std::string spelled = Block(Invoke("weather", kParis));
  for (size_t at; (at = spelled.find('\1')) != std::string::npos;) {
    spelled.replace(at, 1, kDsmlToken);
  }
  EXPECT_FALSE(Takes(grammar, spelled));
  // In a text the spelling is text.
  EXPECT_TRUE(Takes(grammar, Block(Invoke("weather", Parameter("city", "true",
                                                               StrCat("</", kDsmlToken, " x"))))));
}

TEST(ToolGrammar, BehindATriggerTheBlockGoesOnFromItsMarker) {
  const auto grammar = CompileSmall(Calls(kWeather, "", /*trigger=*/true));
  const std::string block = Block(Invoke("weather", kParis));
  EXPECT_TRUE(Takes(grammar, block.substr(block.find('\1') + 1)));
  EXPECT_FALSE(Takes(grammar, block));
}

TEST(ToolGrammar, WithoutParallelCallsThereIsOne) {
  const auto grammar = CompileSmall(Calls(kWeather, R"(, "required": true, "parallel": false)"));
  EXPECT_TRUE(Takes(grammar, Block(Invoke("weather", kParis))));
  EXPECT_FALSE(Takes(grammar, Block(Invoke("weather", kParis) + Invoke("weather", kParis))));
}

TEST(ToolGrammar, ContentOfASchemaOrABlock) {
  const auto grammar =
      CompileSmall(Calls(kWeather, R"(, "content": {"schema": {"type": "boolean"}})"));
  EXPECT_TRUE(Takes(grammar, "true"));
  EXPECT_TRUE(Takes(grammar, Block(Invoke("weather", kParis))));
  EXPECT_FALSE(Takes(grammar, "null"));
  const auto object = CompileSmall(Calls(kWeather, R"(, "content": {"json_object": true})"));
  EXPECT_TRUE(Takes(object, R"({"a": 1})"));
  EXPECT_FALSE(Takes(object, "[1]"));
}

TEST(ToolGrammar, ASchemaThatCannotBeEnforced) {
  constexpr std::string_view kLoose =
      R"({"name": "ns::f", "parameters": {"type": "object", "contains": {}}})";
  const auto grammar = CompileSmall(Calls(kLoose, R"(, "required": true)"));
  EXPECT_TRUE(Takes(grammar, Block(Invoke("ns::f", Parameter("any", "false", "[1, {}]") + "\n" +
                                                       Parameter("b c", "true", "text")))));
  EXPECT_TRUE(Takes(grammar, Block(Invoke("ns::f", ""))));
  EXPECT_FALSE(Takes(grammar, Block(Invoke("ns::f", Parameter("any", "false", "x")))));
  const std::string strict =
      Replaced(std::string(kLoose), "\"name\"", "\"strict\": true, \"name\"");
  const Status status = CheckStructuredOutput(Calls(strict));
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(MessageOf(status),
            "tools[0].parameters of 'ns::f': at /: keyword 'contains' is not supported");
}

TEST(ToolGrammar, BrokenRequestsAreRefused) {
  EXPECT_EQ(MessageOf(CheckStructuredOutput(Calls(""))), "tools: none, expected at least one");
  EXPECT_EQ(CheckStructuredOutput(Calls(R"({"name": "a\"b"})")).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckStructuredOutput(Calls("1")).code(), StatusCode::kInvalidArgument);
}

// A tool without a list of parameters takes any; with a list, those.
TEST(ToolGrammar, FreeParameters) {
  const std::string two = Parameter("b", "false", "[1, 2]") + "\n" + Parameter("a", "true", "x y");
  for (const std::string_view parameters :
       {"null", "{}", R"({"type": "object"})",
        R"({"type": "object", "properties": {}, "additionalProperties": true})"}) {
    const auto grammar = CompileSmall(
        Calls(StrCat(R"({"name": "f", "parameters": )", parameters, "}"), R"(, "required": true)"));
    EXPECT_TRUE(Takes(grammar, Block(Invoke("f", two)))) << parameters;
    EXPECT_TRUE(Takes(grammar, Block(Invoke("f", "")))) << parameters;
    EXPECT_FALSE(Takes(grammar, Block(Invoke("f", Parameter("b", "false", "x"))))) << parameters;
  }
  const auto numbers = CompileSmall(
      Calls(R"({"name": "f", "strict": true, "parameters": {"properties": {"a": {"const": "x y"}},
               "additionalProperties": {"type": "integer"}}})",
            R"(, "required": true)"));
  const std::string first = Parameter("a", "true", "x y");
  EXPECT_TRUE(Takes(numbers, Block(Invoke("f", first + "\n" + Parameter("n", "false", "1")))));
  EXPECT_FALSE(Takes(numbers, Block(Invoke("f", first + "\n" + Parameter("n", "true", "1")))));
  EXPECT_FALSE(Takes(numbers, Block(Invoke("f", first + "\n" + Parameter("a", "false", "1")))));
}

}  // namespace
}  // namespace deepinfer
