#include "apps/config_file.h"

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include <optional>

namespace deepinfer {
namespace {

using ConfigValues = std::map<std::string, ConfigValue>;

constexpr int64_t kConfigBytesMax = 1 << 20;

std::string Place(const std::string& path, const toml::source_region& source) {
  return StrCat(path, ":", source.begin.line);
}

// A number, switch or text as it would stand after a flag. Nothing for tables, arrays and dates.
std::optional<std::string> ScalarText(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return StrCat(number->get());
  if (const auto* flag = node.as_boolean()) return StrCat(flag->get());
  if (const auto* number = node.as_floating_point()) {
    char buffer[32];
    return std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, number->get()).ptr);
  }
  return std::nullopt;
}

StatusOr<std::vector<std::string>> Texts(const toml::node& node, const std::string& where) {
  std::vector<std::string> texts;
  const auto add = [&](const toml::node& element) {
    const std::optional<std::string> text = ScalarText(element);
    if (text) texts.push_back(*text);
    return text.has_value();
  };
  bool good = true;
  if (const toml::array* array = node.as_array()) {
    for (const toml::node& element : *array) good = good && add(element);
  } else {
    good = add(node);
  }
  if (!good) {
    return InvalidArgument(where, ": a text, a number, true, false or a list of these is expected");
  }
  return texts;
}

// Adds the keys of one table to `values`; a key that is there already is replaced.
Status AddKeys(const toml::table& table, const std::string& path, bool skip_tables,
               ConfigValues& values) {
  for (const auto& [key, node] : table) {
    if (skip_tables && node.is_table()) continue;
    const std::string name(key.str());
    const std::string where = StrCat(Place(path, node.source()), ": ", name);
    DI_ASSIGN_OR_RETURN(std::vector<std::string> texts, Texts(node, where));
    values[name] = {std::move(texts), where};
  }
  return OkStatus();
}

}  // namespace

StatusOr<ConfigValues> ReadConfigFile(const std::string& path, const std::string& command,
                                      Disk& disk) {
  DI_ASSIGN_OR_RETURN(const std::string text, disk.ReadText(path, kConfigBytesMax));
  const toml::parse_result parsed = toml::parse(text, path);
  if (!parsed) {
    return InvalidArgument(Place(path, parsed.error().source()),
                           ": not valid TOML: ", std::string_view(parsed.error().description()));
  }
  ConfigValues values;
  DI_RETURN_IF_ERROR(AddKeys(parsed.table(), path, /*skip_tables=*/true, values));
  if (const toml::table* own = parsed.table()[command].as_table()) {
    DI_RETURN_IF_ERROR(AddKeys(*own, path, /*skip_tables=*/false, values));
  }
  return values;
}

}  // namespace deepinfer
