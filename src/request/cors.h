// request/cors.h: which web pages of other origins may use this server from a browser.
//
// Threads: any.
#pragma once

#include <string>
#include <vector>

#include "request/http.h"

namespace deepinfer {

class Cors {
 public:
  // origins: "https://example.org", or "*" for all; none: no page but ours.
  explicit Cors(std::vector<std::string> origins = {});

  // What an answer to this request carries; empty where its origin is not allowed.
  HttpHeaders HeadersFor(const HttpRequest& request) const;
  // A browser's question before the real request: OPTIONS with Access-Control-Request-Method.
  static bool IsPreflight(const HttpRequest& request);
  // Its answer. Its own headers only; HeadersFor() comes on top.
  static HttpResponse PreflightAnswer(const HttpRequest& request);

 private:
  std::vector<std::string> origins_;
  bool all_ = false;
};

}  // namespace deepinfer
