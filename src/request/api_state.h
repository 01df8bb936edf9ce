// request/api_state.h: what the endpoints share. Internal to the API. Threads: the server's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "request/answer_json.h"
#include "request/api.h"
#include "request/api_error.h"
#include "request/call_memory.h"

namespace deepinfer {

struct ApiState {
  explicit ApiState(const ApiContext& given)
      : context(given), calls(given.options.call_memory_bytes) {}

  const ApiContext context;
  CallMemory calls;

  const ServedModel& model() const { return context.engine->model(); }
  const ApiOptions& options() const { return context.options; }

  // "call_" and 24 random hexadecimal digits.
  std::string NewId(std::string_view prefix) const;
  AnswerHead NewHead(std::string_view prefix, const std::string& model_name) const;
  // For a request without one. 53 bits: clients whose numbers are all F64 must be able to send it
  // back.
  uint64_t NewSeed() const { return context.rng->NextU64() >> 11; }
  // A body that was read, but asks for something wrong: 422 by the hosted API's rules.
  ApiError WrongBody(const Status& status) const;
  // `work`, which must not touch this thread's objects, and then `done` on this thread: beside it
  // if `bytes` of text are many, else at once.
  void Run(size_t bytes, std::function<void()> work, std::function<void()> done) const;
};

using SharedApi = std::shared_ptr<ApiState>;

// Keeps the whole alive.
inline std::shared_ptr<const ApiContext> ContextOf(const SharedApi& api) {
  return {api, &api->context};
}

// A JSON object. Errors: kInvalidArgument.
StatusOr<JsonValue> ParseBody(const std::string& body);

// One for each kind of endpoint.
void HandleChat(const SharedApi& api, HttpRequest request, const std::shared_ptr<HttpReply>& reply);
void HandleCompletion(const SharedApi& api, HttpRequest request,
                      const std::shared_ptr<HttpReply>& reply);
void HandleModels(const SharedApi& api, const HttpRequest& request,
                  const std::shared_ptr<HttpReply>& reply);
void HandleTokenize(const SharedApi& api, HttpRequest request,
                    const std::shared_ptr<HttpReply>& reply);
void HandleDetokenize(const SharedApi& api, HttpRequest request,
                      const std::shared_ptr<HttpReply>& reply);
void HandleRender(const SharedApi& api, HttpRequest request,
                  const std::shared_ptr<HttpReply>& reply);
void HandleOpenApi(const SharedApi& api, const HttpRequest& request,
                   const std::shared_ptr<HttpReply>& reply);

}  // namespace deepinfer
