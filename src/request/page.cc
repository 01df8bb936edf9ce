#include "request/page.h"

#include <string>

namespace deepinfer {
namespace {

// Scripts, styles, images and requests: this origin only. Trusted types make the browser refuse
// innerHTML and its like, whoever writes them.
constexpr std::string_view kPolicy =
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "object-src 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

}  // namespace

HttpResponse AnswerPageFile(const PageFile& file, const HttpRequest& request) {
  HttpResponse response;
  response.content_type = std::string(file.content_type);
  response.headers = {{"Content-Security-Policy", std::string(kPolicy)},
                      {"X-Content-Type-Options", "nosniff"},
                      {"Referrer-Policy", "no-referrer"},
                      {"Cache-Control", "no-cache"},
                      {"ETag", std::string(file.etag)}};
  if (request.Header("if-none-match").find(file.etag) != std::string_view::npos) {
    response.status = 304;
  } else {
    response.body = std::string(file.text);
  }
  return response;
}

void AddPageRoutes(Router& router) {
  for (const PageFile& file : PageFiles()) {
    router.Add("GET", file.path, RouteAccess::kOpen,
               [&file](HttpRequest request, std::shared_ptr<HttpReply> reply) {
                 reply->Send(AnswerPageFile(file, request));
               });
  }
}

}  // namespace deepinfer
