// request/api_routes.h: the list of the API's routes, for the router and for /openapi.json.
#pragma once

#include <string_view>

#include "request/router.h"

namespace deepinfer {

enum class ApiEndpoint {
  kChat,
  kCompletion,
  kModels,
  kModel,
  kTokenize,
  kDetokenize,
  kRender,
  kOpenApi,
};

struct ApiRoute {
  std::string_view method;
  std::string_view path;  // as Router::Add takes it
  RouteAccess access;
  ApiEndpoint endpoint;
};

inline constexpr ApiRoute kApiRoutes[] = {
    {"POST", "/v1/chat/completions", RouteAccess::kInference, ApiEndpoint::kChat},
    {"POST", "/chat/completions", RouteAccess::kInference, ApiEndpoint::kChat},
    {"POST", "/beta/chat/completions", RouteAccess::kInference, ApiEndpoint::kChat},
    {"POST", "/v1/completions", RouteAccess::kInference, ApiEndpoint::kCompletion},
    {"POST", "/completions", RouteAccess::kInference, ApiEndpoint::kCompletion},
    {"POST", "/beta/completions", RouteAccess::kInference, ApiEndpoint::kCompletion},
    {"GET", "/v1/models", RouteAccess::kKey, ApiEndpoint::kModels},
    {"GET", "/models", RouteAccess::kKey, ApiEndpoint::kModels},
    {"GET", "/v1/models/*", RouteAccess::kKey, ApiEndpoint::kModel},
    {"GET", "/models/*", RouteAccess::kKey, ApiEndpoint::kModel},
    {"POST", "/tokenize", RouteAccess::kKey, ApiEndpoint::kTokenize},
    {"POST", "/detokenize", RouteAccess::kKey, ApiEndpoint::kDetokenize},
    {"POST", "/render", RouteAccess::kKey, ApiEndpoint::kRender},
    {"GET", "/openapi.json", RouteAccess::kOpen, ApiEndpoint::kOpenApi},
};

}  // namespace deepinfer
