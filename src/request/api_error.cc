#include "request/api_error.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "tokens/json.h"
#include "tokens/utf8.h"

namespace deepinfer {
namespace {

struct Row {
  ApiErrorKind kind;
  int status;
  std::string_view type;
  std::string_view code;
};

constexpr std::string_view kRequestError = "invalid_request_error";
constexpr std::string_view kServerError = "server_error";

constexpr Row kRows[] = {
    {ApiErrorKind::kInvalid, 400, kRequestError, ""},
    {ApiErrorKind::kContextLength, 400, kRequestError, "context_length_exceeded"},
    {ApiErrorKind::kUnsupportedSchema, 400, kRequestError, "unsupported_schema"},
    {ApiErrorKind::kApiKey, 401, "authentication_error", "invalid_api_key"},
    {ApiErrorKind::kModelNotFound, 404, kRequestError, "model_not_found"},
    {ApiErrorKind::kPathNotFound, 404, kRequestError, ""},
    {ApiErrorKind::kMethod, 405, kRequestError, ""},
    {ApiErrorKind::kBodyTooLarge, 413, kRequestError, ""},
    {ApiErrorKind::kHeadersTooLarge, 431, kRequestError, ""},
    {ApiErrorKind::kRateLimit, 429, "rate_limit_error", "rate_limit_exceeded"},
    {ApiErrorKind::kOverloaded, 503, kServerError, "overloaded"},
    {ApiErrorKind::kInternal, 500, kServerError, "internal"},
};

ApiErrorKind KindOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kFailedPrecondition:  // the checkpoint cannot do what was asked for
    case ErrorCode::kNotFound:
      return ApiErrorKind::kInvalid;
    case ErrorCode::kUnsupportedSchema:
      return ApiErrorKind::kUnsupportedSchema;
    case ErrorCode::kResourceExhausted:  // too many wait
    case ErrorCode::kDeadlineExceeded:   // did not start in time
      return ApiErrorKind::kOverloaded;
    case ErrorCode::kOk:
    case ErrorCode::kDataLoss:
    case ErrorCode::kInternal:
      break;
  }
  return ApiErrorKind::kInternal;
}

ApiErrorKind KindOf(StatusCode code) {
  switch (code) {
    case StatusCode::kInvalidArgument:
    case StatusCode::kFailedPrecondition:
      return ApiErrorKind::kInvalid;
    case StatusCode::kNotFound:
      return ApiErrorKind::kModelNotFound;
    case StatusCode::kOutOfRange:
      return ApiErrorKind::kContextLength;
    case StatusCode::kUnimplemented:
      return ApiErrorKind::kUnsupportedSchema;
    case StatusCode::kResourceExhausted:
    case StatusCode::kDeadlineExceeded:
      return ApiErrorKind::kOverloaded;
    default:
      return ApiErrorKind::kInternal;
  }
}

// "messages[2].role" of "messages[2].role: expected ..."; empty if no path stands there.
std::string_view PathOf(std::string_view message) {
  const size_t end = message.find(": ");
  if (end == message.npos || end == 0) return {};
  const std::string_view path = message.substr(0, end);
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '[' || c == ']';
  };
  return std::all_of(path.begin(), path.end(), fits) ? path : std::string_view();
}

ApiError FromMessage(ApiErrorKind kind, const std::string& message) {
  const bool names_field = MakeApiError(kind, "").type == kRequestError;
  return MakeApiError(kind, message, names_field ? std::string(PathOf(message)) : "");
}

void AppendText(std::string_view key, std::string_view text, bool null_if_empty, std::string& out) {
  std::string repaired;
  out += key;
  if (text.empty() && null_if_empty) {
    out += "null";
  } else {
    AppendJsonString(RepairUtf8(text, repaired), out);
  }
}

}  // namespace

ApiError MakeApiError(ApiErrorKind kind, std::string message, std::string param) {
  const auto row = std::find_if(std::begin(kRows), std::end(kRows),
                                [kind](const Row& r) { return r.kind == kind; });
  CHECK(row != std::end(kRows));
  const bool again = row->status == 429 || row->status == 503;
  return {.status = row->status,
          .message = std::move(message),
          .type = row->type,
          .param = std::move(param),
          .code = row->code,
          .retry_after_s = again ? 1 : 0};
}

ApiError ApiErrorOf(const Status& status) {
  return FromMessage(KindOf(status.code()), MessageOf(status));
}

ApiError ApiErrorOf(const Error& failure) {
  return FromMessage(KindOf(failure.code), failure.message);
}

std::string ToJson(const ApiError& error) {
  std::string out = "{\"error\": {";
  AppendText("\"message\": ", error.message, false, out);
  AppendText(", \"type\": ", error.type, false, out);
  AppendText(", \"param\": ", error.param, true, out);
  AppendText(", \"code\": ", error.code, true, out);
  return out + "}}";
}

HttpResponse ErrorResponse(const ApiError& error) {
  HttpResponse response{.status = error.status, .body = ToJson(error)};
  if (error.retry_after_s > 0) {
    response.headers.emplace_back("Retry-After", StrCat(error.retry_after_s));
  }
  return response;
}

}  // namespace deepinfer
