// request/api_error.h: the one table of what an API answers when something is wrong.
//
//   kind                 status  type                    code                     again?
//   kInvalid             400     invalid_request_error   null                     no
//   kContextLength       400     invalid_request_error   context_length_exceeded  no
//   kUnsupportedSchema   400     invalid_request_error   unsupported_schema       no
//   kApiKey              401     authentication_error    invalid_api_key          no
//   kModelNotFound       404     invalid_request_error   model_not_found          no
//   kPathNotFound        404     invalid_request_error   null                     no
//   kMethod              405     invalid_request_error   null                     no
//   kBodyTooLarge        413     invalid_request_error   null                     no
//   kHeadersTooLarge     431     invalid_request_error   null                     no
//   kRateLimit           429     rate_limit_error        rate_limit_exceeded      after Retry-After
//   kOverloaded          503     server_error            overloaded               after Retry-After
//   kInternal            500     server_error            internal                 once
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "deepinfer/request.h"
#include "request/http.h"

namespace deepinfer {

enum class ApiErrorKind {
  kInvalid,
  kContextLength,
  kUnsupportedSchema,
  kApiKey,
  kModelNotFound,
  kPathNotFound,
  kMethod,
  kBodyTooLarge,
  kHeadersTooLarge,
  kRateLimit,
  kOverloaded,
  kInternal,
};

struct ApiError {
  int status = 400;
  std::string message;  // one line: what, where, expected, found
  std::string_view type = "invalid_request_error";
  std::string param;      // the field at fault; empty: null
  std::string_view code;  // empty: null
  int retry_after_s = 0;  // Retry-After; 0: none
};

// 429 and 503 get a Retry-After of one second, which the caller may raise.
ApiError MakeApiError(ApiErrorKind kind, std::string message, std::string param = "");
// What reading a request found: kNotFound is the model, kOutOfRange the context's length,
// kUnimplemented a schema. The messages of our readers begin with the field's path, which
// becomes `param`: "messages[2].role: expected ...".
ApiError ApiErrorOf(const Status& status);
// What the engine said of a request.
ApiError ApiErrorOf(const Error& failure);

// {"error": {"message":, "type":, "param":, "code":}}
std::string ToJson(const ApiError& error);
HttpResponse ErrorResponse(const ApiError& error);

}  // namespace deepinfer
