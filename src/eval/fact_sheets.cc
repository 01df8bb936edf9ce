#include "eval/fact_sheets.h"

#include <algorithm>

#include "base/strings.h"
#include "eval/dialogue.h"
#include "eval/exercise.h"
#include "eval/words.h"

namespace deepinfer {
namespace {

FactKind WithOneName(Rng& rng, const FactKind& fact) {
  FactKind named = fact;
  named.name = std::string(PickAlternative(rng, fact.name));
  return named;
}

std::string ClauseOf(const FactKind& fact, const DrawnValue& value) {
  if (fact.domain == Domain::kBool) {
    return std::string(Alternatives(fact.clause)[value.value.boolean ? 0 : 1]);
  }
  return Filled(fact.clause, {{"", value.spoken}, {"a", WithArticle(value.spoken)}});
}

std::string HeadOf(const FactKind& column, bool keep_name) {
  return keep_name ? column.name : TableHead(column.name);
}

// Lists keep no comma in a cell, for commas may part the cells.
std::string Cell(const DrawnValue& value, std::string_view list_separator) {
  if (!value.value.IsArray()) return value.spoken;
  std::vector<std::string> words;
  for (const JsonValue& item : value.value.items) words.push_back(item.text);
  return Join(words, list_separator);
}

struct TableStyle {
  std::string_view before, between, after;
  bool rule = false;  // a line under the heads
};

std::string TableLine(const std::vector<std::string>& cells, const TableStyle& style) {
  return StrCat(style.before, Join(cells, style.between), style.after, "\n");
}

}  // namespace

std::string TableHead(std::string_view name) {
  std::string head = Capitalised(name);
  std::replace(head.begin(), head.end(), '_', ' ');
  return head;
}

SheetForm DrawForm(Rng& rng, size_t num_facts) {
  SheetForm form{.kind = &Pick(rng, SheetKinds())};
  form.columns.push_back(WithOneName(rng, form.kind->identity));
  std::vector<FactKind> facts = form.kind->facts;
  Shuffle(rng, facts);
  facts.resize(std::min(num_facts, facts.size()));
  for (const FactKind& fact : facts) form.columns.push_back(WithOneName(rng, fact));
  return form;
}

SheetRow DrawRow(Rng& rng, const SheetForm& form) {
  SheetRow row;
  for (const FactKind& fact : form.columns) {
    row.push_back(DrawValue(rng, fact.domain, fact.options));
  }
  return row;
}

std::string Prose(Rng& rng, const SheetForm& form, const SheetRow& row) {
  const std::string subject = Filled(form.columns[0].clause, {{"", row[0].spoken}});
  std::vector<size_t> order;
  for (size_t i = 1; i < row.size(); ++i) order.push_back(i);
  if (Chance(rng, 0.5)) Shuffle(rng, order);
  std::vector<std::string> sentences;
  for (size_t next = 0; next < order.size();) {
    const size_t end = std::min(order.size(), next + 1 + rng.Uniform(3));
    std::vector<std::string> clauses;
    for (; next < end; ++next) {
      clauses.push_back(ClauseOf(form.columns[order[next]], row[order[next]]));
    }
    const bool again = !sentences.empty() && Chance(rng, 0.5);
    sentences.push_back(
        StrCat(again ? form.kind->again : subject, " ", JoinedNaturally(clauses), "."));
  }
  return Join(sentences, " ");
}

std::string KeyLines(Rng& rng, const SheetForm& form, const SheetRow& row) {
  const std::string_view separator = PickAlternative(rng, ": |: |=| = | - ");
  const bool as_is = Chance(rng, 0.5);
  std::vector<std::string> lines;
  for (size_t i = 0; i < row.size(); ++i) {
    lines.push_back(StrCat(HeadOf(form.columns[i], as_is), separator, Cell(row[i], ", ")));
  }
  return Join(lines, "\n");
}

std::string Table(Rng& rng, const SheetForm& form, const std::vector<SheetRow>& rows,
                  bool keep_names) {
  constexpr TableStyle kStyles[] = {
      {"| ", " | ", " |", true}, {"", ",", ""}, {"", "\t", ""}, {"", " | ", ""}, {"", "; ", ""}};
  const TableStyle& style = Pick(rng, kStyles);
  const bool as_is = keep_names || Chance(rng, 0.5);
  std::vector<std::string> heads;
  for (const FactKind& column : form.columns) heads.push_back(HeadOf(column, as_is));
  std::string table = TableLine(heads, style);
  if (style.rule) table += TableLine(std::vector<std::string>(heads.size(), "---"), style);
  for (const SheetRow& row : rows) {
    std::vector<std::string> cells;
    for (const DrawnValue& value : row) cells.push_back(Cell(value, " and "));
    table += TableLine(cells, style);
  }
  table.pop_back();
  return table;
}

}  // namespace deepinfer
