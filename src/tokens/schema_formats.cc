#include "tokens/schema_formats.h"

#include <utility>
#include <vector>

#include "base/strings.h"

namespace deepinfer {
namespace {

// RFC 3339. Years from 1000 on; 29 February in leap years only; no leap seconds.
std::string Date() {
  const std::string leap =
      "([1-9][0-9](0[48]|[2468][048]|[13579][26])|([2468][048]|[13579][26])00)-02-29";
  return "([1-9][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|"
         "30)|02-(0[1-9]|1[0-9]|2[0-8]))|" +
         leap + ")";
}

std::string Time() {
  const std::string hour_minute = "([01][0-9]|2[0-3]):[0-5][0-9]";
  return hour_minute + ":[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]" + hour_minute + ")";
}

// RFC 3339, appendix A.
std::string Duration() {
  const std::string n = "[0-9]{1,6}";
  const std::string time =
      "T(" + n + "H(" + n + "M(" + n + "S)?)?|" + n + "M(" + n + "S)?|" + n + "S)";
  const std::string date =
      "(" + n + "Y(" + n + "M(" + n + "D)?)?|" + n + "M(" + n + "D)?|" + n + "D)(" + time + ")?";
  return "P(" + date + "|" + time + "|" + n + "W)";
}

// RFC 1123: up to five labels of up to 29 characters, without two "-" side by side: those are
// reserved in places (RFC 5891).
std::string Hostname() {
  const std::string label = "[A-Za-z0-9]([A-Za-z0-9]|-[A-Za-z0-9]){0,14}";
  return label + "(\\." + label + "){0,4}";
}

// RFC 5321 without quoted names and addresses in brackets.
std::string Email() {
  const std::string atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,30}";
  return atom + "(\\." + atom + ")?@" + Hostname();
}

std::string Ipv4() {
  const std::string byte = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
  return byte + "(\\." + byte + "){3}";
}

// RFC 4291: eight groups, or fewer with one "::" between or beside them.
std::string Ipv6() {
  const std::string group = "[0-9A-Fa-f]{1,4}";
  std::string ways = "(" + group + ":){7}" + group;
  for (int before = 0; before <= 6; ++before) {
    const std::string left = before == 0 ? ":" : "(" + group + ":){" + std::to_string(before) + "}";
    const int after = 6 - before;
    std::string right;
    if (after > 0) right = "(" + group + "(:" + group + "){0," + std::to_string(after - 1) + "})?";
    ways += "|" + left + ":" + right;
  }
  return "(" + ways + ")";
}

std::string Uuid() { return "[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"; }

// RFC 3986, with an authority: scheme://host:port/path?query#fragment.
std::string Uri() {
  const std::string plain = "([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-F]{2})";
  const std::string longer = "(" + plain + "|[/?])*";
  return "[A-Za-z][A-Za-z0-9+.-]{0,14}://" + Hostname() + "(:[0-9]{1,5})?(/" + plain + "*)*(\\?" +
         longer + ")?(#" + longer + ")?";
}

const std::vector<std::pair<std::string_view, std::string>>& Formats() {
  static const std::vector<std::pair<std::string_view, std::string>> formats{
      {"date", Date()},         {"date-time", Date() + "T" + Time()},
      {"duration", Duration()}, {"email", Email()},
      {"hostname", Hostname()}, {"ipv4", Ipv4()},
      {"ipv6", Ipv6()},         {"json-pointer", "(/([^/~]|~[01])*)*"},
      {"time", Time()},         {"uri", Uri()},
      {"uuid", Uuid()}};
  return formats;
}

}  // namespace

std::optional<std::string> FormatRegex(std::string_view name) {
  for (const auto& [known, text] : Formats()) {
    if (known == name) return text;
  }
  return std::nullopt;
}

std::string FormatNames() {
  std::vector<std::string_view> names;
  for (const auto& [name, text] : Formats()) names.push_back(name);
  return Join(names, ", ");
}

}  // namespace deepinfer
