#include "eval/tool_catalogue.h"

#include <algorithm>

#include "base/strings.h"
#include "eval/dialogue.h"
#include "eval/exercise.h"
#include "eval/words.h"

namespace deepinfer {
namespace {

// "the air quality" -> {"air", "quality"}
std::vector<std::string> NameWords(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == ' ') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  std::erase_if(words, [](const std::string& word) {
    return word == "a" || word == "an" || word == "the" || word == "of";
  });
  return words;
}

std::string DrawFunctionName(Rng& rng, const MadeTool& tool) {
  std::vector<std::string> words = NameWords(tool.verb);
  const std::vector<std::string> noun = NameWords(tool.noun);
  const bool noun_first = Chance(rng, 0.1);
  words.insert(noun_first ? words.begin() : words.end(), noun.begin(), noun.end());
  if (!Chance(rng, 0.2)) return Join(words, "_");
  std::string camel = words[0];
  for (size_t i = 1; i < words.size(); ++i) camel += Capitalised(words[i]);
  return camel;
}

// A family nobody thought of: any verb, any thing, parameters named by any words.
ToolFamily DrawFamily(Rng& rng) {
  constexpr Domain kDomains[] = {Domain::kFirstName, Domain::kCity,  Domain::kCode,
                                 Domain::kObject,    Domain::kSmall, Domain::kAmount,
                                 Domain::kDecimal,   Domain::kDate,  Domain::kColour,
                                 Domain::kWords,     Domain::kTitle, Domain::kBool};
  ToolFamily family;
  family.verbs = Pick(rng, ToolFamilies()).verbs;
  family.nouns = StrCat("the ", Pick(rng, Objects()));
  for (int i = 0; i < 4; ++i) {
    const std::string name(Pick(rng, CommonWords()));
    const Domain domain = Pick(rng, kDomains);
    const std::string phrases = domain == Domain::kBool
                                    ? StrCat(", with ", name, "|, without ", name)
                                    : StrCat(" with ", name, " {}|, ", name, " {}");
    family.parameters.push_back({name, StrCat("The ", name), phrases, domain});
  }
  return family;
}

// Some of the family's parameters, each under one of its names, no name twice.
std::vector<ToolParameter> DrawParameters(Rng& rng, std::vector<ToolParameter> all) {
  Shuffle(rng, all);
  const size_t count = 1 + rng.Uniform(std::min<size_t>(4, all.size()));
  std::vector<ToolParameter> chosen;
  for (ToolParameter& parameter : all) {
    if (chosen.size() == count) break;
    parameter.name = std::string(PickAlternative(rng, parameter.name));
    const bool taken = std::any_of(chosen.begin(), chosen.end(), [&](const ToolParameter& other) {
      return other.name == parameter.name;
    });
    if (!taken) chosen.push_back(std::move(parameter));
  }
  return chosen;
}

JsonValue ParametersSchema(Rng& rng, const MadeTool& tool) {
  const bool described = Chance(rng, 0.6);
  JsonValue properties = JsonValue::Object();
  std::vector<JsonValue> required;
  for (size_t i = 0; i < tool.parameters.size(); ++i) {
    const ToolParameter& parameter = tool.parameters[i];
    JsonValue schema = SchemaOf(parameter.domain, parameter.options);
    if (described) schema.Set("description", JsonValue::String(parameter.description));
    properties.Set(parameter.name, std::move(schema));
    if (tool.required[i]) required.push_back(JsonValue::String(parameter.name));
  }
  JsonValue schema = JsonValue::Object();
  schema.Set("type", JsonValue::String("object"));
  schema.Set("properties", std::move(properties));
  schema.Set("required", JsonArray(std::move(required)));
  return schema;
}

std::string DrawDescription(Rng& rng, const std::string& purpose) {
  constexpr std::string_view kWordings =
      "{Purpose}.|Use this to {purpose}.|{Purpose} with the given details.|A tool to {purpose}.";
  return Filled(PickAlternative(rng, kWordings),
                {{"Purpose", Capitalised(purpose)}, {"purpose", purpose}});
}

MadeTool DrawToolOf(Rng& rng, const ToolFamily& family) {
  MadeTool tool;
  tool.answers_what_is = family.answers_what_is;
  tool.verb = PickAlternative(rng, family.verbs);
  tool.noun = PickAlternative(rng, family.nouns);
  tool.parameters = DrawParameters(rng, family.parameters);
  const double required = Chance(rng, 0.5) ? 1 : 0.6;
  for (size_t i = 0; i < tool.parameters.size(); ++i) {
    tool.required.push_back(Chance(rng, required));
  }
  tool.definition.name = DrawFunctionName(rng, tool);
  JsonValue function = JsonValue::Object();
  function.Set("name", JsonValue::String(tool.definition.name));
  const std::string purpose = StrCat(tool.verb, " ", tool.noun);
  function.Set("description", JsonValue::String(DrawDescription(rng, purpose)));
  function.Set("parameters", ParametersSchema(rng, tool));
  tool.definition.function = std::move(function);
  return tool;
}

// ---- Requests -----------------------------------------------------------------------------------

struct Argument {
  const ToolParameter* parameter;
  DrawnValue value;
  std::string_view phrase;  // how a sentence says it: one of the parameter's
};

Argument DrawArgument(Rng& rng, const ToolParameter& parameter) {
  Argument argument{&parameter, DrawValue(rng, parameter.domain, parameter.options), {}};
  const std::vector<std::string_view> phrases = Alternatives(parameter.phrases);
  argument.phrase = parameter.domain == Domain::kBool
                        ? phrases[argument.value.value.boolean ? 0 : 1]
                        : Pick(rng, phrases);
  return argument;
}

// What names the thing comes first, what is set off by a comma last.
int PhraseRank(std::string_view phrase) {
  if (phrase.starts_with(':') || phrase.starts_with(" {}")) return 0;
  return phrase.starts_with(',') ? 2 : 1;
}

void SortAsTold(std::vector<Argument>& arguments) {
  std::stable_sort(arguments.begin(), arguments.end(), [](const auto& a, const auto& b) {
    return PhraseRank(a.phrase) < PhraseRank(b.phrase);
  });
}

std::string DetailsOf(const std::vector<Argument>& arguments) {
  std::string details;
  for (const Argument& argument : arguments) {
    details += Filled(argument.phrase, {{"", argument.value.spoken}});
  }
  return details;
}

std::string SentenceRequest(Rng& rng, const MadeTool& tool, const ToolUse& use,
                            const std::vector<Argument>& arguments) {
  constexpr std::string_view kWordings =
      "{Purpose}{details}.|Please {purpose}{details}.|Can you {purpose}{details}?|"
      "Could you please {purpose}{details}?|I need you to {purpose}{details}.|"
      "I would like to {purpose}{details}.|Hello! Please {purpose}{details}.|"
      "{Purpose}{details}, please.|Would you {purpose}{details}?|I want to {purpose}{details}.|"
      "Help me to {purpose}{details}.|You should {purpose}{details}.";
  constexpr std::string_view kWhatIs =
      "What is {noun}{details}?|Tell me {noun}{details}.|I want to know {noun}{details}.|"
      "Do you know {noun}{details}?|What's {noun}{details}?|What is {noun} like{details}?|How is "
      "{noun}{details}?|And what is {noun}{details}?";
  const bool what_is = tool.answers_what_is && Chance(rng, 0.4);
  const std::string details = DetailsOf(arguments);
  return Filled(PickAlternative(rng, what_is ? kWhatIs : kWordings),
                {{"Purpose", Capitalised(use.purpose)},
                 {"purpose", use.purpose},
                 {"noun", tool.noun},
                 {"details", details}});
}

std::string Spaced(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

// "Book a table. City: Oslo. Guests: 4."
std::string ListRequest(Rng& rng, const ToolUse& use, const std::vector<Argument>& arguments) {
  const bool lines = Chance(rng, 0.5);
  std::string request = StrCat(Capitalised(use.purpose), lines ? ":" : ".");
  for (const Argument& argument : arguments) {
    request += StrCat(lines ? "\n" : " ", Capitalised(Spaced(argument.parameter->name)), ": ",
                      argument.value.spoken, lines ? "" : ".");
  }
  return request;
}

std::vector<Argument> DrawArguments(Rng& rng, const MadeTool& tool) {
  std::vector<Argument> arguments;
  const size_t sure = rng.Uniform(tool.parameters.size());  // a call without arguments says nothing
  const bool none_required =
      std::find(tool.required.begin(), tool.required.end(), true) == tool.required.end();
  for (size_t i = 0; i < tool.parameters.size(); ++i) {
    const bool use = tool.required[i] || (none_required && i == sure) || Chance(rng, 0.5);
    if (!use) continue;
    arguments.push_back(DrawArgument(rng, tool.parameters[i]));
  }
  return arguments;
}

std::string ExplicitValue(Rng& rng, const JsonValue& value) {
  if (!value.IsString()) return DumpJson(value);
  return Chance(rng, 0.5) ? StrCat("\"", value.text, "\"") : value.text;
}

}  // namespace

MadeTool DrawTool(Rng& rng) {
  if (Chance(rng, 0.2)) return DrawToolOf(rng, DrawFamily(rng));
  const ToolFamily& family = Pick(rng, ToolFamilies());
  MadeTool tool = DrawToolOf(rng, family);
  tool.family = &family;
  return tool;
}

MadeTool DrawSimilarTool(Rng& rng, const MadeTool& tool) {
  if (tool.family == nullptr) return DrawTool(rng);
  MadeTool similar = DrawToolOf(rng, *tool.family);
  similar.family = tool.family;
  return similar;
}

ToolUse DrawUse(Rng& rng, const MadeTool& tool) {
  std::vector<Argument> arguments = DrawArguments(rng, tool);
  const double style = rng.UniformDouble();
  const bool is_explicit = style < 0.1, is_list = !is_explicit && style < 0.2;
  if (Chance(rng, 0.5)) Shuffle(rng, arguments);
  if (!is_explicit && !is_list) SortAsTold(arguments);
  ToolUse use;
  use.purpose = StrCat(tool.verb, " ", tool.noun);
  use.call.name = tool.definition.name;
  use.call.arguments = JsonValue::Object();
  for (const Argument& argument : arguments) {
    use.call.arguments.Set(argument.parameter->name, argument.value.value);
  }
  use.request = is_explicit ? ExplicitRequest(rng, use.call)
                : is_list   ? ListRequest(rng, use, arguments)
                            : SentenceRequest(rng, tool, use, arguments);
  return use;
}

std::string ExplicitRequest(Rng& rng, const ToolCall& call) {
  constexpr std::string_view kWordings =
      "Call {name} with {arguments}.|"
      "Use {name} with {arguments}.|"
      "Please call the tool {name} with {arguments}.|"
      "Run {name}: {arguments}.";
  const bool equals = Chance(rng, 0.7);
  std::vector<std::string> parts;
  for (const JsonMember& argument : call.arguments.members) {
    parts.push_back(
        StrCat(argument.key, equals ? " = " : " set to ", ExplicitValue(rng, argument.value)));
  }
  const std::string arguments = Chance(rng, 0.5) ? JoinedNaturally(parts) : Join(parts, ", ");
  const std::string name = QualifiedName(call.name_space, call.name);
  return Filled(PickAlternative(rng, kWordings), {{"name", name}, {"arguments", arguments}});
}

}  // namespace deepinfer
