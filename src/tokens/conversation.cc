#include "tokens/conversation.h"

#include <charconv>

namespace deepinfer {
namespace {

struct EffortName {
  std::string_view name;
  int effort;  // 0 = thinking off
};

// The three names of the model, and what APIs call them. The row 25/50/75/100 that other engines
// use is not this model's.
constexpr EffortName kEffortNames[] = {{"none", 0},  {"minimal", 50}, {"low", 50},  {"medium", 75},
                                       {"high", 75}, {"xhigh", 75},   {"max", 100}, {"ultra", 100}};

}  // namespace

std::string TaskToken(Task task) { return StrCat("<｜", TaskName(task), "｜>"); }

std::string QualifiedName(std::string_view name_space, std::string_view name) {
  return name_space.empty() ? std::string(name) : StrCat(name_space, "::", name);
}

StatusOr<Thinking> ParseEffort(std::string_view effort) {
  for (const EffortName& known : kEffortNames) {
    if (known.name != effort) continue;
    if (known.effort == 0) return Thinking{.enabled = false};
    return Thinking{.enabled = true, .effort = known.effort};
  }
  int number = 0;
  const char* end = effort.data() + effort.size();
  const auto [read_to, error] = std::from_chars(effort.data(), end, number);
  if (error == std::errc() && read_to == end && number >= 1 && number <= 100) {
    return Thinking{.enabled = true, .effort = number};
  }
  std::string found;
  AppendJsonString(effort, found);
  return InvalidArgument("expected ", kEffortValues, ", found ", found);
}

}  // namespace deepinfer
