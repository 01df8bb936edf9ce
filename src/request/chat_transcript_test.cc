// Whole answers as they go over the wire, byte for byte: a change of these is a change of the API.
#include <gtest/gtest.h>

#include "request/testing/api_fixture.h"
#include "tokens/answer_test_util.h"

namespace deepinfer::testing {
namespace {

// A random id of the answer, by a name that a text can hold.
std::string WithoutId(std::string text, std::string_view prefix, std::string_view name) {
  for (size_t at = text.find(prefix); at != text.npos; at = text.find(prefix, at + name.size())) {
    text.replace(at, prefix.size() + 24, name);
  }
  return text;
}

std::string Transcript(std::string_view answer, std::string_view members) {
  ApiFixture fixture;
  fixture.Say(answer);
  const std::string body = fixture.Chat(ChatBody(StrCat(R"("seed": 7, )", members)))->body();
  return WithoutId(WithoutId(body, "chatcmpl-", "ID"), "call_", "CALL");
}

TEST(ChatTranscript, AStreamWithUsage) {
  const std::string head =
      R"(data: {"id":"ID","object":"chat.completion.chunk","created":1700000000,"model":"deepseek-flash","system_fingerprint":"fp_test",)";
  EXPECT_EQ(
      Transcript("Hello", R"("stream": true, "stream_options": {"include_usage": true})"),
      head +
          R"("choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"usage":null})"
          "\n\n" +
          head +
          R"("choices":[{"index":0,"delta":{"content":"Hello"},"logprobs":null,"finish_reason":null}],"usage":null})"
          "\n\n" +
          head +
          R"("choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"seed":7,"usage":null})"
          "\n\n" +
          head +
          R"("choices":[],"seed":7,"usage":{"prompt_tokens":6,"completion_tokens":2,"total_tokens":8,"prompt_cache_hit_tokens":0,"prompt_cache_miss_tokens":6,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}})"
          "\n\ndata: [DONE]\n\n");
}

TEST(ChatTranscript, AStreamWithThinkingAndACall) {
  const std::string head =
      R"(data: {"id":"ID","object":"chat.completion.chunk","created":1700000000,"model":"deepseek-flash","system_fingerprint":"fp_test",)";
  const auto delta = [&](std::string_view json) {
    return StrCat(head, R"("choices":[{"index":0,"delta":)", json,
                  R"(,"logprobs":null,"finish_reason":null}]})", "\n\n");
  };
  EXPECT_EQ(
      Transcript("Hm.</think>Now." + Block(Invoke("get_weather", TextParameter("city", "Ulm"))),
                 StrCat(kWeatherTools, R"(, "stream": true, "thinking": {"type": "enabled"})")),
      delta(R"({"role":"assistant","content":""})") + delta(R"({"reasoning_content":"Hm."})") +
          delta(R"({"content":"Now."})") +
          delta(
              R"({"tool_calls":[{"index":0,"id":"CALL","type":"function","function":{"name":"get_weather","arguments":""}}]})") +
          delta(R"({"tool_calls":[{"index":0,"function":{"arguments":"{\"city\": \"Ulm\"}"}}]})") +
          head +
          R"("choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"tool_calls"}],"seed":7})"
          "\n\ndata: [DONE]\n\n");
}

TEST(ChatTranscript, AWholeAnswerWithTheBytesOfHalfCharacters) {
  EXPECT_EQ(
      Transcript("é", R"("logprobs": true)"),
      R"({"id":"ID","object":"chat.completion","created":1700000000,"model":"deepseek-flash","system_fingerprint":"fp_test","seed":7,"choices":[{"index":0,"message":{"role":"assistant","content":"é","refusal":null},"logprobs":{"content":[{"token":"�","logprob":-0.25,"bytes":[195],"top_logprobs":[]},{"token":"�","logprob":-0.25,"bytes":[169],"top_logprobs":[]}],"refusal":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":6,"completion_tokens":3,"total_tokens":9,"prompt_cache_hit_tokens":0,"prompt_cache_miss_tokens":6,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}})");
}

}  // namespace
}  // namespace deepinfer::testing
