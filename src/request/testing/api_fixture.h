// request/testing/api_fixture.h: the endpoints over a scripted engine and the tiny tokenizer. Tests
// only.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/rng.h"
#include "request/api_state.h"
#include "request/testing/fake_reply.h"
#include "request/testing/fake_timers.h"
#include "request/testing/scripted_engine_client.h"

namespace deepinfer::testing {

// tools/tiny's: it has every control token.
const Tokenizer& TinyTokenizer();
const PromptTexts& TinyTexts();
// "tiny" and "deepseek-flash", 4,096 tokens long.
ServedModel TinyModel();

using ApiHandler = void (*)(const SharedApi&, HttpRequest, const std::shared_ptr<HttpReply>&);

class ApiFixture {
 public:
  explicit ApiFixture(ApiOptions options = {.scripted = true});

  // What the engine will say to every request from now on.
  void Say(std::string_view text) { engine.set_script(Saying(text, TinyTokenizer())); }

  // The handler has the body; no event has been delivered yet.
  std::shared_ptr<FakeReply> Begin(ApiHandler handler, std::string_view body,
                                   std::string_view tenant = "");
  // The same, and all events.
  std::shared_ptr<FakeReply> Post(ApiHandler handler, std::string_view body);
  std::shared_ptr<FakeReply> Chat(std::string_view body) { return Post(&HandleChat, body); }
  std::shared_ptr<FakeReply> Complete(std::string_view body) {
    return Post(&HandleCompletion, body);
  }
  // Of the last Submit(); a failed test and an empty one if there was none.
  const Request& submitted() const;

  FakeTimers timers;
  FakeBackground background;
  SimulatedClock clock{WallTime{1'700'000'000'000'000'000}};
  SeededRng rng{5};
  ScriptedEngineClient engine{TinyModel(), Saying("Hi", TinyTokenizer())};  // holds sessions
  SharedApi api;
};

// The JSON of a body. A failed test and null if it is none.
JsonValue Json(std::string_view text);
// "a.b[2].c" in a value; null if it is not there.
const JsonValue* At(const JsonValue& value, std::string_view path);
// Its text; "<absent>" if it is not there.
std::string TextAt(const JsonValue& value, std::string_view path);

// {"messages": [{"role": "user", "content": "Hi"}], <members>}
std::string ChatBody(std::string_view members = "");
// One tool, get_weather{city}.
inline constexpr std::string_view kWeatherTools =
    R"("tools": [{"type": "function", "function": {"name": "get_weather", "parameters":)"
    R"( {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}])";

}  // namespace deepinfer::testing
