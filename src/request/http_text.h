// request/http_text.h: small pieces of HTTP's text: targets, status lines, dates, ids.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace deepinfer {

struct HttpTarget {
  std::string path;   // decoded
  std::string query;  // as it stands
};
// "/a%20b?c=d" or "http://host/a%20b?c=d". Nothing: no path, a broken escape, or a zero byte.
std::optional<HttpTarget> ParseTarget(std::string_view target);

std::string_view ReasonPhrase(int status);
// "Mon, 30 Nov 2026 11:03:00 GMT"
std::string HttpDate(WallTime time);
// Whether a client's x-request-id may be repeated in headers and logs.
bool IsGoodRequestId(std::string_view id);
// Whether a header's value stays on its line.
bool IsHeaderValue(std::string_view value);

}  // namespace deepinfer
