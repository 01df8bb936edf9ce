#include "eval/tool_results.h"

#include <vector>

#include "base/strings.h"
#include "eval/dialogue.h"
#include "eval/drawn_values.h"
#include "eval/exercise.h"

namespace deepinfer {
namespace {

struct ResultField {
  std::string_view name;
  Domain domain;
  std::string_view options = {};
};

constexpr ResultField kFound[] = {
    {"temperature", Domain::kSmall},
    {"price", Domain::kDecimal},
    {"sky", Domain::kOption, "clear|cloudy|rainy|sunny"},
    {"total", Domain::kAmount},
    {"distance", Domain::kDecimal},
    {"name", Domain::kFullName},
    {"city", Domain::kCity},
    {"date", Domain::kDate},
    {"time", Domain::kTime},
    {"title", Domain::kTitle},
    {"status", Domain::kOption, "open|closed|ready|late"},
    {"count", Domain::kSmall},
    {"owner", Domain::kFirstName},
    {"color", Domain::kColour},
    {"weight", Domain::kDecimal},
    {"year", Domain::kYear},
};

ToolResult Found(Rng& rng) {
  std::vector<ResultField> fields(std::begin(kFound), std::end(kFound));
  Shuffle(rng, fields);
  JsonValue json = JsonValue::Object();
  std::vector<std::string> clauses;
  const size_t count = 1 + rng.Uniform(2);
  for (size_t i = 0; i < count; ++i) {
    const DrawnValue value = DrawValue(rng, fields[i].domain, fields[i].options);
    json.Set(fields[i].name, value.value);
    clauses.push_back(StrCat("the ", fields[i].name, " is ", value.spoken));
  }
  std::string sentence = StrCat(JoinedNaturally(clauses), ".");
  sentence[0] = 'T';
  return {DumpJson(json), sentence};
}

ToolResult Done(Rng& rng) {
  JsonValue json = JsonValue::Object();
  json.Set("status", JsonValue::String("ok"));
  if (Chance(rng, 0.3)) return {DumpJson(json), "Done."};
  const DrawnValue id = DrawValue(rng, Domain::kCode);
  json.Set("id", id.value);
  return {DumpJson(json), StrCat("Done. The id is ", id.spoken, ".")};
}

ToolResult Failed(Rng& rng) {
  constexpr std::string_view kErrors =
      "not found|no permission|the server is busy|the value is too large|time is over|"
      "already exists|nothing is free on that day|the address is not known|not enough money";
  const std::string error(PickAlternative(rng, kErrors));
  JsonValue json = JsonValue::Object();
  json.Set("error", JsonValue::String(error));
  return {DumpJson(json), StrCat("That did not work: ", error, ".")};
}

}  // namespace

ToolResult DrawToolResult(Rng& rng, bool asks) {
  if (Chance(rng, 0.15)) return Failed(rng);
  return asks ? Found(rng) : Done(rng);
}

}  // namespace deepinfer
