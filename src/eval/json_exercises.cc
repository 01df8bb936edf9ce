#include "eval/json_exercises.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "eval/dialogue.h"
#include "eval/fact_sheets.h"
#include "eval/json_breaking.h"
#include "eval/words.h"

namespace deepinfer {
namespace {

constexpr std::string_view kTask = "json";

struct Item {
  std::string key;
  std::string ask;
  std::string answer;
  std::string reasoning;
  std::optional<JsonValue> response_schema;
};

// ---- The object and its schema ------------------------------------------------------------------

// The columns that the answer holds, in its order; those of `inner` in an object under `inner_key`.
struct Layout {
  std::vector<size_t> outer;
  std::vector<size_t> inner;
  std::string inner_key;
};

Layout DrawLayout(Rng& rng, const SheetForm& form) {
  Layout layout;
  for (size_t i = 0; i < form.columns.size(); ++i) {
    const bool left_out = i > 0 && form.columns.size() > 3 && Chance(rng, 0.2);
    if (!left_out) layout.outer.push_back(i);
  }
  if (Chance(rng, 0.4)) Shuffle(rng, layout.outer);
  if (layout.outer.size() >= 4 && Chance(rng, 0.25)) {
    layout.inner.assign(layout.outer.end() - 2, layout.outer.end());
    layout.outer.resize(layout.outer.size() - 2);
    layout.inner_key = std::string(PickAlternative(rng, "details|info|data|more|extra"));
  }
  return layout;
}

JsonValue ObjectOf(const SheetForm& form, const SheetRow& row, const std::vector<size_t>& columns) {
  JsonValue object = JsonValue::Object();
  for (const size_t column : columns) object.Set(form.columns[column].name, row[column].value);
  return object;
}

JsonValue ObjectOf(const SheetForm& form, const SheetRow& row, const Layout& layout) {
  JsonValue object = ObjectOf(form, row, layout.outer);
  if (!layout.inner.empty()) object.Set(layout.inner_key, ObjectOf(form, row, layout.inner));
  return object;
}

// {"type": "object", "properties": ..., "required": all}
JsonValue ObjectSchema(JsonValue properties, bool closed) {
  std::vector<JsonValue> required;
  for (const JsonMember& property : properties.members) {
    required.push_back(JsonValue::String(property.key));
  }
  JsonValue schema = JsonValue::Object();
  schema.Set("type", JsonValue::String("object"));
  schema.Set("properties", std::move(properties));
  schema.Set("required", JsonArray(std::move(required)));
  if (closed) schema.Set("additionalProperties", JsonBool(false));
  return schema;
}

JsonValue PropertiesOf(const SheetForm& form, const std::vector<size_t>& columns) {
  JsonValue properties = JsonValue::Object();
  for (const size_t column : columns) {
    const FactKind& fact = form.columns[column];
    properties.Set(fact.name, SchemaOf(fact.domain, fact.options));
  }
  return properties;
}

JsonValue SchemaOf(const SheetForm& form, const Layout& layout, bool closed) {
  JsonValue properties = PropertiesOf(form, layout.outer);
  if (!layout.inner.empty()) {
    properties.Set(layout.inner_key, ObjectSchema(PropertiesOf(form, layout.inner), closed));
  }
  return ObjectSchema(std::move(properties), closed);
}

// "title": "Full name" beside every property, as some libraries write their schemas.
void AddTitles(JsonValue& schema) {
  const JsonValue* const properties = schema.Find("properties");
  if (properties == nullptr) return;
  JsonValue titled = *properties;
  for (JsonMember& property : titled.members) {
    AddTitles(property.value);
    property.value.Set("title", JsonValue::String(TableHead(property.key)));
  }
  schema.Set("properties", std::move(titled));
}

// "name (string), tags (array)", an object's keys behind its name.
std::string KeyList(const JsonValue& schema) {
  std::vector<std::string> keys;
  for (const JsonMember& property : schema.Find("properties")->members) {
    const std::string& type = property.value.Find("type")->text;
    const bool is_object = type == "object";
    keys.push_back(StrCat(property.key, " (",
                          is_object ? StrCat("object with ", KeyList(property.value)) : type, ")"));
  }
  return JoinedNaturally(keys);
}

// ---- Requests -----------------------------------------------------------------------------------

// Puts the schema where one of three ways wants it.
void AskWithSchema(Rng& rng, std::string text, std::string_view what, JsonValue schema,
                   Item& item) {
  constexpr std::string_view kGiven =
      "{text}|Extract the data of {what}: {text}|{text}\n\nGive me {what} as JSON.|"
      "Turn this into JSON for {what}:\n{text}|Read this and fill in the schema.\n{text}|"
      "What does this say about {what}? {text}";
  constexpr std::string_view kInText =
      "{text}\n\nGive me {what} as JSON after this schema: {schema}|"
      "Schema: {schema}\n\nText: {text}\n\nAnswer with JSON for {what}.|"
      "Write {what} as JSON. The schema is {schema}. The text is:\n{text}|"
      "Extract {what} from the text.\n{text}\nUse this JSON schema:\n{schema}";
  constexpr std::string_view kKeys =
      "{text}\n\nGive me {what} as JSON with the keys {keys}.|"
      "Make JSON with the keys {keys} for {what}: {text}|"
      "Answer with JSON only, the keys are {keys}. Describe {what}.\n{text}";
  if (Chance(rng, 0.15)) AddTitles(schema);
  std::string_view wordings = kGiven;
  const double way = rng.UniformDouble();
  if (way < 0.5) {
    item.response_schema = schema;
  } else {
    wordings = way < 0.8 ? kInText : kKeys;
  }
  item.ask = Filled(PickAlternative(rng, wordings), {{"text", std::move(text)},
                                                     {"what", std::string(what)},
                                                     {"schema", DumpJson(schema)},
                                                     {"keys", KeyList(schema)}});
  std::vector<std::string> names;
  for (const JsonMember& property : schema.Find("properties")->members) {
    names.push_back(property.key);
  }
  item.reasoning = StrCat("I need ", JoinedNaturally(names), ".");
}

void SetAnswer(const JsonValue& value, Item& item) {
  item.answer = DumpJson(value);
  item.key = item.answer;
}

size_t DrawNumFacts(Rng& rng) {
  constexpr size_t kCounts[] = {1, 2, 2, 3, 3, 3, 4, 4, 5, 6};
  return Pick(rng, kCounts);
}

// One thing told in prose or lines, sometimes with another one beside it.
Item OneSheet(Rng& rng) {
  const SheetForm form = DrawForm(rng, DrawNumFacts(rng));
  const SheetRow row = DrawRow(rng, form);
  const Layout layout = DrawLayout(rng, form);
  std::string what = StrCat("the ", form.kind->thing);
  std::string text = Chance(rng, 0.7) ? Prose(rng, form, row) : KeyLines(rng, form, row);
  if (Chance(rng, 0.15)) {
    SheetRow other = DrawRow(rng, form);
    while (other[0].spoken == row[0].spoken) other = DrawRow(rng, form);
    const std::string beside = Prose(rng, form, other);
    text = Prose(rng, form, row);
    text = Chance(rng, 0.5) ? StrCat(text, " ", beside) : StrCat(beside, " ", text);
    what = row[0].spoken;
  }
  Item item;
  SetAnswer(ObjectOf(form, row, layout), item);
  AskWithSchema(rng, std::move(text), what, SchemaOf(form, layout, Chance(rng, 0.5)), item);
  // Without a word of which thing is meant only one may be told.
  if (what == row[0].spoken) item.ask += StrCat("\nOnly ", what, ".");
  return item;
}

std::vector<SheetRow> DrawRows(Rng& rng, const SheetForm& form, size_t count) {
  std::vector<SheetRow> rows;
  while (rows.size() < count) {
    SheetRow row = DrawRow(rng, form);
    const bool taken = std::any_of(rows.begin(), rows.end(), [&](const SheetRow& other) {
      return other[0].spoken == row[0].spoken;
    });
    if (!taken) rows.push_back(std::move(row));
  }
  return rows;
}

// One row of a table.
Item TableRow(Rng& rng) {
  const SheetForm form = DrawForm(rng, 1 + rng.Uniform(4));
  const std::vector<SheetRow> rows = DrawRows(rng, form, 1 + rng.Uniform(4));
  const SheetRow& row = Pick(rng, rows);
  const Layout layout = DrawLayout(rng, form);
  Item item;
  SetAnswer(ObjectOf(form, row, layout), item);
  AskWithSchema(rng, Table(rng, form, rows), row[0].spoken,
                SchemaOf(form, layout, Chance(rng, 0.5)), item);
  item.ask += StrCat("\nOnly the row of ", row[0].spoken, ".");
  return item;
}

// A whole table, as an array under the plural's name.
Item WholeTable(Rng& rng) {
  const SheetForm form = DrawForm(rng, 1 + rng.Uniform(3));
  const std::vector<SheetRow> rows = DrawRows(rng, form, 1 + rng.Uniform(3));
  Layout layout;
  for (size_t i = 0; i < form.columns.size(); ++i) layout.outer.push_back(i);
  const bool closed = Chance(rng, 0.5);
  std::vector<JsonValue> objects;
  for (const SheetRow& row : rows) objects.push_back(ObjectOf(form, row, layout));
  JsonValue answer = JsonValue::Object();
  answer.Set(form.kind->plural, JsonArray(std::move(objects)));
  JsonValue list = JsonValue::Object();
  list.Set("type", JsonValue::String("array"));
  list.Set("items", SchemaOf(form, layout, closed));
  JsonValue properties = JsonValue::Object();
  properties.Set(form.kind->plural, std::move(list));
  Item item;
  SetAnswer(answer, item);
  AskWithSchema(rng, Table(rng, form, rows), StrCat("all ", form.kind->plural),
                ObjectSchema(std::move(properties), closed), item);
  return item;
}

// The same without a schema: a bare array of objects.
Item BareArray(Rng& rng) {
  constexpr std::string_view kWordings =
      "{table}\n\nWrite this table as a JSON array of objects.|"
      "Turn the table into a JSON array:\n{table}|"
      "One JSON object for every row, in an array:\n{table}";
  const SheetForm form = DrawForm(rng, 1 + rng.Uniform(3));
  const std::vector<SheetRow> rows = DrawRows(rng, form, 1 + rng.Uniform(3));
  std::vector<size_t> columns;
  for (size_t i = 0; i < form.columns.size(); ++i) columns.push_back(i);
  std::vector<JsonValue> objects;
  for (const SheetRow& row : rows) objects.push_back(ObjectOf(form, row, columns));
  Item item;
  SetAnswer(JsonArray(std::move(objects)), item);
  item.ask = Filled(PickAlternative(rng, kWordings), {{"table", Table(rng, form, rows, true)}});
  item.reasoning = StrCat("The table has ", rows.size(), rows.size() == 1 ? " row." : " rows.");
  return item;
}

Item Repair(Rng& rng) {
  constexpr std::string_view kWordings =
      "Repair this JSON: {json}|This JSON is broken, please fix it:\n{json}|"
      "Correct the mistake in this JSON.\n{json}|{json}\n\nWhat is the valid JSON?|"
      "Make this valid JSON: {json}|Fix: {json}";
  const SheetForm form = DrawForm(rng, 1 + rng.Uniform(4));
  const SheetRow row = DrawRow(rng, form);
  Item item;
  SetAnswer(ObjectOf(form, row, DrawLayout(rng, form)), item);
  item.ask = Filled(PickAlternative(rng, kWordings), {{"json", BreakJson(rng, item.answer)}});
  item.reasoning = "I write it again without the mistake.";
  return item;
}

Item Change(Rng& rng) {
  constexpr std::string_view kWordings =
      "{json}\n\nSet {key} to {value}.|Change {key} to {value} in this JSON: {json}|"
      "In this JSON {key} must be {value}:\n{json}|Update {json}: {key} is now {value}.";
  const SheetForm form = DrawForm(rng, 1 + rng.Uniform(4));
  JsonValue object = JsonValue::Object();
  for (const FactKind& fact : form.columns) {
    object.Set(fact.name, DrawValue(rng, fact.domain, fact.options).value);
  }
  const std::string before = DumpJson(object);
  const FactKind& fact = Pick(rng, form.columns);
  const DrawnValue value = DrawValue(rng, fact.domain, fact.options);
  object.Set(fact.name, value.value);
  Item item;
  SetAnswer(object, item);
  const std::string spoken = value.value.IsString() ? value.spoken : DumpJson(value.value);
  item.ask = Filled(PickAlternative(rng, kWordings),
                    {{"json", before}, {"key", fact.name}, {"value", spoken}});
  item.reasoning = StrCat("Only ", fact.name, " changes.");
  return item;
}

Item DrawItem(Rng& rng) {
  const double kind = rng.UniformDouble();
  if (kind < 0.5) return OneSheet(rng);
  if (kind < 0.65) return TableRow(rng);
  if (kind < 0.75) return WholeTable(rng);
  if (kind < 0.8) return BareArray(rng);
  return kind < 0.93 ? Repair(rng) : Change(rng);
}

}  // namespace

StatusOr<Exercise> DrawJson(DrawContext& context) {
  Item item = DrawInSplit(context, kTask, [&] { return DrawItem(context.rng); });
  Exercise exercise;
  exercise.task = kTask;
  exercise.key = std::move(item.key);
  exercise.grading = Grading::kJson;
  exercise.conversation.response_schema = std::move(item.response_schema);
  exercise.conversation.messages = {UserMessage(std::move(item.ask)),
                                    AssistantMessage(item.answer, std::move(item.reasoning))};
  MaybeAddNeutralSystem(context.rng, exercise.conversation);
  return exercise;
}

}  // namespace deepinfer
