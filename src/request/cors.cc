#include "request/cors.h"

#include <algorithm>
#include <utility>

namespace deepinfer {

Cors::Cors(std::vector<std::string> origins)
    : origins_(std::move(origins)),
      all_(std::find(origins_.begin(), origins_.end(), "*") != origins_.end()) {}

HttpHeaders Cors::HeadersFor(const HttpRequest& request) const {
  if (origins_.empty()) return {};
  HttpHeaders headers;
  if (!all_) headers.emplace_back("Vary", "Origin");
  const std::string_view origin = request.Header("origin");
  const bool listed = std::find(origins_.begin(), origins_.end(), origin) != origins_.end();
  if (origin.empty() || !(all_ || listed)) return headers;
  headers.emplace_back("Access-Control-Allow-Origin", all_ ? "*" : std::string(origin));
  headers.emplace_back("Access-Control-Expose-Headers", "x-request-id, Retry-After");
  return headers;
}

bool Cors::IsPreflight(const HttpRequest& request) {
  return request.method == "OPTIONS" && !request.Header("origin").empty() &&
         !request.Header("access-control-request-method").empty();
}

HttpResponse Cors::PreflightAnswer(const HttpRequest& request) {
  HttpResponse response{.status = 204};
  response.headers = {{"Access-Control-Allow-Methods", "GET, POST, OPTIONS"},
                      {"Access-Control-Max-Age", "86400"}};
  // Client libraries send headers of their own (x-stainless-...), so what is asked for is allowed.
  const std::string_view asked = request.Header("access-control-request-headers");
  response.headers.emplace_back("Access-Control-Allow-Headers",
                                asked.empty() ? "Authorization, Content-Type" : std::string(asked));
  return response;
}

}  // namespace deepinfer
