// Text completions: prompts of all kinds, echo, the old shape of log-probabilities, chunks.
#include <gtest/gtest.h>

#include "request/testing/api_fixture.h"
#include "request/testing/stream_check.h"
#include "tokens/control_tokens.h"

namespace deepinfer::testing {
namespace {

// The chunks of a stream put together; the usage of the last chunk if it has one.
struct Joined {
  std::map<int, std::string> texts, reasons, logprobs, ids;
  std::string seed, usage;
  bool operator==(const Joined&) const = default;
};

void AddChoices(const JsonValue& answer, Joined& out) {
  EXPECT_EQ(TextAt(answer, "object"), "text_completion");
  for (const JsonValue& choice : At(answer, "choices")->items) {
    const int index = std::stoi(TextAt(choice, "index"));
    EXPECT_TRUE(out.reasons[index].empty() || out.reasons[index] == "null");
    out.texts[index] += TextAt(choice, "text");
    out.reasons[index] = TextAt(choice, "finish_reason");
    for (const std::string_view column :
         {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
      const JsonValue* entries = At(choice, StrCat("logprobs.", column));
      if (entries == nullptr) continue;
      for (const JsonValue& entry : entries->items) {
        out.logprobs[index] += StrCat(column, " ", DumpJson(entry), "\n");
      }
    }
    if (const JsonValue* ids = choice.Find("token_ids")) {
      for (const JsonValue& id : ids->items) out.ids[index] += id.text + " ";
    }
  }
  if (answer.Find("seed") != nullptr) out.seed = TextAt(answer, "seed");
  if (answer.Find("usage") != nullptr) out.usage = TextAt(answer, "usage");
}

// Sorted by column, as the order between them depends on the cuts.
Joined Sorted(Joined joined) {
  for (auto& [index, text] : joined.logprobs) {
    std::map<std::string, std::string> columns;
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at);
      const std::string line = text.substr(at, end - at);
      columns[line.substr(0, line.find(' '))] += line + "\n";
      at = end + 1;
    }
    text.clear();
    for (const auto& [column, lines] : columns) text += lines;
  }
  return joined;
}

std::string Body(std::string_view prompt, std::string_view more) {
  return StrCat("{\"prompt\": ", prompt, more.empty() ? "" : ", ", more, "}");
}

Joined BothWays(std::string_view prompt, std::string_view more, std::string_view text,
                const std::vector<size_t>& cuts = {}) {
  ApiFixture fixture;
  fixture.engine.set_script([&](const Request& request) {
    ReadyEvent ready{.seed = *request.seed,
                     .prompt_tokens = static_cast<int32_t>(request.prompt_ids.size())};
    for (size_t i = 1; request.prompt_logprobs && i < request.prompt_ids.size(); ++i) {
      ready.prompt_logprobs.push_back({.token = {request.prompt_ids[i], -2.0}});
    }
    std::vector<Event> events = {ready};
    for (int32_t choice = 0; choice < request.num_choices; ++choice) {
      if (request.max_tokens == 0) {
        events.emplace_back(FinishEvent{.choice = choice, .reason = FinishReason::kLength});
        continue;
      }
      const ScriptedAnswer script{.text = std::string(text),
                                  .cuts = cuts,
                                  .choice = choice,
                                  .logprobs = request.sampling.logprobs.has_value()};
      for (Event& e : EventsOf(script, TinyTokenizer(), request)) events.push_back(std::move(e));
    }
    return events;
  });
  const auto whole = fixture.Complete(Body(prompt, StrCat("\"seed\": 5", more)));
  EXPECT_EQ(whole->status(), 200) << whole->body();
  Joined a, b;
  AddChoices(Json(whole->body()), a);
  const auto stream = fixture.Complete(Body(
      prompt,
      StrCat(R"("seed": 5, "stream": true, "stream_options": {"include_usage": true})", more)));
  const std::vector<std::string> events = DataOf(stream->body());
  for (size_t i = 0; i + 1 < events.size(); ++i) AddChoices(Json(events[i]), b);
  EXPECT_EQ(Sorted(a).logprobs, Sorted(b).logprobs);
  EXPECT_EQ(Sorted(a), Sorted(b));
  return Sorted(a);
}

TEST(Completions, ContinueATextBehindBos) {
  ApiFixture fixture;
  fixture.Complete(Body(R"("Hello")", ""));
  std::vector<int32_t> expected = {*TinyTokenizer().IdOf(kBosToken)};
  for (const int32_t id : TinyTokenizer().Encode("Hello")) expected.push_back(id);
  EXPECT_EQ(fixture.submitted().prompt_ids, expected);
  EXPECT_EQ(BothWays(R"("Hello")", "", " world, é!", {3, 8}).texts[0], " world, é!");
}

TEST(Completions, TakeIdsAsTheyStand) {
  ApiFixture fixture;
  fixture.Complete(Body("[300, 301]", ""));
  EXPECT_EQ(fixture.submitted().prompt_ids, (std::vector<int32_t>{300, 301}));
  EXPECT_EQ(fixture.Complete(Body("[300, 999999]", ""))->status(), 400);
  EXPECT_EQ(fixture.Complete(Body("[]", ""))->status(), 400);
}

TEST(Completions, ABatchNumbersItsChoicesByPrompt) {
  const Joined joined = BothWays(R"(["a", [300], "b"])", R"(, "n": 2)", "x");
  EXPECT_EQ(joined.texts.size(), 6u);
  EXPECT_EQ(joined.texts.at(5), "x");
  EXPECT_EQ(joined.seed, "5");
  ApiFixture fixture;
  fixture.Complete(Body(R"(["a", "b"])", ""));
  EXPECT_EQ(fixture.engine.requests()[0].seed, fixture.engine.requests()[1].seed);
  EXPECT_TRUE(fixture.submitted().seed.has_value());
}

TEST(Completions, EchoPutsThePromptFirst) {
  EXPECT_EQ(BothWays(R"("Say: ")", R"(, "echo": true)", "hi", {1}).texts[0], "Say: hi");
  EXPECT_EQ(BothWays("[300]", R"(, "echo": true)", "hi").texts[0],
            TinyTokenizer().Decode(std::vector<int32_t>{300}) + "hi");
}

TEST(Completions, EchoWithoutTokensScoresThePrompt) {
  const Joined joined =
      BothWays(R"("Hello world")", R"(, "echo": true, "max_tokens": 0, "logprobs": 1)", "");
  EXPECT_EQ(joined.texts.at(0), "Hello world");
  EXPECT_EQ(joined.reasons.at(0), "length");
  EXPECT_NE(joined.logprobs.at(0).find("token_logprobs null\ntoken_logprobs -2\n"),
            std::string::npos)
      << joined.logprobs.at(0);
  ApiFixture fixture;
  EXPECT_EQ(fixture.Complete(Body(R"("a")", R"("max_tokens": 0)"))->status(), 400);
}

TEST(Completions, OffsetsCountCharactersOfWhatIsShown) {
  const std::string text = "é1234";
  ApiFixture fixture;
  fixture.Say(text);
  const JsonValue answer =
      Json(fixture.Complete(Body(R"("ü")", R"("echo": true, "logprobs": 0)"))->body());
  const JsonValue* tokens = At(answer, "choices[0].logprobs.tokens");
  const JsonValue* offsets = At(answer, "choices[0].logprobs.text_offset");
  ASSERT_EQ(tokens->items.size(), offsets->items.size());
  EXPECT_EQ(offsets->items.back().text, "6");  // EOS, behind ü and the text
  EXPECT_EQ(TextAt(answer, "choices[0].text"), "ü" + text);
  int last = 0;
  for (const JsonValue& offset : offsets->items) {
    EXPECT_GE(std::stoi(offset.text), last);
    last = std::stoi(offset.text);
  }
}

TEST(Completions, StreamsAndWholeAnswersAgree) {
  const std::string text = "One, two — drei 😀";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    BothWays(R"("Hello")", R"(, "logprobs": 2, "echo": true, "return_token_ids": true)", text,
             {cut});
  }
}

TEST(Completions, SuffixNeedsTokensForIt) {
  ApiFixture fixture;
  const auto reply = fixture.Complete(Body(R"("a")", R"("suffix": "b")"));
  if (TinyTokenizer().IdOf("<｜fim▁begin｜>")) GTEST_SKIP() << "the tokenizer has them";
  EXPECT_EQ(reply->status(), 400);
  EXPECT_EQ(TextAt(Json(reply->body()), "error.param"), "suffix");
}

TEST(Completions, RefuseWhatIsNoPrompt) {
  ApiFixture fixture;
  for (const std::string_view prompt :
       {"null", "1", "{}", R"(["a", 1])", R"([[300], ["a"]])", "true"}) {
    const auto reply = fixture.Complete(Body(prompt, ""));
    EXPECT_EQ(reply->status(), 400) << prompt;
    EXPECT_TRUE(TextAt(Json(reply->body()), "error.param").starts_with("prompt")) << reply->body();
  }
}

TEST(Completions, AModelWithoutTokenizerTakesAndGivesIds) {
  ApiFixture fixture;
  fixture.engine.mutable_model().tokenizer = nullptr;
  fixture.engine.set_script([](const Request&) {
    return std::vector<Event>{ReadyEvent{}, TokensEvent{.ids = {4, 5}},
                              FinishEvent{.reason = FinishReason::kLength}};
  });
  const JsonValue answer = Json(fixture.Complete(Body("[3]", ""))->body());
  EXPECT_EQ(TextAt(answer, "choices[0].token_ids"), "[4, 5]");
  EXPECT_EQ(fixture.Complete(Body(R"("text")", ""))->status(), 400);
  EXPECT_EQ(fixture.Chat(ChatBody())->status(), 400);
}

}  // namespace
}  // namespace deepinfer::testing
