#include "tokens/grammar_text.h"

#include "tokens/ebnf_grammar.h"
#include "tokens/grammar_rules.h"
#include "tokens/regex.h"
#include "tokens/schema_grammar.h"
#include "tokens/tool_grammar.h"

namespace deepinfer {
namespace {

StatusOr<std::string> RegexGrammar(const std::string& text) {
  DI_ASSIGN_OR_RETURN(const Regex regex, ParseRegex(text, RegexMatch::kWhole));
  GrammarRules rules;
  return rules.Text(rules.AddRegex(regex));
}

}  // namespace

StatusOr<std::string> GrammarTextOf(const StructuredOutput& structured, int32_t dsml_id) {
  if (std::ssize(structured.text) > kMaxStructuredTextBytes) {
    return InvalidArgument("structured output: ", structured.text.size(), " bytes, at most ",
                           kMaxStructuredTextBytes, " are taken");
  }
  switch (structured.kind) {
    case StructuredOutput::Kind::kJsonObject:
      return AnyJsonObjectGrammar();
    case StructuredOutput::Kind::kJsonSchema:
      return JsonSchemaGrammar(structured.text);
    case StructuredOutput::Kind::kRegex:
      return RegexGrammar(structured.text);
    case StructuredOutput::Kind::kGrammar:
      return EbnfGrammar(structured.text);
    case StructuredOutput::Kind::kToolCalls:
      return ToolCallGrammar(structured.text, !structured.trigger_token_ids.empty(), dsml_id);
    case StructuredOutput::Kind::kNone:
      break;
  }
  return InvalidArgument("structured output of no kind has no grammar");
}

}  // namespace deepinfer
