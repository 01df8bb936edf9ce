#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace deepinfer {
namespace {

spdlog::logger& Logger() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto made = std::make_shared<spdlog::logger>(
        "deepinfer", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern("%^[%H:%M:%S %l]%$ %v");
    made->set_level(spdlog::level::info);
    return made;
  }();
  return *logger;
}

spdlog::level::level_enum Convert(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      break;
  }
  return spdlog::level::off;
}

}  // namespace

void SetLogLevel(LogLevel level) { Logger().set_level(Convert(level)); }

bool LogEnabled(LogLevel level) { return Logger().should_log(Convert(level)); }

void LogLine(LogLevel level, const std::string& line) { Logger().log(Convert(level), line); }

}  // namespace deepinfer
