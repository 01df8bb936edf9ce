// request/access_log.h: one log line a request, without any of its text.
//
// Threads: the server's.
#pragma once

#include <vector>

#include "base/log.h"
#include "request/exchange.h"

namespace deepinfer {

// What the line holds. Times in seconds.
std::vector<LogField> AccessFields(const ExchangeFacts& facts);
// Probes, dashboards and the page's files are asked for all the time: kDebug if they went well.
LogLevel AccessLevel(const ExchangeFacts& facts);
void LogAccess(const ExchangeFacts& facts);

}  // namespace deepinfer
