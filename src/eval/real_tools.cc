#include "eval/real_tools.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "eval/dialogue.h"
#include "eval/drawn_values.h"
#include "eval/exercise.h"

namespace deepinfer {
namespace {

constexpr size_t kArgumentsMax = 4;

std::string_view TextMember(const JsonValue& object, std::string_view key) {
  const JsonValue* const member = object.Find(key);
  return member != nullptr && member->IsString() ? std::string_view(member->text) : "";
}

const JsonValue* PropertiesOf(const JsonValue& function) {
  const JsonValue* const parameters = function.Find("parameters");
  const JsonValue* const properties =
      parameters == nullptr ? nullptr : parameters->Find("properties");
  return properties != nullptr && properties->IsObject() ? properties : nullptr;
}

bool IsRequired(const JsonValue& function, std::string_view name) {
  const JsonValue* const required = function.Find("parameters")->Find("required");
  if (required == nullptr) return false;
  return std::any_of(required->items.begin(), required->items.end(),
                     [&](const JsonValue& item) { return item.text == name; });
}

bool CanDraw(const JsonValue& schema) {
  const std::string_view type = TextMember(schema, "type");
  const JsonValue* const items = schema.Find("items");
  if (type == "array") return items != nullptr && TextMember(*items, "type") == "string";
  return type == "string" || type == "integer" || type == "number" || type == "boolean";
}

// A value that suits the property's name.
Domain DomainOfText(Rng& rng, std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  const auto has = [&](std::string_view part) { return lower.find(part) != std::string::npos; };
  if (has("mail")) return Domain::kMail;
  if (has("date") || has("time")) return Domain::kDate;
  if (has("path") || has("file")) return Domain::kPath;
  if (has("description") || has("message") || has("body") || has("text")) return Domain::kPhrase;
  if (has("title")) return Domain::kTitle;
  if (has("owner") || has("user")) return Domain::kFirstName;
  if (has("id") || has("arn") || has("token")) return Domain::kCode;
  return Chance(rng, 0.5) ? Domain::kObject : Domain::kCode;
}

JsonValue DrawArgument(Rng& rng, std::string_view name, const JsonValue& schema) {
  const JsonValue* const options = schema.Find("enum");
  if (options != nullptr && !options->items.empty()) return Pick(rng, options->items);
  const std::string_view type = TextMember(schema, "type");
  if (type == "integer") return DrawValue(rng, Domain::kAmount).value;
  if (type == "number") return DrawValue(rng, Domain::kDecimal).value;
  if (type == "boolean") return DrawValue(rng, Domain::kBool).value;
  if (type == "array") return DrawValue(rng, Domain::kWords).value;
  return DrawValue(rng, DomainOfText(rng, name)).value;
}

// The first sentence without its end: "Creates a table".
std::string FirstSentence(std::string_view description) {
  const size_t end = std::min(description.find(". "), description.find('\n'));
  std::string sentence(description.substr(0, end));
  while (!sentence.empty() && (sentence.back() == '.' || sentence.back() == ' ')) {
    sentence.pop_back();
  }
  return sentence;
}

std::string DescribedRequest(Rng& rng, const ToolCall& call, const std::string& purpose) {
  constexpr std::string_view kWordings =
      "I need a tool for this: {purpose}. Set {arguments}.|"
      "Task: {purpose}. Use {arguments}.|"
      "{purpose}. The values are {arguments}.";
  std::vector<std::string> parts;
  for (const JsonMember& argument : call.arguments.members) {
    const JsonValue& value = argument.value;
    parts.push_back(StrCat(argument.key, Chance(rng, 0.5) ? " = " : " to ",
                           value.IsString() ? value.text : DumpJson(value)));
  }
  return Filled(PickAlternative(rng, kWordings),
                {{"purpose", purpose}, {"arguments", JoinedNaturally(parts)}});
}

}  // namespace

std::optional<ToolDefinition> ReadRealTool(std::string_view json_text) {
  StatusOr<JsonValue> function = ParseJson(json_text);
  if (!function.ok() || !function->IsObject()) return std::nullopt;
  const std::string name(TextMember(*function, "name"));
  const JsonValue* const properties = PropertiesOf(*function);
  if (name.empty() || name.find("::") != std::string::npos || properties == nullptr) {
    return std::nullopt;
  }
  for (const JsonMember& property : properties->members) {
    if (IsRequired(*function, property.key) && !CanDraw(property.value)) return std::nullopt;
  }
  return ToolDefinition{.name = name, .function = *std::move(function)};
}

std::optional<ToolUse> DrawRealUse(Rng& rng, const ToolDefinition& tool) {
  ToolUse use;
  use.call.name = tool.name;
  use.call.arguments = JsonValue::Object();
  for (const JsonMember& property : PropertiesOf(tool.function)->members) {
    const bool required = IsRequired(tool.function, property.key);
    if (!required && (!CanDraw(property.value) || Chance(rng, 0.6))) continue;
    use.call.arguments.Set(property.key, DrawArgument(rng, property.key, property.value));
  }
  if (Chance(rng, 0.5)) Shuffle(rng, use.call.arguments.members);
  const size_t count = use.call.arguments.members.size();
  if (count == 0 || count > kArgumentsMax) return std::nullopt;
  const std::string sentence = FirstSentence(TextMember(tool.function, "description"));
  use.purpose = StrCat("use ", tool.name);
  const bool describe = !sentence.empty() && sentence.size() <= 120 && Chance(rng, 0.5);
  use.request =
      describe ? DescribedRequest(rng, use.call, sentence) : ExplicitRequest(rng, use.call);
  return use;
}

}  // namespace deepinfer
