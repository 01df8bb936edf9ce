// Structured output of `deepinfer generate` from end to end: flags, JSONL fields, chats.
#include <functional>
#include <nlohmann/json.hpp>
#include <regex>

#include "command_runner.h"

namespace deepinfer {
namespace {

using nlohmann::json;
using testing::CommandResult;
using testing::CommandTest;
using testing::Lines;
using testing::Quote;

using Structured = CommandTest;

TEST_F(Structured, FlagsSayWhatTheOutputMatches) {
  const std::string command = "deepinfer generate --prompt Hello --seed 1 ";
  EXPECT_TRUE(std::regex_match(Output(command + "--regex '[a-f]{8}'"), std::regex("[a-f]{8}\n")));
  EXPECT_TRUE(std::regex_match(Output(command + "--grammar 'root ::= \"<\" [xy]{2,9} \">\"'"),
                               std::regex("<[xy]{2,9}>\n")));
  const std::string schema = R"({"type":"object","properties":{"n":{"enum":[1,2]}},)"
                             R"("required":["n"],"additionalProperties":false})";
  Write("schema.json", schema);
  for (const std::string& given : {Quote(schema), std::string("schema.json")}) {
    const json answer = json::parse(Output(command + "--json-schema " + given));
    EXPECT_TRUE(answer["n"] == 1 || answer["n"] == 2) << answer;
  }
  // As many as it may say: the beginning of an object.
  const std::string object = Output(command + "--json-object --max-tokens 9");
  EXPECT_EQ(object.substr(0, 1), "{");
}

TEST_F(Structured, WhatCannotBeIsNamed) {
  const std::string command = "deepinfer generate --prompt Hello --seed 1 ";
  EXPECT_NE(Error(command + "--regex '('", 1).find("regular expression"), std::string::npos);
  const std::string refused =
      Error(command + R"(--json-schema '{"type":"array","contains":{}}')", 1);
  EXPECT_NE(refused.find("contains"), std::string::npos) << refused;
  EXPECT_NE(Error(command + "--regex a --grammar-workers 0", 1).find("grammar_workers"),
            std::string::npos);
  EXPECT_NE(Error(command + "--json-schema no.json", 1).find("no.json"), std::string::npos);
}

// The smoke test of a peer whose every schema ended after a token.
TEST_F(Structured, case_30_OrdinarySchemasEndAndValidate) {
  struct Try {
    std::string schema;
    std::function<bool(const json&)> valid;
  };
  const std::vector<Try> tries = {
      {R"({"type":"boolean"})", [](const json& v) { return v.is_boolean(); }},
      {R"({"type":"null"})", [](const json& v) { return v.is_null(); }},
      {R"({"enum":["red","green",3]})",
       [](const json& v) { return v == "red" || v == "green" || v == 3; }},
      {R"({"const":{"a":[1]}})", [](const json& v) { return v == json::parse(R"({"a":[1]})"); }},
      {R"({"type":"integer","minimum":1,"maximum":12})",
       [](const json& v) { return v.is_number_integer() && v >= 1 && v <= 12; }},
      {R"({"type":"string","maxLength":5})", [](const json& v) { return v.is_string(); }},
      {R"({"type":"string","pattern":"^[a-c]{2,4}$"})",
       [](const json& v) {
         return std::regex_match(v.get<std::string>(), std::regex("[a-c]{2,4}"));
       }},
      {R"({"type":"string","format":"date"})",
       [](const json& v) {
         return std::regex_match(v.get<std::string>(), std::regex("\\d{4}-\\d\\d-\\d\\d"));
       }},
      {R"({"type":"array","items":{"type":"boolean"},"minItems":2,"maxItems":4})",
       [](const json& v) { return v.is_array() && v.size() >= 2 && v.size() <= 4; }},
      {R"({"type":"array","prefixItems":[{"const":1},{"type":"null"}],"minItems":2,"items":false})",
       [](const json& v) { return v == json::parse("[1,null]"); }},
      {R"({"type":"object","properties":{"a":{"type":"boolean"},"b":{"type":"null"}},)"
       R"("required":["a","b"],"additionalProperties":false})",
       [](const json& v) { return v.at("a").is_boolean() && v.at("b").is_null(); }},
      {R"({"type":"object","properties":{"a":{"type":"boolean"}},"additionalProperties":false})",
       [](const json& v) { return v.is_object() && v.size() <= 1; }},
      {R"({"anyOf":[{"const":"x"},{"type":"boolean"}]})",
       [](const json& v) { return v == "x" || v.is_boolean(); }},
      {R"({"$defs":{"t":{"enum":[7,8]}},"type":"array","items":{"$ref":"#/$defs/t"},"minItems":1,)"
       R"("maxItems":3})",
       [](const json& v) { return v.is_array() && (v[0] == 7 || v[0] == 8); }},
      {R"({"type":["null","boolean"]})",
       [](const json& v) { return v.is_null() || v.is_boolean(); }}};
  std::string lines;
  for (const Try& t : tries) {
    lines += json{{"prompt", "Hello"},
                  {"seed", 1},
                  {"max_tokens", 200},
                  {"guided_json", json::parse(t.schema)}}
                 .dump() +
             "\n";
  }
  Write("in.jsonl", lines);
  const std::vector<std::string> answers = Lines(Output("deepinfer generate --input in.jsonl"));
  ASSERT_EQ(answers.size(), tries.size());
  for (size_t i = 0; i < tries.size(); ++i) {
    SCOPED_TRACE(tries[i].schema);
    const json answer = json::parse(answers[i]);
    const json& choice = answer.contains("choices") ? answer["choices"][0] : answer;
    EXPECT_EQ(choice["finish_reason"], "stop") << answer;
    const json value = json::parse(choice["text"].get<std::string>(), nullptr, false);
    ASSERT_FALSE(value.is_discarded()) << answer;
    EXPECT_TRUE(tries[i].valid(value)) << value;
  }
}

TEST_F(Structured, JsonlFieldsAndABrokenLineAmongThem) {
  Write("in.jsonl", R"({"prompt":"a","guided_regex":"[ab]{5}"}
{"prompt":"a","guided_regex":"("}
{"prompt":"a","guided_grammar":"root ::= \"yes\" | \"no\""}
{"prompt":"a","structured_outputs":{"regex":"c{3}"}}
{"prompt":"a","response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"const":5}}}}
)");
  const CommandResult result = Shell("deepinfer generate --input in.jsonl");
  EXPECT_EQ(result.exit_code, 1);
  const std::vector<std::string> lines = Lines(result.out);
  ASSERT_EQ(lines.size(), 5u) << result.err;
  const auto text = [&](size_t i) {
    const json answer = json::parse(lines[i]);
    const json& choice = answer.contains("choices") ? answer["choices"][0] : answer;
    return choice["text"].get<std::string>();
  };
  EXPECT_TRUE(std::regex_match(text(0), std::regex("[ab]{5}")));
  EXPECT_EQ(json::parse(lines[1])["error"]["code"], "invalid_argument");
  EXPECT_TRUE(text(2) == "yes" || text(2) == "no");
  EXPECT_EQ(text(3), "ccc");
  EXPECT_EQ(text(4), "5");
}

// Byte b is token 16 + b, 7 ends thinking.
TEST_F(Structured, case_21_InAChatThinkingIsFreeAndTheContentValid) {
  std::string ids;
  for (const char c : std::string("why")) ids += std::to_string(16 + c) + ",";
  ids += "7,100,100,100,100";  // what would come without a grammar
  const json answer =
      json::parse(Output("deepinfer generate --chat --prompt Hi --json --seed 1 --json-schema "
                         "'{\"enum\":[\"no\",true]}' --forced-token-ids " +
                         ids));
  const json& choice = answer["choices"][0];
  EXPECT_EQ(choice["reasoning_content"], "why");
  EXPECT_TRUE(choice["content"] == "\"no\"" || choice["content"] == "true") << choice;
  EXPECT_EQ(choice["finish_reason"], "stop");
}

}  // namespace
}  // namespace deepinfer
