#include "request/router.h"

#include <utility>

#include "base/check.h"
#include "request/api_error.h"

namespace deepinfer {
namespace {

// "GET, HEAD, OPTIONS"
template <typename Methods>
std::string AllowedMethods(const Methods& methods) {
  std::string text;
  for (const auto& [method, route] : methods) {
    text += StrCat(method, ", ");
    if (method == "GET" && !methods.contains("HEAD")) text += "HEAD, ";
  }
  return text + "OPTIONS";
}

}  // namespace

void Router::Add(std::string_view method, std::string_view path, RouteAccess access,
                 HttpHandler handler) {
  auto& table = path.ends_with("/*") ? below_ : exact_;
  if (path.ends_with("/*")) path.remove_suffix(1);
  const bool is_new =
      table[std::string(path)]
          .emplace(std::string(method), Route{.access = access, .handler = std::move(handler)})
          .second;
  CHECK(is_new);
}

const Router::Methods* Router::Find(std::string_view path) const {
  if (const auto at = exact_.find(path); at != exact_.end()) return &at->second;
  const Methods* best = nullptr;  // prefixes of one path come shortest first
  for (const auto& [prefix, methods] : below_) {
    if (path.starts_with(prefix) && path.size() > prefix.size()) best = &methods;
  }
  return best;
}

const Router::Route* Router::Choose(const Methods& methods, std::string_view method) {
  auto route = methods.find(method);
  if (route == methods.end() && method == "HEAD") route = methods.find("GET");
  return route == methods.end() ? nullptr : &route->second;
}

std::optional<RouteAccess> Router::AccessOf(const HttpRequest& request) const {
  const Methods* methods = Find(request.path);
  const Route* route = methods == nullptr ? nullptr : Choose(*methods, request.method);
  return route == nullptr ? std::nullopt : std::optional(route->access);
}

void Router::Handle(HttpRequest request, std::shared_ptr<HttpReply> reply) const {
  const Methods* methods = Find(request.path);
  if (methods == nullptr) {
    if (missing_) return missing_(std::move(request), std::move(reply));
    return reply->Send(ErrorResponse(MakeApiError(
        ApiErrorKind::kPathNotFound,
        StrCat("there is nothing at ", request.path, "; GET /openapi.json lists what there is"))));
  }
  if (const Route* route = Choose(*methods, request.method)) {
    if (!gate_) return route->handler(std::move(request), std::move(reply));
    return gate_(route->access, std::move(request), std::move(reply), route->handler);
  }
  const std::string allowed = AllowedMethods(*methods);
  if (request.method == "OPTIONS") {
    return reply->Send({.status = 204, .headers = {{"Allow", allowed}}});
  }
  HttpResponse response = ErrorResponse(MakeApiError(
      ApiErrorKind::kMethod,
      StrCat(request.path, ": found ", request.method, ", expected one of ", allowed)));
  response.headers.emplace_back("Allow", allowed);
  reply->Send(std::move(response));
}

}  // namespace deepinfer
