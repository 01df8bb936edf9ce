// tokens/schema_grammar.h: JSON Schema as grammar rules for JSON texts.
//
// The rules allow no text that is not valid, and fewer than all that are:
// docs/structured_output.md lists how. What cannot be said is refused with keyword and JSON
// pointer. White space: after '{', '[' and ',' and in front of '}' and ']' nothing, one blank, or a
// line end with up to kMaxIndent blanks; after ':' nothing or one blank.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/status.h"
#include "tokens/grammar_rules.h"
#include "tokens/schema_facts.h"
#include "tokens/schema_objects.h"

namespace deepinfer {

inline constexpr int32_t kMaxIndent = 24;

class SchemaGrammar {
 public:
  // Both must outlive this.
  SchemaGrammar(GrammarRules& rules, SchemaDocument& document) : rules_(rules), reader_(document) {}

  // The JSON texts that meet all schemas of the set. Rules are complete after Finish().
  Expr Value(const SchemaSet& set);
  // Defines the rules that Value() promised. Errors: as SchemaReader::Read; kUnimplemented past
  // kMaxRules.
  Status Finish();

  // Those that meet these facts. Errors: as Finish.
  StatusOr<Expr> Only(const Facts& facts);
  Expr AnyValue();
  Expr AnyObject();
  SchemaReader& reader() { return reader_; }

  static constexpr int32_t kMaxRules = 50'000;

 private:
  using Key = std::vector<const JsonValue*>;

  StatusOr<Expr> OneOf(const std::vector<Facts>& alternatives);
  StatusOr<Expr> Listed(const Facts& facts);
  StatusOr<Expr> Numbers(const Facts& facts);
  StatusOr<Expr> Array(const Facts& facts);
  StatusOr<Expr> Object(const Facts& facts);
  StatusOr<Expr> More(const Facts& facts, const std::vector<std::string>& named);
  Expr Gap();
  Expr Comma();
  Expr Colon();
  Expr AnyString();
  Expr AnyNumber();

  GrammarRules& rules_;
  SchemaReader reader_;
  std::map<Key, RuleId> rule_of_;
  std::vector<std::pair<SchemaSet, RuleId>> promised_;
  Expr any_value_;
};

// The whole grammar of a schema. Errors: as SchemaDocument::Parse and SchemaGrammar::Finish.
StatusOr<std::string> JsonSchemaGrammar(std::string_view schema);
std::string AnyJsonObjectGrammar();

}  // namespace deepinfer
