// request/structured_fields.h: what the output must match, from any of the names clients know.
//
//   response_format {type: text | json_object | json_schema, json_schema: {schema}}
//   guided_json (a schema, or one as text), guided_regex, guided_grammar, guided_choice [texts]
//   structured_outputs {json, regex, grammar, choice, json_object}
// At most one of them; a response_format of type text says nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "deepinfer/structured_output.h"
#include "request/field_reader.h"
#include "tokens/answer_parser.h"

namespace deepinfer {

struct StructuredWish {
  StructuredOutput output;  // without trigger and bound
  std::string field;        // where it stands, for messages; empty: nothing is wished

  bool IsJson() const {
    return output.kind == StructuredOutput::Kind::kJsonObject ||
           output.kind == StructuredOutput::Kind::kJsonSchema;
  }
};

// Errors: kInvalidArgument starting with the path.
StatusOr<StructuredWish> ReadStructuredFields(FieldReader& reader);

// For a prompt that ends inside thinking: the output is free until the end of that, unless it says
// itself where the grammar starts.
void StartBehindThinking(const AnswerTokens& tokens, StructuredOutput& output);

// What would be refused by looking at it, before anything waits for it; the message begins with
// `field`. Errors: as CheckStructuredOutput of tokens/grammar.h.
Status CheckStructure(const StructuredOutput& output, std::string_view field);

// EBNF of one of these texts.
std::string ChoiceGrammar(const std::vector<std::string>& choices);

}  // namespace deepinfer
