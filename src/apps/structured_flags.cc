#include "apps/structured_flags.h"

#include "apps/sampling_flags.h"

namespace deepinfer {
namespace {

// A text that looks like what is asked for stands for itself.
bool IsSchemaText(std::string_view value) {
  const size_t first = value.find_first_not_of(" \t\r\n");
  return first != value.npos && (value[first] == '{' || value == "true" || value == "false");
}
bool IsGrammarText(std::string_view value) { return value.find("::=") != value.npos; }

StatusOr<std::string> TextOrFile(const std::string& value, bool is_text, std::string_view flag,
                                 Disk& disk) {
  if (is_text) return value;
  auto text = disk.ReadText(value);
  if (!text.ok()) return Annotate(text.status(), flag);
  return text;
}

}  // namespace

void StructuredFlags::AddTo(OptionSet& options) {
  options.Add({.flag = "json-object", .help = "the output is a JSON object"}, &json_object);
  options.Add({.flag = "json-schema",
               .help = "the output matches this JSON Schema; a file, or its text ({...})",
               .unit = "FILE|TEXT"},
              &json_schema);
  options.Add({.flag = "regex",
               .help = "the output matches this regular expression as a whole",
               .unit = "TEXT"},
              &regex);
  options.Add({.flag = "grammar",
               .help = "the output matches the rule `root` of this EBNF; a file, or its text (with "
                       "::=)",
               .unit = "FILE|TEXT"},
              &grammar);
  options.Add({.flag = "trigger-token-ids",
               .help = "the output is free until these ids stand in it",
               .unit = "IDS"},
              &trigger_token_ids);
  options.Add({.flag = "bound-token-id",
               .help = "the output is free until this id; in a chat that thinks: its end of "
                       "thinking, if nothing else is given",
               .unit = "ID",
               .min = 0},
              &bound_token_id);
}

StatusOr<StructuredOutput> StructuredFlags::Read(Disk& disk) const {
  using Kind = StructuredOutput::Kind;
  StructuredOutput result;
  const int given = json_object + !json_schema.empty() + !regex.empty() + !grammar.empty();
  if (given > 1) {
    return InvalidArgument(
        "--json-object, --json-schema, --regex, --grammar: found several, expected one");
  }
  if (json_object) {
    result.kind = Kind::kJsonObject;
  } else if (!json_schema.empty()) {
    result.kind = Kind::kJsonSchema;
    DI_ASSIGN_OR_RETURN(result.text,
                        TextOrFile(json_schema, IsSchemaText(json_schema), "--json-schema", disk));
  } else if (!regex.empty()) {
    result.kind = Kind::kRegex;
    result.text = regex;
  } else if (!grammar.empty()) {
    result.kind = Kind::kGrammar;
    DI_ASSIGN_OR_RETURN(result.text,
                        TextOrFile(grammar, IsGrammarText(grammar), "--grammar", disk));
  }
  const bool starts_late = !trigger_token_ids.empty() || bound_token_id;
  if (given == 0 && starts_late) {
    return InvalidArgument(
        "--trigger-token-ids, --bound-token-id: nothing starts behind them; give --json-object, "
        "--json-schema, --regex or --grammar too");
  }
  if (!trigger_token_ids.empty()) {
    DI_ASSIGN_OR_RETURN(result.trigger_token_ids,
                        ParseTokenIds(trigger_token_ids, "--trigger-token-ids"));
  }
  result.bound_token_id = bound_token_id;
  return result;
}

}  // namespace deepinfer
