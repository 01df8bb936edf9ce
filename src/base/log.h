// base/log.h: one line a fact, to stderr: text, or a JSON object. The logging library stays behind
// log.cc.
//
// Level and format are set once, by apps/. Any thread may log.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/strings.h"

namespace deepinfer {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

enum class LogFormat {
  kText,  // [11:03:00 info] message name=value
  kJson,  // {"time":"2026-11-30T11:03:00.000Z","level":"info","message":"...","name":value}
};

// A named value beside the message.
struct LogField {
  std::string_view name;
  std::variant<std::string, int64_t, double, bool> value;
};

void SetLogLevel(LogLevel level);
void SetLogFormat(LogFormat format);
bool LogEnabled(LogLevel level);
void LogLine(LogLevel level, const std::string& line, const std::vector<LogField>& fields = {});
// The line without time and level: what follows them in either format.
std::string LogText(LogFormat format, std::string_view line, const std::vector<LogField>& fields);

template <typename... Args>
void LogDebug(const Args&... args) {
  if (LogEnabled(LogLevel::kDebug)) LogLine(LogLevel::kDebug, StrCat(args...));
}
template <typename... Args>
void LogInfo(const Args&... args) {
  if (LogEnabled(LogLevel::kInfo)) LogLine(LogLevel::kInfo, StrCat(args...));
}
template <typename... Args>
void LogWarning(const Args&... args) {
  if (LogEnabled(LogLevel::kWarning)) LogLine(LogLevel::kWarning, StrCat(args...));
}
template <typename... Args>
void LogError(const Args&... args) {
  if (LogEnabled(LogLevel::kError)) LogLine(LogLevel::kError, StrCat(args...));
}

}  // namespace deepinfer
