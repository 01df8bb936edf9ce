// request/router.h: which handler answers which request.
//
// Answers OPTIONS, HEAD (as GET; the server leaves the body out), unknown paths (404) and methods
// (405) itself, and lets the gate look at a request before its handler does. What all answers have
// in common (x-request-id, CORS) is added around it, by server.h.
// Threads: the server's.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "request/http.h"

namespace deepinfer {

// What a client needs for a route. Without configured keys every client has one.
enum class RouteAccess {
  kOpen,       // nothing: probes and the page
  kKey,        // a valid key
  kInference,  // a valid key, a place among the key's running requests, and a model that is served
};

class Router {
 public:
  // Answers, or passes on to the handler, at once.
  using Gate = std::function<void(RouteAccess access, HttpRequest request,
                                  std::shared_ptr<HttpReply> reply, const HttpHandler& handler)>;

  // path: "/v1/models", or "/v1/models/*" for everything below; an exact path wins, then the
  // longest. Handlers take what is below from request.path.
  // Requires: this method has no handler at this path yet.
  void Add(std::string_view method, std::string_view path, RouteAccess access, HttpHandler handler);
  void SetGate(Gate gate) { gate_ = std::move(gate); }
  // Answers paths that nobody has; empty: 404.
  void SetMissing(HttpHandler handler) { missing_ = std::move(handler); }

  void Handle(HttpRequest request, std::shared_ptr<HttpReply> reply) const;
  // Of the route that would answer; nothing: the router itself would.
  std::optional<RouteAccess> AccessOf(const HttpRequest& request) const;

 private:
  struct Route {
    RouteAccess access;
    HttpHandler handler;
  };
  using Methods = std::map<std::string, Route, std::less<>>;

  const Methods* Find(std::string_view path) const;
  static const Route* Choose(const Methods& methods, std::string_view method);

  std::map<std::string, Methods, std::less<>> exact_, below_;
  Gate gate_;
  HttpHandler missing_;
};

}  // namespace deepinfer
