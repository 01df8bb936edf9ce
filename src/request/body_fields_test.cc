// What bodies may say, and how wrong ones are refused: chat, completions, tokens.
#include <gtest/gtest.h>

#include <set>

#include "request/api_fields.h"
#include "request/chat_request.h"
#include "request/completion_request.h"
#include "request/openapi.h"
#include "request/testing/api_fixture.h"
#include "request/token_fields.h"

namespace deepinfer::testing {
namespace {

const Request& SubmittedBy(ApiFixture& fixture, std::string_view members) {
  const auto reply = fixture.Chat(ChatBody(members));
  EXPECT_EQ(reply->status(), 200) << reply->body();
  return fixture.submitted();
}

TEST(ChatFields, AreRead) {
  ApiFixture fixture;
  const Request& r =
      SubmittedBy(fixture,
                  R"("max_tokens": 5, "temperature": 0.5, "top_p": 0.25, "top_k": 3, "min_p": 0.125,
         "repetition_penalty": 1.5, "presence_penalty": 1, "frequency_penalty": -1,
         "logit_bias": {"300": 2}, "seed": 9, "n": 2, "stop": ["a", "b"], "stop_token_ids": [301],
         "include_stop_str_in_output": true, "skip_special_tokens": false, "min_tokens": 2,
         "ignore_eos": true, "logprobs": true, "top_logprobs": 3, "prompt_logprobs": 1,
         "priority": 3, "banned_token_ids": [302], "forced_token_ids": [303], "unknown": {})");
  EXPECT_EQ(r.max_tokens, 5);
  EXPECT_EQ(r.sampling.temperature, 0.5);
  EXPECT_EQ(r.sampling.top_p, 0.25);
  EXPECT_EQ(r.sampling.top_k, 3);
  EXPECT_EQ(r.sampling.min_p, 0.125);
  EXPECT_EQ(r.sampling.repetition_penalty, 1.5);
  EXPECT_EQ(r.sampling.presence_penalty, 1);
  EXPECT_EQ(r.sampling.frequency_penalty, -1);
  EXPECT_EQ(r.sampling.logit_bias[0], std::pair(300, 2.0));
  EXPECT_EQ(r.seed, 9u);
  EXPECT_EQ(r.num_choices, 2);
  EXPECT_EQ(r.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(r.sampling.stop_token_ids, std::vector<int32_t>{301});
  EXPECT_TRUE(r.include_stop);
  EXPECT_FALSE(r.skip_special_tokens);
  EXPECT_EQ(r.sampling.min_tokens, 2);
  EXPECT_TRUE(r.sampling.ignore_eos);
  EXPECT_EQ(r.sampling.logprobs, 3);
  EXPECT_EQ(r.prompt_logprobs, 1);
  EXPECT_EQ(r.priority, -3);  // lower first here, higher first there
  EXPECT_EQ(r.sampling.banned_token_ids[0], 302);
  EXPECT_EQ(r.sampling.forced_token_ids, std::vector<int32_t>{303});
}

struct WrongBody {
  std::string_view members, param, word;
};

class WrongChat : public ::testing::TestWithParam<WrongBody> {};

TEST_P(WrongChat, IsRefusedNamingTheField) {
  ApiFixture fixture({.scripted = false});
  const auto reply = fixture.Chat(ChatBody(GetParam().members));
  EXPECT_EQ(reply->status(), 400) << GetParam().members << reply->body();
  const JsonValue error = Json(reply->body());
  EXPECT_EQ(TextAt(error, "error.param"), GetParam().param) << reply->body();
  EXPECT_EQ(TextAt(error, "error.type"), "invalid_request_error");
  EXPECT_NE(TextAt(error, "error.message").find(GetParam().word), std::string::npos)
      << reply->body();
  EXPECT_TRUE(fixture.engine.requests().empty());
}

INSTANTIATE_TEST_SUITE_P(
    Fields, WrongChat,
    ::testing::Values(
        WrongBody{R"("max_tokens": 5, "max_completion_tokens": 6)", "max_completion_tokens", "5"},
        WrongBody{R"("max_tokens": "5")", "max_tokens", "whole number"},
        WrongBody{R"("max_tokens": 0)", "max_tokens", "echo"},
        WrongBody{R"("temperature": 2.1)", "temperature", "0..2"},
        WrongBody{R"("temperature": "hot")", "temperature", "a number"},
        WrongBody{R"("top_logprobs": 2)", "top_logprobs", "logprobs"},
        WrongBody{R"("logprobs": true, "top_logprobs": 21)", "top_logprobs", "0..20"},
        WrongBody{R"("logprobs": 3)", "logprobs", "true or false"},
        WrongBody{
            R"("stop": ["1","2","3","4","5","6","7","8","9","a","b","c","d","e","f","g","h"])",
            "stop", "16"},
        WrongBody{R"("best_of": 2)", "best_of", "only 1"},
        WrongBody{R"("previous_response_id": "r")", "previous_response_id", "kept"},
        WrongBody{R"("functions": [])", "functions", "tools"},
        WrongBody{R"("modalities": ["text", "audio"])", "modalities", "audio"},
        WrongBody{R"("use_beam_search": true)", "use_beam_search", "beam"},
        WrongBody{R"("forced_token_ids": [1])", "forced_token_ids", "--scripted"},
        WrongBody{R"("priority": 2000)", "priority", "1000"},
        WrongBody{R"("response_format": {"type": "xml"})", "response_format.type", "json_schema"},
        WrongBody{R"("response_format": "json")", "response_format", "object"},
        WrongBody{R"("response_format": {"type": "json_schema"})",
                  "response_format.json_schema.schema", "schema"},
        WrongBody{R"("response_format": {"type": "json_schema", "json_schema": {"schema": "{}"}})",
                  "response_format.json_schema.schema", "object"},
        WrongBody{R"("response_format": {"type": "json_object"}, "guided_regex": "a")",
                  "guided_regex", "response_format"},
        WrongBody{R"("guided_json": {}, "structured_outputs": {"json": {}})",
                  "structured_outputs.json", "guided_json"},
        WrongBody{R"("structured_outputs": {"structural_tag": {}})",
                  "structured_outputs.structural_tag", "not supported"},
        WrongBody{R"("guided_choice": [])", "guided_choice", "at least one"},
        WrongBody{R"("json_schema": {})", "json_schema", "guided_json"},
        WrongBody{R"("regex": "a")", "regex", "guided_regex"},
        WrongBody{R"("grammar": "root ::= \"a\"")", "grammar", "guided_grammar"},
        WrongBody{R"("guided_json": "{")", "guided_json", "JSON"},
        WrongBody{R"("thinking": {"type": "disabled"}, "chat_template_kwargs": {"thinking": true})",
                  "chat_template_kwargs.thinking", "contradicts"},
        WrongBody{R"("reasoning_effort": 101)", "reasoning_effort", "1..100"},
        WrongBody{R"("tool_choice": "required")", "tool_choice", "no tools"},
        WrongBody{R"("tool_choice": {"type": "function", "function": {"name": "f"}})",
                  "tool_choice", "no tool is named"},
        WrongBody{R"("tools": [{"type": "retrieval"}])", "tools[0].type", "function"},
        WrongBody{R"("tools": [{"function": {"name": "f"}}], "guided_regex": "a")", "guided_regex",
                  "tools"},
        WrongBody{R"("stream": 1)", "stream", "true or false"},
        WrongBody{R"("stream_options": [])", "stream_options", "object"}));

// The part of it that is known without building the grammar.
TEST(ChatFields, case_27_bad_structures_are_refused_and_the_next_request_is_served) {
  ApiFixture fixture;
  const std::pair<std::string_view, std::string_view> kBad[] = {
      {R"("response_format": {"type": "xml"})", "response_format.type"},
      {R"("response_format": {"type": "json_schema", "json_schema": {"schema": "x"}})",
       "response_format.json_schema.schema"},
      {R"("guided_regex": "(")", "guided_regex"},
      {R"("guided_json": {"type": "object", "contains": {}})", "guided_json"},
      {R"("tools": [{"function": {"name": "f", "strict": true, "parameters": {"not": {}}}}])",
       "tools"}};
  for (const auto& [members, param] : kBad) {
    const auto reply = fixture.Chat(ChatBody(members));
    EXPECT_EQ(reply->status(), 400) << members;
    EXPECT_EQ(TextAt(Json(reply->body()), "error.param"), param) << reply->body();
  }
  EXPECT_EQ(fixture.Chat(ChatBody())->status(), 200);
  const auto unsupported =
      fixture.Chat(ChatBody(R"("guided_json": {"type": "array", "contains": {}})"));
  EXPECT_EQ(TextAt(Json(unsupported->body()), "error.code"), "unsupported_schema")
      << unsupported->body();
  EXPECT_NE(unsupported->body().find("contains"), std::string::npos);
}

// JavaScript has no whole numbers beyond 2^53, and must be able to send the seed back.
TEST(ChatFields, DrawnSeedsAreNumbersEverywhere) {
  ApiFixture fixture;
  std::set<uint64_t> seeds;
  for (int i = 0; i < 20; ++i) {
    const uint64_t seed = *SubmittedBy(fixture, "").seed;
    EXPECT_LT(seed, uint64_t{1} << 53);
    seeds.insert(seed);
    fixture.Complete(R"({"prompt": "a"})");
    EXPECT_LT(*fixture.submitted().seed, uint64_t{1} << 53);
  }
  EXPECT_EQ(seeds.size(), 20u);
}

TEST(ChatFields, UserIdsAreBounded) {
  ApiFixture fixture;
  EXPECT_EQ(
      fixture.Chat(ChatBody(StrCat("\"user_id\": \"", std::string(512, 'u'), "\"")))->status(),
      200);
  const auto reply = fixture.Chat(ChatBody(StrCat("\"user_id\": \"", std::string(513, 'u'), "\"")));
  EXPECT_EQ(reply->status(), 400);
  EXPECT_EQ(TextAt(Json(reply->body()), "error.param"), "user_id");
}

TEST(ChatFields, UsersAndSaltsKeepCachesApart) {
  ApiFixture fixture;
  const std::string a = SubmittedBy(fixture, R"("user_id": "a", "cache_salt": "bc")").cache_salt;
  const std::string ab = SubmittedBy(fixture, R"("user_id": "ab", "cache_salt": "c")").cache_salt;
  const std::string salt = SubmittedBy(fixture, R"("cache_salt": "1:abc")").cache_salt;
  EXPECT_EQ(SubmittedBy(fixture, "").cache_salt, "");
  EXPECT_NE(a, ab);
  EXPECT_NE(a, salt);
  EXPECT_NE(ab, salt);
}

TEST(ChatFields, TheTenantIsTheKeysAndTheDeadlineTheServers) {
  ApiFixture fixture({.queue_timeout = std::chrono::seconds(5)});
  fixture.Begin(&HandleChat, ChatBody(R"("tenant": "me", "start_deadline_ms": 1)"), "them");
  EXPECT_EQ(fixture.submitted().tenant, "them");
  EXPECT_EQ(fixture.submitted().start_deadline_ms, 5000);
}

TEST(ChatFields, UnknownModelsAre404WithTheList) {
  ApiFixture fixture;
  const auto reply = fixture.Chat(ChatBody(R"("model": "gpt")"));
  EXPECT_EQ(reply->status(), 404);
  const JsonValue error = Json(reply->body());
  EXPECT_EQ(TextAt(error, "error.code"), "model_not_found");
  EXPECT_EQ(TextAt(error, "error.param"), "model");
  EXPECT_NE(reply->body().find("deepseek-flash, tiny"), std::string::npos);
  EXPECT_EQ(TextAt(Json(fixture.Chat(ChatBody(R"("model": "tiny")"))->body()), "model"), "tiny");
  EXPECT_EQ(TextAt(Json(fixture.Chat(ChatBody())->body()), "model"), "deepseek-flash");
}

TEST(ChatFields, LengthsFitTheModel) {
  ApiFixture fixture;
  const auto prompt = static_cast<int32_t>(SubmittedBy(fixture, "").prompt_ids.size());
  EXPECT_EQ(fixture.submitted().max_tokens, std::nullopt);
  fixture.engine.mutable_model().max_model_len = prompt + 10;
  EXPECT_EQ(SubmittedBy(fixture, R"("max_tokens": 50)").max_tokens, 10);
  EXPECT_EQ(SubmittedBy(fixture, R"("max_completion_tokens": 9)").max_tokens, 9);
  fixture.engine.mutable_model().max_model_len = prompt;
  const auto reply = fixture.Chat(ChatBody());
  EXPECT_EQ(reply->status(), 400);
  const JsonValue error = Json(reply->body());
  EXPECT_EQ(TextAt(error, "error.code"), "context_length_exceeded");
  EXPECT_EQ(TextAt(error, "error.param"), "messages");
  EXPECT_NE(TextAt(error, "error.message").find(StrCat(prompt, " tokens")), std::string::npos);
  EXPECT_NE(TextAt(error, "error.message").find(StrCat("at most ", prompt)), std::string::npos);
}

TEST(ChatFields, StructureStartsBehindTheThinking) {
  ApiFixture fixture;
  const int32_t think_end = *TinyTokenizer().IdOf("</think>");
  const std::string format = R"("response_format": {"type": "json_object"})";
  EXPECT_EQ(SubmittedBy(fixture, format).structured,
            (StructuredOutput{.kind = StructuredOutput::Kind::kJsonObject}));
  EXPECT_EQ(
      SubmittedBy(fixture, format + R"(, "thinking": {"type": "enabled"})").structured,
      (StructuredOutput{.kind = StructuredOutput::Kind::kJsonObject, .bound_token_id = think_end}));
  const std::pair<std::string_view, StructuredOutput> kWishes[] = {
      {R"("guided_json": {"type": "object"})",
       {StructuredOutput::Kind::kJsonSchema, R"({"type": "object"})"}},
      {R"("guided_json": "{\"type\":\"object\"}")",
       {StructuredOutput::Kind::kJsonSchema, R"({"type": "object"})"}},
      {R"("guided_regex": "a+")", {StructuredOutput::Kind::kRegex, "a+"}},
      {R"("structured_outputs": {"grammar": "root ::= \"a\""})",
       {StructuredOutput::Kind::kGrammar, "root ::= \"a\""}},
      {R"("guided_choice": ["a\"", "b"])",
       {StructuredOutput::Kind::kGrammar, R"(root ::= "a\"" | "b")"}},
      {R"("response_format": {"type": "text"})", {}}};
  for (const auto& [members, expected] : kWishes) {
    EXPECT_EQ(SubmittedBy(fixture, members).structured, expected) << members;
  }
}

TEST(ChatFields, ToolsStartAtTheMarkerUnlessContentIsBoundToo) {
  ApiFixture fixture;
  const int32_t dsml = *TinyTokenizer().IdOf("｜DSML｜");
  const StructuredOutput free = SubmittedBy(fixture, kWeatherTools).structured;
  EXPECT_EQ(free.trigger_token_ids, std::vector<int32_t>{dsml});
  EXPECT_EQ(TextAt(Json(free.text), "content"), "null");
  EXPECT_EQ(TextAt(Json(free.text), "tools[0].parameters.type"), "object");
  const StructuredOutput bound =
      SubmittedBy(fixture, StrCat(kWeatherTools, R"(, "guided_json": {"type": "array"})"))
          .structured;
  EXPECT_TRUE(bound.trigger_token_ids.empty());
  EXPECT_EQ(TextAt(Json(bound.text), "content.schema.type"), "array");
  const StructuredOutput none =
      SubmittedBy(fixture, StrCat(kWeatherTools, R"(, "tool_choice": "none", "guided_regex": "a")"))
          .structured;
  EXPECT_EQ(none.kind, StructuredOutput::Kind::kRegex);
  const StructuredOutput allowed =
      SubmittedBy(fixture,
                  R"("tools": [{"function": {"name": "a"}}, {"function": {"name": "b"}}],
                     "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto",
                     "tools": [{"type": "function", "function": {"name": "b"}}]}})")
          .structured;
  EXPECT_EQ(At(Json(allowed.text), "tools")->items.size(), 1u);
  EXPECT_EQ(TextAt(Json(allowed.text), "required"), "false");
}

TEST(ChatFields, TheHostedRulesDropSamplingWhileThinking) {
  const std::string members = R"("temperature": 0, "presence_penalty": 1, "thinking": )";
  ApiFixture hosted({.deepseek_api = true});
  EXPECT_EQ(SubmittedBy(hosted, members + R"({"type": "enabled"})").sampling.temperature, 1);
  EXPECT_EQ(hosted.submitted().sampling.presence_penalty, 0);
  EXPECT_EQ(SubmittedBy(hosted, members + R"({"type": "disabled"})").sampling.temperature, 0);
  ApiFixture ours;
  EXPECT_EQ(SubmittedBy(ours, members + R"({"type": "enabled"})").sampling.temperature, 0);
}

TEST(ChatFields, BodiesThatAreNoJsonAre400AlsoByTheHostedRules) {
  for (const std::string& body :
       {std::string(), std::string("{"), std::string("[]"), std::string("{} x"),
        "{\"messages\": " + std::string(300, '[') + std::string(300, ']') + "}"}) {
    const auto reply = ApiFixture({.deepseek_api = true}).Chat(body);
    EXPECT_EQ(reply->status(), 400) << body;
    EXPECT_EQ(TextAt(Json(reply->body()), "error.type"), "invalid_request_error");
  }
  EXPECT_EQ(ApiFixture({.deepseek_api = true}).Chat(R"({"messages": []})")->status(), 422);
}

// ---- the list of fields is what the readers ask for

std::set<std::string, std::less<>> ListedFor(char letter) {
  std::set<std::string, std::less<>> names;
  for (const ApiField& field : ApiFields()) {
    if (field.where.find(letter) != field.where.npos) names.emplace(field.name);
  }
  return names;
}

// A value that remembers nothing: the readers' own lists say what they asked for.
TEST(ApiFields, AreThoseThatAreRead) {
  const ServedModel model = TinyModel();
  const std::set<std::string, std::less<>> conversation = {"messages",
                                                           "tools",
                                                           "response_format",
                                                           "thinking",
                                                           "reasoning_effort",
                                                           "chat_template_kwargs",
                                                           "add_generation_prompt",
                                                           "continue_final_message"};
  const JsonValue chat_body = Json(ChatBody());
  FieldReader keys(chat_body);
  ChatRequest chat;
  ASSERT_TRUE(chat.Read(keys, model, {.scripted = true}, "").ok());
  auto asked = keys.keys();
  asked.insert(conversation.begin(), conversation.end());
  EXPECT_EQ(ListedFor('c'), asked);

  const JsonValue text_body = Json(R"({"prompt": "a"})");
  FieldReader text_keys(text_body);
  CompletionRequest completion;
  ASSERT_TRUE(completion.Read(text_keys, model, {.scripted = true}, "").ok());
  EXPECT_EQ(ListedFor('t'), text_keys.keys());

  FieldReader tokenize_keys(text_body);
  ASSERT_TRUE(ReadTokenize(tokenize_keys, model).ok());
  asked = tokenize_keys.keys();
  asked.insert(conversation.begin(), conversation.end());
  EXPECT_EQ(ListedFor('k'), asked);

  const JsonValue ids_body = Json(R"({"tokens": [300]})");
  FieldReader detokenize_keys(ids_body);
  ASSERT_TRUE(ReadDetokenize(detokenize_keys, model).ok());
  EXPECT_EQ(ListedFor('d'), detokenize_keys.keys());
}

TEST(OpenApi, ListsEveryRouteAndItsFields) {
  const JsonValue document = Json(OpenApiDocument("1.2.3"));
  EXPECT_EQ(TextAt(document, "info.version"), "1.2.3");
  const JsonValue* paths = At(document, "paths");
  ASSERT_NE(paths, nullptr);
  for (const ApiRoute& route : kApiRoutes) {
    std::string path(route.path);
    if (path.back() == '*') path.replace(path.size() - 1, 1, "{id}");
    const JsonValue* operations = paths->Find(path);
    ASSERT_NE(operations, nullptr) << path;
    const JsonValue* operation = operations->Find(route.method == "GET" ? "get" : "post");
    ASSERT_NE(operation, nullptr) << path;
    const char letter = FieldLetter(route.endpoint);
    if (letter == 0) continue;
    const JsonValue* content = At(*operation, "requestBody.content");
    const JsonValue* properties = At(*content->Find("application/json"), "schema.properties");
    for (const std::string& name : ListedFor(letter)) {
      EXPECT_NE(properties->Find(name), nullptr) << path << " " << name;
    }
  }
}

TEST(OpenApi, EveryReferenceHasItsSchema) {
  const std::string text = OpenApiDocument("1");
  const JsonValue document = Json(text);
  const JsonValue* schemas = At(document, "components.schemas");
  constexpr std::string_view kRef = "#/components/schemas/";
  int num_found = 0;
  for (size_t at = text.find(kRef); at != text.npos; at = text.find(kRef, at + 1)) {
    const size_t begin = at + kRef.size();
    const std::string name = text.substr(begin, text.find('"', begin) - begin);
    EXPECT_NE(schemas->Find(name), nullptr) << name;
    ++num_found;
  }
  EXPECT_GT(num_found, 20);
}

// ---- models and tokens

TEST(Models, AreListedAndFound) {
  ApiFixture fixture;
  const auto get = [&](std::string path) {
    auto reply = std::make_shared<FakeReply>();
    HandleModels(fixture.api, {.method = "GET", .path = std::move(path)}, reply);
    return reply;
  };
  const JsonValue list = Json(get("/v1/models")->body());
  EXPECT_EQ(TextAt(list, "object"), "list");
  EXPECT_EQ(TextAt(list, "data[0].id"), "deepseek-flash");
  EXPECT_EQ(TextAt(list, "data[1].id"), "tiny");
  EXPECT_EQ(TextAt(list, "data[1].max_model_len"), "4096");
  EXPECT_EQ(TextAt(Json(get("/v1/models/tiny")->body()), "id"), "tiny");
  EXPECT_EQ(get("/v1/models/org/name")->status(), 404);
  EXPECT_EQ(get("/models/\xff\n")->status(), 404);
}

TEST(Tokens, ThereAndBack) {
  ApiFixture fixture;
  const auto tokens = [&](std::string_view body) {
    return Json(fixture.Post(&HandleTokenize, body)->body());
  };
  const JsonValue with_bos = tokens(R"({"prompt": "Hello"})");
  EXPECT_EQ(TextAt(with_bos, "tokens[0]"),
            StrCat(*TinyTokenizer().IdOf("<｜begin▁of▁sentence｜>")));
  EXPECT_EQ(TextAt(with_bos, "count"), StrCat(TinyTokenizer().Encode("Hello").size() + 1));
  EXPECT_EQ(TextAt(with_bos, "max_model_len"), "4096");
  const JsonValue plain =
      tokens(R"({"content": "Hello", "add_special_tokens": false, "return_token_strs": true})");
  EXPECT_EQ(At(plain, "token_strs")->items.size(), At(plain, "tokens")->items.size());
  const auto back =
      fixture.Post(&HandleDetokenize, StrCat("{\"tokens\": ", TextAt(plain, "tokens"), "}"));
  EXPECT_EQ(TextAt(Json(back->body()), "prompt"), "Hello");
  const JsonValue chat = tokens(ChatBody());
  const auto rendered = Json(fixture.Post(&HandleRender, ChatBody())->body());
  EXPECT_EQ(TextAt(chat, "tokens"), TextAt(rendered, "tokens"));
  fixture.Chat(ChatBody());
  EXPECT_EQ(TextAt(rendered, "count"), StrCat(fixture.submitted().prompt_ids.size()));
  for (const std::string_view wrong :
       {R"({})", R"({"prompt": "a", "content": "b"})", R"({"prompt": 1})"}) {
    EXPECT_EQ(fixture.Post(&HandleTokenize, wrong)->status(), 400) << wrong;
  }
  for (const std::string_view wrong :
       {R"({})", R"({"tokens": [-1]})", R"({"tokens": [9999999]})"}) {
    const auto reply = fixture.Post(&HandleDetokenize, wrong);
    EXPECT_EQ(reply->status(), 400) << wrong;
    EXPECT_TRUE(TextAt(Json(reply->body()), "error.param").starts_with("tokens"));
  }
}

}  // namespace
}  // namespace deepinfer::testing
