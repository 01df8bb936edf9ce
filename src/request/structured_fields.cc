#include "request/structured_fields.h"

#include "tokens/grammar.h"

namespace deepinfer {
namespace {

using Kind = StructuredOutput::Kind;

// Collects wishes, of which there may be one.
class WishReader {
 public:
  Status Add(Kind kind, std::string text, std::string field) {
    if (!wish_.field.empty()) {
      return InvalidArgument(field, ": the output must match ", wish_.field,
                             " already; give one of them");
    }
    wish_ = {{.kind = kind, .text = std::move(text)}, std::move(field)};
    return OkStatus();
  }

  // A schema as it is, or as text.
  Status AddSchema(const JsonField& field, const std::string& path) {
    if (field.absent()) return OkStatus();
    const JsonValue& value = *field.value();
    if (!value.IsString()) {
      if (!value.IsObject() && value.kind != JsonValue::Kind::kBool) {
        return field.Unexpected("a JSON schema: an object, true or false");
      }
      return Add(Kind::kJsonSchema, DumpJson(value), path);
    }
    const StatusOr<JsonValue> schema = ParseJson(value.text);
    if (!schema.ok()) return field.Error(StrCat("a JSON schema: ", MessageOf(schema.status())));
    if (!schema->IsObject() && schema->kind != JsonValue::Kind::kBool) {
      return field.Unexpected("a JSON schema: an object, true or false");
    }
    return Add(Kind::kJsonSchema, DumpJson(*schema), path);
  }

  Status AddText(Kind kind, const JsonField& field, const std::string& path) {
    if (field.absent()) return OkStatus();
    DI_ASSIGN_OR_RETURN(std::string text, field.AsString());
    if (text.empty()) return field.Error("expected a text that is not empty");
    return Add(kind, std::move(text), path);
  }

  Status AddChoices(const JsonField& holder, std::string_view key, const std::string& path) {
    DI_ASSIGN_OR_RETURN(const std::vector<JsonField> items, holder.OptionalArray(key));
    if (holder.Member(key).absent()) return OkStatus();
    if (items.empty()) return InvalidArgument(path, ": expected at least one text, found none");
    std::vector<std::string> choices;
    for (const JsonField& item : items) {
      DI_ASSIGN_OR_RETURN(std::string choice, item.AsString());
      choices.push_back(std::move(choice));
    }
    return Add(Kind::kGrammar, ChoiceGrammar(choices), path);
  }

  Status AddResponseFormat(const JsonField& format) {
    if (format.absent()) return OkStatus();
    DI_ASSIGN_OR_RETURN(const std::string type, format.RequiredString("type"));
    if (type == "text") return OkStatus();
    if (type == "json_object") return Add(Kind::kJsonObject, "", "response_format");
    if (type != "json_schema") {
      return format.Member("type").Unexpected("text, json_object or json_schema");
    }
    const JsonField schema = format.Member("json_schema").Member("schema");
    if (schema.absent()) return schema.Error("expected a JSON schema, found nothing");
    if (schema.value()->IsString()) return schema.Unexpected("a JSON schema: an object");
    return AddSchema(schema, "response_format.json_schema.schema");
  }

  Status AddStructuredOutputs(const JsonField& field) {
    if (field.absent()) return OkStatus();
    DI_RETURN_IF_ERROR(field.ExpectObject());
    const std::string path = "structured_outputs.";
    DI_RETURN_IF_ERROR(AddSchema(field.Member("json"), path + "json"));
    DI_RETURN_IF_ERROR(AddText(Kind::kRegex, field.Member("regex"), path + "regex"));
    DI_RETURN_IF_ERROR(AddText(Kind::kGrammar, field.Member("grammar"), path + "grammar"));
    DI_RETURN_IF_ERROR(AddChoices(field, "choice", path + "choice"));
    DI_ASSIGN_OR_RETURN(const std::optional<bool> any, field.OptionalBool("json_object"));
    if (any.value_or(false)) DI_RETURN_IF_ERROR(Add(Kind::kJsonObject, "", path + "json_object"));
    if (!field.Member("structural_tag").absent()) {
      return field.Member("structural_tag").Error("not supported; use json, regex or grammar");
    }
    return OkStatus();
  }

  // Names that other servers have: to ignore them would leave the output free.
  static Status RefuseOtherNames(const JsonField& body) {
    for (const std::string_view name : {"json_schema", "regex", "grammar"}) {
      const JsonField field = body.Member(name);
      if (field.absent()) continue;
      return field.Error(StrCat("not a field here; use guided_",
                                name == "json_schema" ? std::string_view("json") : name));
    }
    return OkStatus();
  }

  StructuredWish Take() { return std::move(wish_); }

 private:
  StructuredWish wish_;
};

}  // namespace

StatusOr<StructuredWish> ReadStructuredFields(FieldReader& reader) {
  WishReader wishes;
  DI_RETURN_IF_ERROR(wishes.AddResponseFormat(reader.Field("response_format")));
  DI_RETURN_IF_ERROR(wishes.AddSchema(reader.Field("guided_json"), "guided_json"));
  DI_RETURN_IF_ERROR(wishes.AddText(Kind::kRegex, reader.Field("guided_regex"), "guided_regex"));
  DI_RETURN_IF_ERROR(
      wishes.AddText(Kind::kGrammar, reader.Field("guided_grammar"), "guided_grammar"));
  reader.Find("guided_choice");
  const JsonField body(&reader.root(), "");
  DI_RETURN_IF_ERROR(wishes.AddChoices(body, "guided_choice", "guided_choice"));
  DI_RETURN_IF_ERROR(WishReader::RefuseOtherNames(body));
  DI_RETURN_IF_ERROR(wishes.AddStructuredOutputs(reader.Field("structured_outputs")));
  return wishes.Take();
}

void StartBehindThinking(const AnswerTokens& tokens, StructuredOutput& output) {
  const bool starts_somewhere = output.bound_token_id || !output.trigger_token_ids.empty();
  if (output.kind == Kind::kNone || starts_somewhere) return;
  output.bound_token_id = tokens.think_end;
}

Status CheckStructure(const StructuredOutput& output, std::string_view field) {
  if (output.kind == Kind::kNone) return OkStatus();
  return Annotate(CheckStructuredOutput(output), field);
}

std::string ChoiceGrammar(const std::vector<std::string>& choices) {
  std::string grammar = "root ::= ";
  for (size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) grammar += " | ";
    AppendJsonString(choices[i], grammar);  // the escapes of JSON are those of the grammar
  }
  return grammar;
}

}  // namespace deepinfer
