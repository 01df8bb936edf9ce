// tokens/schema_objects.h: the members of an object as grammar rules: in their order, some
// optional, counted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "tokens/grammar_rules.h"
#include "tokens/schema_facts.h"

namespace deepinfer {

struct MemberList {
  struct Member {
    Expr expr;
    bool required = false;
  };
  std::vector<Member> members;  // in this order
  Expr more;                    // any number of these behind them; null: none
  Expr separator;               // between two
  // Of all together. Of those of `more`, which may repeat a name, one counts at most.
  int64_t min = 0;
  std::optional<int64_t> max;
};
// Errors: kUnimplemented for counts that need too many rules.
StatusOr<Expr> MembersExpr(GrammarRules& rules, const MemberList& list);

// Names without a schema of their own: which ones, and what their values must meet.
struct MoreProperties {
  std::optional<Dfa> names;  // all that match; not set: `name`
  std::string name;
  SchemaSet schemas;
};
// Errors: kUnimplemented for too many patterns, or too large ones.
StatusOr<std::vector<MoreProperties>> MorePropertiesOf(SchemaReader& reader, const Facts& facts,
                                                       const std::vector<std::string>& named);

}  // namespace deepinfer
