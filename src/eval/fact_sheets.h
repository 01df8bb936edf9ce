// eval/fact_sheets.h: made-up things with their facts, as prose, as lines, as tables and as JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "eval/drawn_values.h"

namespace deepinfer {

struct FactKind {
  std::string name;    // "age|years": one of them is the JSON key
  std::string clause;  // "is {} years old"; {a}: the value with its article. Of a kBool: the clause
                       // of true, then of false, "|" between
  Domain domain = Domain::kObject;
  std::string options = {};  // of kOption
};

struct SheetKind {
  std::string thing;   // "person"
  std::string plural;  // "people"
  std::string again;   // "This person": what a later sentence may start with
  FactKind identity;   // its clause is what prose calls the thing: "{}", "Order {}"
  std::vector<FactKind> facts;
};
const std::vector<SheetKind>& SheetKinds();

// Which facts are told, under which keys; the first is the identity.
struct SheetForm {
  const SheetKind* kind;
  std::vector<FactKind> columns;  // names without alternatives
};
// With num_facts facts besides the identity, or all there are.
SheetForm DrawForm(Rng& rng, size_t num_facts);

// One thing: a value for each column.
using SheetRow = std::vector<DrawnValue>;
SheetRow DrawRow(Rng& rng, const SheetForm& form);

// "full_name" -> "Full name"
std::string TableHead(std::string_view name);
// "Mira Holt is 34 years old and lives in Oslo. This person works as a baker."
std::string Prose(Rng& rng, const SheetForm& form, const SheetRow& row);
// "Age: 34", a line each.
std::string KeyLines(Rng& rng, const SheetForm& form, const SheetRow& row);
// With a line of heads; cells between bars, commas or tabs. keep_names: the heads are the columns'
// names; otherwise they may be "Full name" for full_name.
std::string Table(Rng& rng, const SheetForm& form, const std::vector<SheetRow>& rows,
                  bool keep_names = false);

}  // namespace deepinfer
