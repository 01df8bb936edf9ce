// base/strings.h: joining values into text. For messages, not for hot paths.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdio>
#include <string>
#include <string_view>

namespace deepinfer {

inline void AppendText(std::string& out, std::string_view text) { out.append(text); }
inline void AppendText(std::string& out, const char* text) { out.append(text); }
inline void AppendText(std::string& out, char c) { out.push_back(c); }
inline void AppendText(std::string& out, bool value) { out.append(value ? "true" : "false"); }
template <std::integral T>
  requires(!std::same_as<T, bool> && !std::same_as<T, char>)
void AppendText(std::string& out, T value) {
  char buffer[24];
  const char* end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  out.append(buffer, static_cast<size_t>(end - buffer));
}
template <std::floating_point T>
void AppendText(std::string& out, T value) {
  char buffer[32];
  out.append(buffer, static_cast<size_t>(
                         std::snprintf(buffer, sizeof buffer, "%.6g", static_cast<double>(value))));
}

// StrCat("layer ", 3, ": ", 0.5) -> "layer 3: 0.5"
template <typename... Args>
std::string StrCat(const Args&... args) {
  std::string out;
  (AppendText(out, args), ...);
  return out;
}

// The text with its control characters written as \n, \t or \x1b, for messages that quote files.
inline std::string OneLine(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n' || c == '\t') {
      out += c == '\n' ? "\\n" : "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      constexpr char kHex[] = "0123456789abcdef";
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      out += c;
    }
  }
  return out;
}

// Joins the elements of a container with a separator: Join({1, 2}, ", ") -> "1, 2"
template <typename Container>
std::string Join(const Container& items, std::string_view separator) {
  std::string out;
  bool first = true;
  for (const auto& item : items) {
    if (!first) out.append(separator);
    first = false;
    AppendText(out, item);
  }
  return out;
}

}  // namespace deepinfer
