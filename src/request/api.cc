#include "request/api.h"

#include <utility>

#include "request/api_routes.h"
#include "request/api_state.h"

namespace deepinfer {
namespace {

template <typename Handler>
HttpHandler With(const SharedApi& api, Handler handler) {
  return [api, handler](HttpRequest request, const std::shared_ptr<HttpReply>& reply) {
    handler(api, std::move(request), reply);
  };
}

HttpHandler HandlerOf(const SharedApi& api, ApiEndpoint endpoint) {
  switch (endpoint) {
    case ApiEndpoint::kChat:
      return With(api, &HandleChat);
    case ApiEndpoint::kCompletion:
      return With(api, &HandleCompletion);
    case ApiEndpoint::kModels:
    case ApiEndpoint::kModel:
      return With(api, &HandleModels);
    case ApiEndpoint::kTokenize:
      return With(api, &HandleTokenize);
    case ApiEndpoint::kDetokenize:
      return With(api, &HandleDetokenize);
    case ApiEndpoint::kRender:
      return With(api, &HandleRender);
    case ApiEndpoint::kOpenApi:
      return With(api, &HandleOpenApi);
  }
  return {};
}

}  // namespace

void AddApiRoutes(const ApiContext& context, Router& router) {
  const auto api = std::make_shared<ApiState>(context);
  for (const ApiRoute& route : kApiRoutes) {
    router.Add(route.method, route.path, route.access, HandlerOf(api, route.endpoint));
  }
}

}  // namespace deepinfer
