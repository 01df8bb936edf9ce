#include "request/access_log.h"

#include <algorithm>
#include <array>

namespace deepinfer {

std::vector<LogField> AccessFields(const ExchangeFacts& facts) {
  std::vector<LogField> fields = {{"id", facts.id},
                                  {"peer", facts.peer},
                                  {"status", int64_t{facts.status}},
                                  {"seconds", facts.e2e_s()},
                                  {"bytes", facts.body_bytes}};
  if (!facts.tenant.empty()) fields.push_back({"tenant", facts.tenant});
  if (facts.gone) fields.push_back({"gone", true});
  if (facts.model.empty()) return fields;
  fields.push_back({"model", facts.model});
  fields.push_back({"stream", facts.stream});
  fields.push_back({"prompt_tokens", facts.prompt_tokens});
  fields.push_back({"cached_tokens", facts.cached_tokens});
  fields.push_back({"output_tokens", facts.output_tokens});
  if (const auto ttft = facts.ttft_s()) fields.push_back({"ttft", *ttft});
  if (!facts.finish.empty()) fields.push_back({"finish", facts.finish});
  return fields;
}

LogLevel AccessLevel(const ExchangeFacts& facts) {
  constexpr std::array<std::string_view, 6> kQuiet = {"/",        "/health", "/ready",
                                                      "/metrics", "/stats",  "/favicon.ico"};
  const bool quiet = std::find(kQuiet.begin(), kQuiet.end(), facts.path) != kQuiet.end() ||
                     facts.path.starts_with("/page/");
  return quiet && facts.status < 400 ? LogLevel::kDebug : LogLevel::kInfo;
}

void LogAccess(const ExchangeFacts& facts) {
  const LogLevel level = AccessLevel(facts);
  if (LogEnabled(level)) {
    LogLine(level, StrCat(facts.method, " ", OneLine(facts.path)), AccessFields(facts));
  }
}

}  // namespace deepinfer
