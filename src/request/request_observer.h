// request/request_observer.h: what metrics and the access log hear of one HTTP request that runs
// on the engine.
//
// The server puts one into every HttpRequest; its arrival, status and end are known already.
// Never sees text. Threads: the server's.
#pragma once

#include <cstdint>
#include <string_view>

namespace deepinfer {

class RequestObserver {
 public:
  virtual ~RequestObserver() = default;

  // The model that answers, and whether in a stream.
  virtual void OnModel(std::string_view model, bool stream) = 0;
  // A prompt was accepted: the engine's Ready. Adds up over the prompts of a batch.
  virtual void OnReady(int32_t prompt_tokens, int32_t cached_tokens) = 0;
  // Output tokens came, of all choices; the first call ends the time to the first token.
  virtual void OnTokens(int32_t count) = 0;
  // A choice ended. reason: "stop", "length", "tool_calls", "error".
  virtual void OnFinish(std::string_view reason) = 0;
};

}  // namespace deepinfer
