#include "eval/drawn_values.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/strings.h"
#include "eval/dialogue.h"
#include "eval/exercise.h"
#include "eval/words.h"

namespace deepinfer {
namespace {

// "Tavrik", "Molben": names that no list holds, so that copying does not become choosing from one.
std::string DrawInventedName(Rng& rng) {
  constexpr std::string_view kStarts = "b|br|d|dr|f|g|gr|h|k|l|m|n|p|r|s|st|t|tr|v|w|z";
  constexpr std::string_view kVowels = "a|e|i|o|u|ai|ee|ou";
  constexpr std::string_view kEnds = "|l|n|r|s|m|k|t|nd|rk|v";
  std::string name;
  const size_t num_syllables = 2 + rng.Uniform(2);
  for (size_t i = 0; i < num_syllables; ++i) {
    name += PickAlternative(rng, kStarts);
    name += PickAlternative(rng, kVowels);
    if (i + 1 == num_syllables || Chance(rng, 0.3)) name += PickAlternative(rng, kEnds);
  }
  return Capitalised(name);
}

std::string DrawNameOf(Rng& rng, WordList words) {
  return Chance(rng, 0.2) ? DrawInventedName(rng) : std::string(Pick(rng, words));
}

std::string DrawPersonName(Rng& rng) {
  const std::string first = DrawNameOf(rng, FirstNames());
  return StrCat(first, " ", DrawNameOf(rng, Surnames()));
}

std::string DrawTitle(Rng& rng) {
  if (Chance(rng, 0.15)) return StrCat(DrawInventedName(rng), " ", DrawInventedName(rng));
  const std::string adjective = Capitalised(Pick(rng, Adjectives()));
  return StrCat("The ", adjective, " ", Capitalised(Pick(rng, Objects())));
}

std::string DrawPhrase(Rng& rng) {
  constexpr std::string_view kPhrases[] = {
      "the {object} is {adjective}",
      "meet me at {place}",
      "please bring the {object}",
      "I will be at {place} at {time}",
      "the {colour} {object} is ready",
      "we need more {food}",
      "the {animal} is at {place}",
      "call me on {weekday}",
      "thank you for the {object}",
      "the meeting is on {weekday}",
      "I found a {adjective} {object}",
      "see you at {time}",
      "do not forget the {object}",
      "the {job} is waiting",
      "dinner is at {time}",
      "I lost my {colour} {object}",
  };
  const std::string_view phrase = Pick(rng, kPhrases);
  Fillings fillings;
  fillings.emplace_back("object", Pick(rng, Objects()));
  fillings.emplace_back("adjective", Pick(rng, Adjectives()));
  fillings.emplace_back("place", Pick(rng, Places()));
  fillings.emplace_back("colour", Pick(rng, Colours()));
  fillings.emplace_back("food", Pick(rng, Foods()));
  fillings.emplace_back("animal", Pick(rng, Animals()));
  fillings.emplace_back("weekday", Pick(rng, Weekdays()));
  fillings.emplace_back("job", Pick(rng, Jobs()));
  fillings.emplace_back("time", DrawTimeOfDay(rng));
  return Filled(phrase, fillings);
}

std::string DrawPath(Rng& rng) {
  const std::string_view folder =
      PickAlternative(rng, "notes/|work/|home/|data/|photos/|letters/|reports/|");
  const std::string_view name = Pick(rng, CommonWords());
  return StrCat(folder, name, PickAlternative(rng, ".txt|.pdf|.csv|.md|.json|.png"));
}

std::string DrawText(Rng& rng, Domain domain, std::string_view options) {
  switch (domain) {
    case Domain::kFirstName:
      return DrawNameOf(rng, FirstNames());
    case Domain::kFullName:
      return DrawPersonName(rng);
    case Domain::kCity:
      return DrawNameOf(rng, Cities());
    case Domain::kCountry:
      return std::string(Pick(rng, Countries()));
    case Domain::kMail:
      return DrawMailAddress(rng);
    case Domain::kDate:
      return DrawDate(rng);
    case Domain::kTime:
      return DrawTimeOfDay(rng);
    case Domain::kWeekday:
      return std::string(Pick(rng, Weekdays()));
    case Domain::kCode:
      return DrawCode(rng);
    case Domain::kObject:
      return std::string(Pick(rng, Objects()));
    case Domain::kFood:
      return std::string(Pick(rng, Foods()));
    case Domain::kAnimal:
      return std::string(Pick(rng, Animals()));
    case Domain::kColour:
      return std::string(Pick(rng, Colours()));
    case Domain::kJob:
      return std::string(Pick(rng, Jobs()));
    case Domain::kTitle:
      return DrawTitle(rng);
    case Domain::kPhrase:
      return DrawPhrase(rng);
    case Domain::kPath:
      return DrawPath(rng);
    case Domain::kOption:
      return std::string(PickAlternative(rng, options));
    default:
      CHECK(false);
  }
  return "";
}

std::string DrawDecimal(Rng& rng) {
  const int64_t whole = Between(rng, 0, 199);
  if (Chance(rng, 0.15)) return StrCat(whole);
  const bool two_decimals = Chance(rng, 0.5);
  std::string text = StrCat(whole, ".");
  if (two_decimals) text += StrCat(Between(rng, 0, 9));
  return text + StrCat(Between(rng, 1, 9));
}

std::string DrawNumberText(Rng& rng, Domain domain) {
  switch (domain) {
    case Domain::kSmall:
      return StrCat(Between(rng, 1, 12));
    case Domain::kAge:
      return StrCat(Between(rng, 1, 99));
    case Domain::kMinutes:
      return StrCat(Between(rng, 1, 48) * 5);
    case Domain::kAmount:
      return DrawNumber(rng, static_cast<int>(Between(rng, 2, 4)));
    case Domain::kYear:
      return StrCat(Between(rng, 1900, 2030));
    case Domain::kDecimal:
      return DrawDecimal(rng);
    default:
      CHECK(false);
  }
  return "";
}

bool IsNumber(Domain domain) { return domain >= Domain::kSmall && domain <= Domain::kDecimal; }

std::vector<std::string> DrawList(Rng& rng, WordList words) {
  std::vector<std::string> list;
  const size_t count = 2 + rng.Uniform(2);
  while (list.size() < count) {
    std::string word(Pick(rng, words));
    if (std::find(list.begin(), list.end(), word) == list.end()) list.push_back(std::move(word));
  }
  return list;
}

DrawnValue DrawListValue(Rng& rng, WordList words) {
  const std::vector<std::string> list = DrawList(rng, words);
  std::vector<JsonValue> items;
  for (const std::string& word : list) items.push_back(JsonValue::String(word));
  return {JsonArray(std::move(items)), JoinedNaturally(list)};
}

}  // namespace

JsonValue JsonBool(bool value) {
  JsonValue json;
  json.kind = JsonValue::Kind::kBool;
  json.boolean = value;
  return json;
}

JsonValue JsonNumber(std::string text) {
  JsonValue json;
  json.kind = JsonValue::Kind::kNumber;
  json.text = std::move(text);
  return json;
}

JsonValue JsonArray(std::vector<JsonValue> items) {
  JsonValue json;
  json.kind = JsonValue::Kind::kArray;
  json.items = std::move(items);
  return json;
}

DrawnValue DrawValue(Rng& rng, Domain domain, std::string_view options) {
  if (domain == Domain::kBool) {
    const bool value = Chance(rng, 0.5);
    return {JsonBool(value), value ? "yes" : "no"};
  }
  if (domain == Domain::kWords) return DrawListValue(rng, CommonWords());
  if (domain == Domain::kFirstNames) return DrawListValue(rng, FirstNames());
  if (IsNumber(domain)) {
    const std::string text = DrawNumberText(rng, domain);
    return {JsonNumber(text), text};
  }
  const std::string text = DrawText(rng, domain, options);
  return {JsonValue::String(text), text};
}

JsonValue SchemaOf(Domain domain, std::string_view options) {
  JsonValue schema = JsonValue::Object();
  const bool is_list = domain == Domain::kWords || domain == Domain::kFirstNames;
  std::string_view type = "string";
  if (IsNumber(domain)) type = domain == Domain::kDecimal ? "number" : "integer";
  if (domain == Domain::kBool) type = "boolean";
  if (is_list) type = "array";
  schema.Set("type", JsonValue::String(std::string(type)));
  if (is_list) schema.Set("items", SchemaOf(Domain::kObject));
  if (domain != Domain::kOption) return schema;
  std::vector<JsonValue> values;
  for (const std::string_view option : Alternatives(options)) {
    values.push_back(JsonValue::String(std::string(option)));
  }
  schema.Set("enum", JsonArray(std::move(values)));
  return schema;
}

}  // namespace deepinfer
