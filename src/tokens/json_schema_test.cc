// JSON Schema as grammars: what is taken, what is not, what is refused.
#include "tokens/grammar_test_util.h"
#include "tokens/json.h"
#include "tokens/schema_numbers.h"

namespace deepinfer {
namespace {

std::shared_ptr<const Grammar> OfSchema(std::string schema) {
  return CompileSmall({.kind = StructuredOutput::Kind::kJsonSchema, .text = std::move(schema)});
}
Status Check(std::string schema) {
  return CheckStructuredOutput(
      {.kind = StructuredOutput::Kind::kJsonSchema, .text = std::move(schema)});
}

// case_25: both branches of allOf hold.
TEST(JsonSchema, Case25AllOfIsEnforced) {
  const auto grammar = OfSchema(R"({
      "$defs": {"Base": {"type": "object", "properties": {"x": {"type": "integer", "minimum": 10}},
                         "required": ["x"]}},
      "allOf": [{"$ref": "#/$defs/Base"},
                {"properties": {"y": {"type": "string"}}, "required": ["y"]}]})");
  EXPECT_TRUE(Takes(grammar, R"({"x": 10, "y": "a"})"));
  GrammarMatcher matcher(grammar);
  for (const int32_t id : ByteIds(R"({"x":5)")) ASSERT_TRUE(matcher.Accept(id));
  EXPECT_FALSE(Allows(MaskOf(matcher), kSmallByteId + ','));
  EXPECT_FALSE(Takes(grammar, R"({"x": 10})"));
  EXPECT_FALSE(Takes(grammar, R"({"x": 10, "y": 1})"));
}

// case_26: supported, or refused with keyword and JSON pointer.
TEST(JsonSchema, Case26NamesWhatItDoesNotSupport) {
  const std::pair<std::string, std::string> refused[] = {
      {R"({"properties": {"a/b": {"contains": {"type": "null"}}}})",
       "at /properties/a~1b: keyword 'contains' is not supported"},
      {R"({"items": {"uniqueItems": true, "type": "array"}})",
       "at /items: keyword 'uniqueItems' is not supported"},
      {R"({"$defs": {"a": {"$dynamicRef": "#x"}}, "allOf": [{"$ref": "#/$defs/a"}]})",
       "at /$defs/a: keyword '$dynamicRef' is not supported"},
      {R"({"anyOf": [{"type": "array", "unevaluatedItems": false}]})",
       "at /anyOf/0: keyword 'unevaluatedItems' is not supported"},
      {R"({"type": "string", "format": "idn-email"})",
       "at /: keyword 'format' of 'idn-email' is not supported (date, date-time, duration, email, "
       "hostname, ipv4, ipv6, json-pointer, time, uri, uuid are)"},
      {R"({"type": "number", "multipleOf": 0.1})",
       "at /: keyword 'multipleOf' of 0.1 is not supported (whole numbers up to 1000 are)"},
      {R"({"oneOf": [{"minimum": 2, "type": "number"}, {"maximum": 3, "type": "number"}]})",
       "at /: keyword 'oneOf', whose branches 0 and 1 may both hold for a value, is not supported "
       "(anyOf is)"},
      {R"({"if": {"propertyNames": {"maxLength": 1}}, "then": {"minProperties": 1}})",
       "at /: keyword 'if' of this schema is not supported"},
      {R"({"not": {"pattern": "^a"}})", "at /: keyword 'not' of this schema is not supported"},
      {R"({"$ref": "other.json"})",
       "at /: keyword '$ref' to 'other.json', outside of the schema, is not supported"},
      {R"x({"type": "string", "pattern": "^(?!a)"})x",
       "at /: keyword 'pattern': regular expression, byte 2: look-ahead is not supported"},
      {R"({"type": "object", "minProperties": 3})",
       "at /: keyword 'minProperties' of more than one property without a name in the schema is "
       "not supported"},
      {R"({"title": "x", "x-mine": 1})", "at /: keyword 'x-mine' is not supported"},
      {R"({"$schema": "http://json-schema.org/draft-04/schema#"})",
       "at /: the dialect 'http://json-schema.org/draft-04/schema#' in keyword '$schema' is not "
       "supported (2020-12, 2019-09, draft-07 and draft-06 are)"},
  };
  for (const auto& [schema, message] : refused) {
    const Status status = Check(schema);
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented) << schema;
    EXPECT_EQ(MessageOf(status), message) << schema;
  }
}

TEST(JsonSchema, Case26PatternPropertiesAndPropertyNames) {
  const auto patterns = OfSchema(R"({"type": "object", "properties": {"x1": {"type": "null"}},
      "patternProperties": {"^x": {"maximum": 9, "type": ["integer", "null"]}},
      "additionalProperties": {"type": "string"}})");
  EXPECT_TRUE(Takes(patterns, R"({"x1": null, "x2": 7, "y": "s"})"));
  EXPECT_FALSE(Takes(patterns, R"({"x1": 7})"));
  EXPECT_FALSE(Takes(patterns, R"({"x2": 10})"));
  EXPECT_FALSE(Takes(patterns, R"({"x2": "s"})"));
  EXPECT_FALSE(Takes(patterns, R"({"y": 1})"));
  const auto names = OfSchema(R"({"type": "object", "propertyNames": {"pattern": "^[a-c]{2}$"}})");
  EXPECT_TRUE(Takes(names, R"({"ab": [1], "cc": {}})"));
  EXPECT_FALSE(Takes(names, R"({"abc": 1})"));
  const auto listed = OfSchema(R"({"propertyNames": {"enum": ["a", "b"]}})");
  EXPECT_TRUE(Takes(listed, R"({"b": 1})"));
  EXPECT_FALSE(Takes(listed, R"({"c": 1})"));
}

TEST(JsonSchema, Case26UnevaluatedProperties) {
  const auto grammar = OfSchema(R"({"type": "object", "allOf": [{"properties": {"a": {}}}],
      "anyOf": [{"properties": {"b": {"type": "null"}}, "required": ["b"]},
                {"properties": {"c": {}}, "required": ["c"]}],
      "unevaluatedProperties": false})");
  EXPECT_TRUE(Takes(grammar, R"({"a": 1, "b": null})"));
  EXPECT_TRUE(Takes(grammar, R"({"c": 1})"));
  EXPECT_FALSE(Takes(grammar, R"({"a": 1, "b": null, "d": 1})"));
  EXPECT_FALSE(Takes(grammar, R"({"a": 1})"));
}

TEST(JsonSchema, Case26Conditions) {
  const auto grammar = OfSchema(R"({"type": "object",
      "properties": {"kind": {"enum": ["a", "b"]}, "n": {"type": "integer"}},
      "required": ["kind"],
      "if": {"properties": {"kind": {"const": "a"}}}, "then": {"required": ["n"]}})");
  EXPECT_TRUE(Takes(grammar, R"({"kind": "a", "n": 1})"));
  EXPECT_FALSE(Takes(grammar, R"({"kind": "a"})"));
  EXPECT_TRUE(Takes(grammar, R"({"kind": "b"})"));
  const auto depends = OfSchema(R"({"type": "object", "properties": {"a": {}, "b": {}, "c": {}},
      "dependentRequired": {"a": ["c"]}})");
  EXPECT_TRUE(Takes(depends, R"({"a": 1, "c": 1})"));
  EXPECT_TRUE(Takes(depends, R"({"b": 1})"));
  EXPECT_FALSE(Takes(depends, R"({"a": 1, "b": 1})"));
  const auto other = OfSchema(R"({"type": "string", "not": {"enum": ["no", "never"]}})");
  EXPECT_TRUE(Takes(other, R"("nope")"));
  EXPECT_FALSE(Takes(other, R"("no")"));
}

TEST(JsonSchema, Case26RecursionThroughRef) {
  const auto tree = OfSchema(R"({"type": "object", "properties": {"v": {"type": "integer"},
      "kids": {"type": "array", "items": {"$ref": "#"}}}, "required": ["v"],
      "additionalProperties": false})");
  EXPECT_TRUE(Takes(tree, R"({"v": 1, "kids": [{"v": 2, "kids": []}, {"v": 3}]})"));
  EXPECT_FALSE(Takes(tree, R"({"v": 1, "kids": [{"w": 2}]})"));
  const auto list = OfSchema(R"({"$ref": "#/$defs/list", "$defs": {
      "list": {"anyOf": [{"type": "null"}, {"$ref": "#node"}]},
      "node": {"$anchor": "node", "type": "object", "properties": {"next": {"$ref": "#/$defs/list"}},
               "required": ["next"]}}})");
  EXPECT_TRUE(Takes(list, R"({"next": {"next": null}})"));
  EXPECT_FALSE(Takes(list, R"({"next": 1})"));
}

TEST(JsonSchema, Case26AnEnumOfFiveThousand) {
  std::string schema = R"({"enum": [)";
  for (int i = 0; i < 5000; ++i) schema += StrCat(i == 0 ? "" : ", ", "\"word ", i * 7919, "\"");
  const auto grammar = OfSchema(schema + "]}");
  EXPECT_TRUE(Takes(grammar, R"("word 7919")"));
  EXPECT_TRUE(Takes(grammar, StrCat("\"word ", 4999 * 7919, "\"")));
  EXPECT_FALSE(Takes(grammar, R"("word 7918")"));
}

// case_30: ordinary schemas take ordinary values and can end.
TEST(JsonSchema, Case30FifteenOrdinarySchemas) {
  const std::pair<std::string, std::vector<std::string>> all[] = {
      {R"({"type": "object"})", {"{}", R"({"a": [1, null]})"}},
      {R"({"type": "string"})", {R"("")", R"("h\u00e9\n")"}},
      {R"({"type": "integer", "minimum": 1, "maximum": 100})", {"1", "42", "100"}},
      {R"({"type": "number", "exclusiveMinimum": -1.5, "maximum": 2})", {"-1.4", "0", "2.0"}},
      {R"({"type": "boolean"})", {"true", "false"}},
      {R"({"type": ["string", "null"]})", {"null", R"("x")"}},
      {R"({"enum": ["red", "green", 3, null, {"a": [1]}]})", {R"("red")", "3", R"({"a": [1]})"}},
      {R"({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3})",
       {"[1]", "[1, 2, 3]"}},
      {R"({"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}],
           "items": false})",
       {"[]", R"(["a", 1.5])"}},
      {R"({"type": "object", "properties": {"name": {"type": "string", "minLength": 1},
           "age": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}},
           "required": ["name", "age"], "additionalProperties": false})",
       {R"({"name": "Ann", "age": 7})", R"({"name": "B", "age": 1, "tags": ["x"]})"}},
      {R"({"type": "object", "additionalProperties": {"type": "integer"}})",
       {"{}", R"({"any": 1, "name": 2})"}},
      {R"({"anyOf": [{"type": "string"}, {"type": "object",
           "properties": {"id": {"type": "integer"}}, "required": ["id"]}]})",
       {R"("x")", R"({"id": 5})"}},
      {R"({"oneOf": [
           {"type": "object", "properties": {"kind": {"const": "circle"}, "r": {"type": "number"}},
            "required": ["kind", "r"]},
           {"type": "object", "properties": {"kind": {"const": "box"}, "w": {"type": "number"}},
            "required": ["kind", "w"]}]})",
       {R"({"kind": "circle", "r": 1})", R"({"kind": "box", "w": 2})"}},
      {R"({"type": "object", "properties": {"when": {"type": "string", "format": "date-time"},
           "mail": {"type": "string", "format": "email"}}, "required": ["when"]})",
       {R"({"when": "2024-02-29T10:00:00Z", "mail": "a.b@example.org"})"}},
      {R"({"$defs": {"point": {"type": "object", "properties": {"x": {"type": "number"},
           "y": {"type": "number"}}, "required": ["x", "y"]}}, "type": "array",
           "items": {"$ref": "#/$defs/point"}})",
       {"[]", R"([{"x": 0, "y": -1}, {"x": 1e3, "y": 0.25}])"}},
  };
  static_assert(std::size(all) == 15);
  for (const auto& [schema, values] : all) {
    const auto grammar = OfSchema(schema);
    for (const std::string& value : values) EXPECT_TRUE(Takes(grammar, value)) << schema << value;
    EXPECT_FALSE(Takes(grammar, "")) << schema;
    EXPECT_FALSE(Takes(grammar, "nul")) << schema;
  }
}

TEST(JsonSchema, RequiredNamesThatNoPropertyListsAreKept) {
  const auto grammar = OfSchema(
      R"({"type": "object", "properties": {"a": {"type": "null"}}, "required": ["b", "a"]})");
  EXPECT_TRUE(Takes(grammar, R"({"a": null, "b": [1]})"));
  EXPECT_FALSE(Takes(grammar, R"({"a": null})"));
}

TEST(JsonSchema, CountsOfProperties) {
  const auto grammar = OfSchema(R"({"type": "object", "properties": {"a": {}, "b": {}, "c": {}},
      "minProperties": 1, "maxProperties": 2})");
  EXPECT_FALSE(Takes(grammar, "{}"));
  EXPECT_TRUE(Takes(grammar, R"({"b": 1})"));
  EXPECT_TRUE(Takes(grammar, R"({"a": 1, "c": 1})"));
  EXPECT_FALSE(Takes(grammar, R"({"a": 1, "b": 1, "c": 1})"));
}

TEST(JsonSchema, OneOfMayBeToldApartByTheNamesOfProperties) {
  const std::string a = R"({"properties": {"a": {}}, "required": ["a"]})";
  const std::string b = R"({"properties": {"b": {}}, "required": ["b"]})";
  const auto grammar = OfSchema(R"({"type": "object", "oneOf": [)" + a + ", " + b + "]}");
  EXPECT_TRUE(Takes(grammar, R"({"a": 1})"));
  EXPECT_TRUE(Takes(grammar, R"({"b": 1})"));
  EXPECT_FALSE(Takes(grammar, R"({"a": 1, "b": 1})"));
  // With both names beside it, an object may have both.
  EXPECT_EQ(Check(R"({"type": "object", "properties": {"a": {}, "b": {}}, "oneOf": [
      {"required": ["a"]}, {"required": ["b"]}]})")
                .code(),
            StatusCode::kUnimplemented);
}

TEST(JsonSchema, StringsAreMeasuredInCharactersAndEscaped) {
  const auto two = OfSchema(R"({"type": "string", "minLength": 2, "maxLength": 2})");
  EXPECT_TRUE(Takes(two, "\"\U0001F600x\""));
  EXPECT_TRUE(Takes(two, R"("\n\u00e9")"));
  EXPECT_FALSE(Takes(two, R"("abc")"));
  EXPECT_FALSE(Takes(two, R"("\ud83d\ude00")"));  // half a pair is no character
  const auto quoted = OfSchema(R"({"type": "string", "pattern": "^[\"\\\\\\n]{3}$"})");
  EXPECT_TRUE(Takes(quoted, R"("\"\\\n")"));
  EXPECT_FALSE(Takes(quoted, R"(""")"));
  const auto both = OfSchema(R"({"type": "string", "pattern": "^[a-z]*$", "maxLength": 3})");
  EXPECT_TRUE(Takes(both, R"("abc")"));
  EXPECT_FALSE(Takes(both, R"("abcd")"));
  const auto long_one = OfSchema(R"({"type": "string", "minLength": 205, "maxLength": 450})");
  for (const int length : {204, 205, 300, 449, 450, 451}) {
    EXPECT_EQ(Takes(long_one, StrCat("\"", std::string(static_cast<size_t>(length), 'x'), "\"")),
              length >= 205 && length <= 450)
        << length;
  }
}

TEST(JsonSchema, FormatsTakeWhatTheirRfcsTake) {
  struct Format {
    std::string name;
    std::vector<std::string> good, bad;
  };
  const Format all[] = {
      {"date",
       {"2024-02-29", "2023-12-31"},
       {"2023-02-29", "2024-13-01", "2024-04-31", "24-01-01"}},
      {"time", {"23:59:59Z", "00:00:00.123+05:30"}, {"24:00:00Z", "12:00:00", "12:60:00Z"}},
      {"date-time", {"2024-01-02T03:04:05Z"}, {"2024-01-02 03:04:05Z", "2024-01-02T03:04:05"}},
      {"duration", {"P1Y2M3D", "PT5M", "P4W", "P1DT12H"}, {"P", "PT", "1D", "P1W2D", "P1S"}},
      {"email", {"a@b.org", "first.last+tag@mail.example"}, {"a", "@b", "a@", "a b@c.d", ".a@b"}},
      {"hostname", {"a", "www.example-1.org"}, {"-a", "a-", "a..b", "a_b", ""}},
      {"ipv4", {"127.0.0.1", "255.255.255.255"}, {"256.0.0.1", "1.2.3", "01.2.3.4"}},
      {"ipv6", {"::1", "1:2:3:4:5:6:7:8", "fe80::1:2"}, {"1::2::3", "12345::", "1:2:3", ":::"}},
      {"uuid",
       {"123e4567-e89b-12d3-a456-426614174000"},
       {"123e4567", "g23e4567-e89b-12d3-a456-426614174000"}},
      {"uri", {"https://example.org:80/a/b?c=d#e", "ftp://h"}, {"//x", "http//x", "http://a b"}},
      {"json-pointer", {"", "/a~1b/0"}, {"a", "/~2"}},
  };
  for (const Format& format : all) {
    const auto grammar = OfSchema(R"({"type": "string", "format": ")" + format.name + "\"}");
    for (const auto& text : format.good) EXPECT_TRUE(Takes(grammar, "\"" + text + "\"")) << text;
    for (const auto& text : format.bad) EXPECT_FALSE(Takes(grammar, "\"" + text + "\"")) << text;
  }
}

// Every short spelling: the automaton takes exactly those whose value is within the limits.
TEST(JsonSchema, NumbersWithinBoundsAreTakenAndNoOthers) {
  std::vector<std::string> spellings;
  for (const std::string sign : {"", "-"}) {
    for (int whole = 0; whole < 130; ++whole) {
      spellings.push_back(StrCat(sign, whole));
      for (const std::string fraction : {".0", ".5", ".25", ".05", ".99", ".4999"}) {
        spellings.push_back(StrCat(sign, whole, fraction));
      }
    }
  }
  const std::string bounds[] = {"0",     "7",     "-7",  "10",   "99.5",
                                "-0.25", "12.05", "100", "-100", "1e2"};
  for (const std::string& low : bounds) {
    for (const std::string& high : bounds) {
      for (const int options : {0, 1, 2, 3}) {
        NumberLimits limits;
        limits.low = {Decimal::Parse(low).value(), (options & 1) != 0};
        limits.high = {Decimal::Parse(high).value(), (options & 1) != 0};
        if ((options & 2) != 0) limits.multiple_of = 3;
        limits.integer = (options & 2) != 0;
        const auto taken = NumberSpellings(limits);
        ASSERT_TRUE(taken.ok()) << taken.status();
        for (const std::string& text : spellings) {
          const Decimal value = Decimal::Parse(text).value();
          const bool spelled = !(text[0] == '-' && value.IsZero()) &&
                               (!limits.integer || text.find('.') == std::string::npos);
          ASSERT_EQ(taken->Matches(text), spelled && limits.Holds(value))
              << text << " in " << low << ".." << high << " options " << options;
        }
      }
    }
  }
}

TEST(JsonSchema, BoundsWithManyDigitsStayOnTheInside) {
  const auto grammar = OfSchema(R"({"type": "number", "minimum": 3.14159265358979})");
  EXPECT_FALSE(Takes(grammar, "3.141592653"));
  EXPECT_TRUE(Takes(grammar, "3.141592654"));
  EXPECT_TRUE(Takes(grammar, "4"));
}

}  // namespace
}  // namespace deepinfer
