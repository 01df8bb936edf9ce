#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>

namespace deepinfer {
namespace {

std::atomic<LogFormat> log_format{LogFormat::kText};

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

// Bytes of the UTF-8 character that text begins with; 0: it begins with none.
size_t CharacterBytes(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = at(0);
  const size_t count = first < 0x80                     ? 1
                       : first >= 0xc2 && first <= 0xdf ? 2
                       : (first & 0xf0) == 0xe0         ? 3
                       : first >= 0xf0 && first <= 0xf4 ? 4
                                                        : 0;
  if (count == 0 || count > text.size()) return 0;
  for (size_t i = 1; i < count; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
  }
  // Too long a form, a half of a pair, beyond the last character.
  const bool bad =
      count > 2 && ((first == 0xe0 && at(1) < 0xa0) || (first == 0xed && at(1) > 0x9f) ||
                    (first == 0xf0 && at(1) < 0x90) || (first == 0xf4 && at(1) > 0x8f));
  return bad ? 0 : count;
}

// What is not UTF-8 becomes '?': a log must stay readable.
void AppendQuoted(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const size_t count = CharacterBytes(text);
    const char c = text.front();
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (count == 0) {
      out += '?';
    } else if (count == 1 && (c < ' ' || c == '\x7f')) {
      constexpr char kHex[] = "0123456789abcdef";
      out += {'\\', 'u', '0', '0', kHex[(c >> 4) & 15], kHex[c & 15]};
    } else {
      out += text.substr(0, count);
    }
    text.remove_prefix(count == 0 ? 1 : count);
  }
  out += '"';
}

void AppendField(std::string& out, const LogField& field, bool json) {
  const auto* text = std::get_if<std::string>(&field.value);
  if (json) {
    out += ',';
    AppendQuoted(out, field.name);
    out += ':';
    if (text != nullptr) return AppendQuoted(out, *text);
  } else {
    out += StrCat(" ", field.name, "=");
    if (text != nullptr) {
      out += OneLine(*text);
      return;
    }
  }
  if (const auto* whole = std::get_if<int64_t>(&field.value)) AppendText(out, *whole);
  if (const auto* number = std::get_if<double>(&field.value)) AppendText(out, *number);
  if (const auto* yes = std::get_if<bool>(&field.value)) AppendText(out, *yes);
}

}  // namespace

std::string LogText(LogFormat format, std::string_view line, const std::vector<LogField>& fields) {
  const bool json = format == LogFormat::kJson;
  std::string out;
  if (json) {
    out = "\"message\":";
    AppendQuoted(out, line);
  } else {
    out = line;
  }
  for (const LogField& field : fields) AppendField(out, field, json);
  return out;
}

void SetLogFormat(LogFormat format) {
  log_format = format;
  if (format == LogFormat::kJson) {
    Logger().set_pattern(R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})",
                         spdlog::pattern_time_type::utc);
  } else {
    Logger().set_pattern("%^[%H:%M:%S %l]%$ %v");
  }
}

void SetLogLevel(LogLevel level) { Logger().set_level(Convert(level)); }

bool LogEnabled(LogLevel level) { return Logger().should_log(Convert(level)); }

void LogLine(LogLevel level, const std::string& line, const std::vector<LogField>& fields) {
  if (LogEnabled(level)) Logger().log(Convert(level), LogText(log_format, line, fields));
}

}  // namespace deepinfer
