#include "tokens/prompt_texts.h"

#include <gtest/gtest.h>

#include "base/simulated_disk.h"
#include "tokens/python_constants.h"

namespace deepinfer {
namespace {

constexpr std::string_view kPython = R"py(import json
TOOLS_TEMPLATE = """Tools: "<{dsml_token}{tc_block_name}>"
{thinking_start_token}{{x}}{thinking_end_token}\
{tool_schemas}
end"""

def render(tools):
    TOOLS_TEMPLATE == tools

response_format_template: str = (
    "Schema:\n{schema}"
)
)py";
constexpr std::string_view kJson =
    R"({"format": 1, "tools_template": "T {tool_schemas} t", "response_format_template": "R {schema}"})";

std::string ErrorOf(const StatusOr<PromptTexts>& texts) {
  EXPECT_FALSE(texts.ok());
  return MessageOf(texts.status());
}

TEST(PromptTexts, AreReadFromPythonSource) {
  const StatusOr<PromptTexts> texts = ParseEncodingPy(kPython, "encoding.py");
  ASSERT_TRUE(texts.ok()) << texts.status();
  using Kind = PromptSegment::Kind;
  EXPECT_EQ(texts->tools.before, (std::vector<PromptSegment>{{Kind::kText, "Tools: \"<"},
                                                             {Kind::kControl, "｜DSML｜"},
                                                             {Kind::kText, " calls>\"\n"},
                                                             {Kind::kControl, "<think>"},
                                                             {Kind::kText, "{x}"},
                                                             {Kind::kControl, "</think>"}}));
  EXPECT_EQ(TextOf(texts->tools.after), "\nend");
  EXPECT_EQ(TextOf(texts->response_format.before), "Schema:\n");
  EXPECT_TRUE(texts->response_format.after.empty());
}

TEST(PromptTexts, BrokenFilesAreRefusedByName) {
  const std::pair<std::string_view, std::string_view> kCases[] = {
      {"[]", "f: expected an object, found an array"},
      {"{", "f: not JSON"},
      {R"({"format": 2})", "f.format: expected 1, found \"2\""},
      {R"({"format": 1})", "f.tools_template: expected a string, found nothing"},
      {R"({"format": 1, "tools_template": "x", "response_format_template": "{schema}"})",
       "f: tools template: expected the field {tool_schemas}, found none"},
      {R"({"format": 1, "tools_template": "{tool_schemas}{tool_schemas}",
          "response_format_template": "{schema}"})",
       "f: tools template: expected the field {tool_schemas} once, found it twice"},
      {R"({"format": 1, "tools_template": "{tool_schemas}{odd}",
          "response_format_template": "{schema}"})",
       "f: tools template: unknown field {odd}"},
      {R"({"format": 1, "tools_template": "{tool_schemas}", "response_format_template": "{schema}}"})",
       "f: response format template: expected {field}, or a brace written twice"},
  };
  for (const auto& [json, error] : kCases) {
    EXPECT_EQ(ErrorOf(ParsePromptTextsJson(json, "f")).find(error), 0u)
        << ErrorOf(ParsePromptTextsJson(json, "f"));
  }
  EXPECT_EQ(ErrorOf(ParseEncodingPy("x = 1", "f")),
            "f: expected a line that begins with TOOLS_TEMPLATE = and a string, found none");
  EXPECT_EQ(ErrorOf(ParseEncodingPy("TOOLS_TEMPLATE = '{tool_schemas}\xff'\n"
                                    "response_format_template = '{schema}'\n",
                                    "f")),
            "f: tools template: expected UTF-8, found other bytes");
}

TEST(PromptTexts, PythonStringsOfEveryKindAndNothingElse) {
  const std::pair<std::string_view, std::string_view> kGood[] = {
      {"A = 'x'\n", "x"},
      {"A='''x\n'y'''", "x\n'y"},
      {"A: str = (\n 'x' \"y\"\n '\\\\z' )  # why\n", "xy\\z"},
      {"A = 'old'\nA == 'x'\nAB = 'z'\n A = 'inner'\nA = 'new'", "new"},
      {"A = \"a\\\nb\\t\\\"\"\r\n", "ab\t\""},
  };
  for (const auto& [source, value] : kGood) {
    const StatusOr<std::string> found = PythonStringConstant(source, "A");
    ASSERT_TRUE(found.ok()) << source << found.status();
    EXPECT_EQ(*found, value) << source;
  }
  for (const std::string_view source :
       {"A = r'x'", "A = f'x'", "A = 1", "A = 'x' + y", "A = ('x'", "A = 'x", "A = '''x'",
        "A =", "A = 'x\n'", "A = '\\x41'", "A", "A = 'x\\", ""}) {
    EXPECT_FALSE(PythonStringConstant(source, "A").ok()) << source;
  }
}

TEST(PromptTexts, OneFileOfEncodingIsEnough) {
  SimulatedDisk disk;
  EXPECT_EQ(ErrorOf(LoadPromptTexts(disk, "model")),
            "chat prompts need the checkpoint's own texts: expected model/encoding/encoding.py or "
            "model/encoding/prompt_texts.json, found neither; copy the folder encoding/ of the "
            "model's release there (plain text prompts work without)");
  ASSERT_TRUE(disk.WriteText("model/encoding/prompt_texts.json", kJson).ok());
  StatusOr<PromptTexts> texts = LoadPromptTexts(disk, "model");
  ASSERT_TRUE(texts.ok()) << texts.status();
  EXPECT_EQ(TextOf(texts->tools.before), "T ");
  ASSERT_TRUE(disk.WriteText("model/encoding/encoding.py", kPython).ok());
  texts = LoadPromptTexts(disk, "model");
  ASSERT_TRUE(texts.ok()) << texts.status();
  EXPECT_EQ(TextOf(texts->tools.after), "\nend");
}

TEST(PromptTexts, BesideTheOfficialTokenizerOnlyTheOfficialTextsDo) {
  SimulatedDisk disk;
  ASSERT_TRUE(disk.WriteText("m/encoding/prompt_texts.json", kJson).ok());
  EXPECT_EQ(LoadPromptTexts(disk, "m")->refusal, "");
  EXPECT_EQ(LoadPromptTexts(disk, "m", {.official = true, .unchecked = true})->refusal, "");
  const std::string refusal = LoadPromptTexts(disk, "m", {.official = true})->refusal;
  EXPECT_EQ(
      refusal.find("m/encoding: the tools text before the schemas is not DeepSeek's: expected "
                   "884 bytes with SHA-256 2ae2ff83"),
      0u)
      << refusal;
  EXPECT_NE(refusal.find("--encoding-unchecked"), std::string::npos);
}

}  // namespace
}  // namespace deepinfer
