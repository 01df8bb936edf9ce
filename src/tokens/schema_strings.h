// tokens/schema_strings.h: the strings that facts allow, as automata and as grammar rules.
#pragma once

#include "base/status.h"
#include "tokens/grammar_rules.h"
#include "tokens/schema_facts.h"

namespace deepinfer {

// The values themselves, without quotes and escapes. Errors: kUnimplemented if it is too large.
StatusOr<Dfa> StringValues(const StringFacts& facts);

enum class StringStyle {
  kJson,  // in quotes, with escapes
  kRaw,   // as it is
};
// Errors: as StringValues.
StatusOr<Expr> StringExpr(GrammarRules& rules, const StringFacts& facts, StringStyle style);

}  // namespace deepinfer
