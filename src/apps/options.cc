#include "apps/options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <type_traits>

#include "apps/config_file.h"
#include "apps/environment.h"
#include "base/check.h"

namespace deepinfer {
namespace {

template <typename T>
struct Unwrapped {
  using Type = T;
};
template <typename T>
struct Unwrapped<std::optional<T>> {
  using Type = T;
};

bool IsSwitch(const OptionTarget& target) { return std::holds_alternative<bool*>(target); }
bool IsList(const OptionTarget& target) {
  return std::holds_alternative<std::vector<std::string>*>(target);
}

template <typename T>
std::optional<T> ParseNumber(const std::string& text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) return std::nullopt;
  }
  return value;
}

// Limits are kept as doubles; whole ones are printed as the whole numbers that they are.
std::string LimitText(double limit) {
  const bool whole = limit == std::trunc(limit) && std::abs(limit) < 9e15;
  return whole ? StrCat(static_cast<int64_t>(limit)) : StrCat(limit);
}

// "1..64", "at least 1", "at most 64" or empty.
std::string RangeText(const Option& option) {
  if (option.min && option.max) return StrCat(LimitText(*option.min), "..", LimitText(*option.max));
  if (option.min) return StrCat("at least ", LimitText(*option.min));
  if (option.max) return StrCat("at most ", LimitText(*option.max));
  return "";
}

template <typename T>
Status Refuse(const Option& option, const std::string& where, const std::string& found) {
  std::string wanted = RangeText(option);
  if (!wanted.empty() && !option.unit.empty()) wanted += StrCat(" ", option.unit);
  const std::string_view kind = std::is_floating_point_v<T> ? "a number" : "a whole number";
  return InvalidArgument(where, ": found \"", found, "\", expected ", kind,
                         wanted.empty() ? "" : ", ", wanted);
}

Status ParseInto(const Option&, const std::string& where, const std::string& text, bool& out) {
  if (text == "true" || text == "1") {
    out = true;
  } else if (text == "false" || text == "0") {
    out = false;
  } else {
    return InvalidArgument(where, ": found \"", text, "\", expected true or false");
  }
  return OkStatus();
}

Status ParseInto(const Option& option, const std::string& where, const std::string& text,
                 std::string& out) {
  const auto& choices = option.choices;
  if (!choices.empty() && std::find(choices.begin(), choices.end(), text) == choices.end()) {
    return InvalidArgument(where, ": found \"", text, "\", expected one of ", Join(choices, ", "));
  }
  out = text;
  return OkStatus();
}

template <typename T>
  requires std::is_arithmetic_v<T>
Status ParseInto(const Option& option, const std::string& where, const std::string& text, T& out) {
  const std::optional<T> value = ParseNumber<T>(text);
  const bool good = value && (!option.min || static_cast<double>(*value) >= *option.min) &&
                    (!option.max || static_cast<double>(*value) <= *option.max);
  if (!good) return Refuse<T>(option, where, text);
  out = *value;
  return OkStatus();
}

// Checks the texts given for one option and appends to `writes` what stores them.
template <typename T>
Status Prepare(const Option& option, const std::string& where,
               const std::vector<std::string>& texts, T* target,
               std::vector<std::function<void()>>& writes) {
  if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    for (const std::string& text : texts) {
      std::string checked;
      DI_RETURN_IF_ERROR(ParseInto(option, where, text, checked));
    }
    writes.push_back([target, texts] { *target = texts; });
  } else {
    if (texts.size() != 1) {
      return InvalidArgument(where, ": found ", texts.size(), " values, expected one");
    }
    typename Unwrapped<T>::Type value{};
    DI_RETURN_IF_ERROR(ParseInto(option, where, texts[0], value));
    writes.push_back([target, value] { *target = value; });
  }
  return OkStatus();
}

std::vector<std::string> SplitCommas(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, comma - begin));
    begin = comma + 1;
  }
  return parts;
}

// The value that stands in the struct, for --help. Empty: none.
template <typename T>
std::string DefaultText(const T& value) {
  if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    return Join(value, ",");
  } else if constexpr (std::is_same_v<T, typename Unwrapped<T>::Type>) {
    return StrCat(value);
  } else {
    return value ? StrCat(*value) : "";
  }
}

template <typename T>
std::string_view Placeholder(const Option& option) {
  if constexpr (std::is_arithmetic_v<typename Unwrapped<T>::Type>) {
    return std::is_floating_point_v<typename Unwrapped<T>::Type> ? "X" : "N";
  }
  return option.unit.empty() ? "TEXT" : std::string_view(option.unit);
}

// "  --max-tokens N" and "most tokens to produce (tokens, 1..64; default 16; also DEEPINFER_X)".
template <typename T>
std::string HelpLine(const Option& option, const T& value) {
  constexpr size_t kColumn = 30;
  constexpr bool kIsNumber = std::is_arithmetic_v<typename Unwrapped<T>::Type>;
  std::string line = StrCat("  --", option.flag);
  if constexpr (!std::is_same_v<T, bool>) line += StrCat(" ", Placeholder<T>(option));
  const bool fits = line.size() + 2 <= kColumn;
  line += fits ? std::string(kColumn - line.size(), ' ') : "\n" + std::string(kColumn, ' ');
  std::vector<std::string> notes;
  if (kIsNumber && !option.unit.empty()) notes.push_back(option.unit);
  if (const std::string range = RangeText(option); !range.empty()) notes.push_back(range);
  if (!option.choices.empty()) notes.push_back(Join(option.choices, " | "));
  if constexpr (std::is_same_v<T, bool>) {
    if (value) notes.push_back(StrCat("on by default, --no-", option.flag, " switches it off"));
  } else if (const std::string text = DefaultText(value); !text.empty()) {
    notes.push_back(StrCat("default ", text));
  }
  if (std::is_same_v<T, std::vector<std::string>>) notes.push_back("may be repeated");
  if (!option.environment.empty()) notes.push_back(StrCat("also ", option.environment));
  return StrCat(line, option.help, notes.empty() ? "" : StrCat(" (", Join(notes, "; "), ")"), "\n");
}

}  // namespace

OptionSet::OptionSet(std::string command, std::string about)
    : command_(std::move(command)), about_(std::move(about)) {}

void OptionSet::Add(Option option, OptionTarget target) {
  for (const Entry& entry : entries_) CHECK_NE(entry.option.flag, option.flag);
  CHECK(option.flag != "help" && option.flag != "config");
  entries_.push_back({std::move(option), target});
}

Status OptionSet::ReadFlags(const std::vector<std::string>& arguments, std::string& config_path,
                            GivenByFlag& given) {
  CLI::App app;
  app.set_help_flag("-h,--help");
  app.add_option("--config", config_path);
  for (const Entry& entry : entries_) {
    const std::string& flag = entry.option.flag;
    const auto take = [&given, flag](const CLI::results_t& texts) {
      given[flag] = {texts, "--" + flag, OptionSource::kFlag};
      return true;
    };
    if (IsSwitch(entry.target)) {
      app.add_flag(StrCat("--", flag, ",!--no-", flag))->each([&given, flag](std::string text) {
        given[flag] = {{std::move(text)}, "--" + flag, OptionSource::kFlag};
      });
    } else {
      app.add_option(entry.option.positional ? StrCat(flag, ",--", flag) : "--" + flag, take)
          ->expected(1)
          ->multi_option_policy(IsList(entry.target) ? CLI::MultiOptionPolicy::TakeAll
                                                     : CLI::MultiOptionPolicy::Throw);
    }
  }
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    help_requested_ = true;
  } catch (const CLI::ArgumentMismatch& error) {  // "--flag: 1 required TYPE missing"
    const std::string_view text = error.what();
    return InvalidArgument(text.substr(0, text.find(':')), ": a value is missing; `deepinfer ",
                           command_, " --help` lists the options");
  } catch (const CLI::ParseError& error) {
    return InvalidArgument(error.what(), "; `deepinfer ", command_, " --help` lists the options");
  }
  return OkStatus();
}

void OptionSet::ReadEnvironment(const Environment& environment, GivenByFlag& given) const {
  for (const Entry& entry : entries_) {
    const std::string& name = entry.option.environment;
    const auto at = environment.find(name);
    if (name.empty() || at == environment.end()) continue;
    std::vector<std::string> texts = {at->second};
    if (IsSwitch(entry.target)) {
      texts = {ParseSwitch(at->second) ? "true" : "false"};
    } else if (at->second.empty()) {
      continue;  // set to nothing counts as not set
    } else if (IsList(entry.target)) {
      texts = SplitCommas(at->second);
    }
    given[entry.option.flag] = {std::move(texts), name, OptionSource::kEnvironment};
  }
}

Status OptionSet::ReadFile(const std::string& path, Disk& disk, GivenByFlag& given) const {
  auto values = ReadConfigFile(path, command_, disk);
  if (!values.ok()) return Annotate(values.status(), "--config");
  for (auto& [key, value] : *values) {
    const bool known = std::any_of(entries_.begin(), entries_.end(),
                                   [&](const Entry& entry) { return entry.option.flag == key; });
    if (!known) {
      return InvalidArgument(value.where, ": no such option; `deepinfer ", command_,
                             " --help` lists the options");
    }
    given[key] = {std::move(value.texts), value.where, OptionSource::kFile};
  }
  return OkStatus();
}

Status OptionSet::Store(const GivenByFlag& given) {
  std::vector<std::function<void()>> writes;
  for (Entry& entry : entries_) {
    const auto at = given.find(entry.option.flag);
    entry.source = at == given.end() ? OptionSource::kDefault : at->second.source;
    if (at == given.end()) continue;
    const auto prepare = [&](auto* target) {
      return Prepare(entry.option, at->second.where, at->second.texts, target, writes);
    };
    DI_RETURN_IF_ERROR(std::visit(prepare, entry.target));
  }
  for (const auto& write : writes) write();
  return OkStatus();
}

Status OptionSet::Parse(const std::vector<std::string>& arguments, const OptionInputs& inputs) {
  std::string config_path;
  GivenByFlag flags, given;
  help_requested_ = false;
  DI_RETURN_IF_ERROR(ReadFlags(arguments, config_path, flags));
  if (help_requested_) return OkStatus();
  if (!config_path.empty()) DI_RETURN_IF_ERROR(ReadFile(config_path, inputs.disk, given));
  ReadEnvironment(inputs.environment, given);
  for (auto& [flag, value] : flags) given[flag] = std::move(value);
  DI_RETURN_IF_ERROR(Store(given));

  std::set<std::string> used;
  for (const Entry& entry : entries_) used.insert(entry.option.environment);
  ReportUnusedNames(inputs.environment, used);
  return OkStatus();
}

std::string OptionSet::HelpText() const {
  std::string usage = StrCat("Usage: deepinfer ", command_), lines;
  for (const Entry& entry : entries_) {
    if (entry.option.positional) usage += StrCat(" [", entry.option.flag, "]");
    lines += std::visit([&](const auto* target) { return HelpLine(entry.option, *target); },
                        entry.target);
  }
  lines += HelpLine({.flag = "config", .help = "options from a TOML file", .unit = "FILE"},
                    std::string());
  lines += HelpLine({.flag = "help", .help = "shows this text"}, false);
  return StrCat(usage, " [options]\n\n", about_, "\n\nOptions:\n", lines);
}

OptionSource OptionSet::SourceOf(const std::string& flag) const {
  for (const Entry& entry : entries_) {
    if (entry.option.flag == flag) return entry.source;
  }
  CheckFailed(__FILE__, __LINE__, StrCat("no option --", flag));
}

}  // namespace deepinfer
