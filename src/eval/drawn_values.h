// eval/drawn_values.h: values for JSON members and call arguments, as JSON and as a request says
// them.
//
// What is spoken holds the value letter for letter, so an answer can be copied out of a request.
#pragma once

#include <string>
#include <string_view>

#include "base/rng.h"
#include "tokens/json.h"

namespace deepinfer {

enum class Domain {
  kFirstName,
  kFullName,
  kCity,
  kCountry,
  kMail,
  kDate,
  kTime,
  kWeekday,
  kCode,
  kObject,
  kFood,
  kAnimal,
  kColour,
  kJob,
  kTitle,       // "The Silent Lamp"
  kPhrase,      // "the green lamp is broken"
  kPath,        // "notes/lamp.txt"
  kSmall,       // integer 1..12
  kAge,         // integer 1..99
  kMinutes,     // integer 5..240, a multiple of 5
  kAmount,      // integer 10..9999
  kYear,        // integer 1900..2030
  kDecimal,     // number with at most two decimals, the last not 0
  kBool,        // spoken "yes" or "no"
  kWords,       // array of 2 or 3 different words
  kFirstNames,  // array of 2 or 3 different names
  kOption,      // one of the options given
};

struct DrawnValue {
  JsonValue value;
  std::string spoken;  // lists as "a, b and c"
};

// options: of kOption, "low|high".
DrawnValue DrawValue(Rng& rng, Domain domain, std::string_view options = {});

// {"type": "string"} and so on: the JSON Schema of such values.
JsonValue SchemaOf(Domain domain, std::string_view options = {});

JsonValue JsonBool(bool value);
// The text of the number as Python prints it.
JsonValue JsonNumber(std::string text);
JsonValue JsonArray(std::vector<JsonValue> items);

}  // namespace deepinfer
