// request/page.h: the page at "/": chat and dashboard. Plain files under request/page/, compiled
// in.
#pragma once

#include <span>
#include <string_view>

#include "request/http.h"
#include "request/router.h"

namespace deepinfer {

struct PageFile {
  std::string_view path;          // "/", "/page/main.js"
  std::string_view content_type;  // with its charset
  std::string_view etag;          // with its quotes; differs when the text does
  std::string_view text;
};

// All of them, "/" first. They live as long as the process.
std::span<const PageFile> PageFiles();

// The file with headers that let the page load and reach nothing but this server: no inline script,
// no inline style, no text turned into markup. 304 without a body if the request says that it has
// this very text. Browsers ask each time (no-cache), so that a new server is a new page at once.
HttpResponse AnswerPageFile(const PageFile& file, const HttpRequest& request);

// GET for each file. Needs no key: the page asks for one where the API does.
void AddPageRoutes(Router& router);

}  // namespace deepinfer
