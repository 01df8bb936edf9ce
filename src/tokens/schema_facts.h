// tokens/schema_facts.h: what a set of schemas says about one value, with every $ref, allOf, anyOf,
// oneOf, if and not taken apart: alternatives, each a plain list of facts.
//
// A set stands for all of its schemas at once, so allOf is a larger set, and the schemas of one
// property gather from all objects of the set. Sets are what grammar rules are made of
// (schema_grammar.h): recursion through $ref comes back to a set that already has its rule.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "tokens/schema_document.h"
#include "tokens/schema_numbers.h"

namespace deepinfer {

// Which side of the truth facts may err on.
enum class SchemaView {
  kInside,  // a value that the facts allow is valid; what cannot be said so is refused
  kAround,  // every valid value is allowed; for proofs that schemas have no value in common
};

using SchemaSet = std::vector<SchemaRef>;  // by node, each once
void AddTo(SchemaSet& set, const SchemaRef& schema);

// JSON's types as bits. Whole numbers are numbers with NumberLimits::integer.
enum TypeBit : uint32_t {
  kNullBit = 1,
  kBoolBit = 2,
  kNumberBit = 4,
  kStringBit = 8,
  kArrayBit = 16,
  kObjectBit = 32,
  kAllTypes = 63,
};
TypeBit TypeOf(const JsonValue& value);

struct StringFacts {
  std::vector<Regex> matches;         // all of them
  std::vector<std::string> excluded;  // and none of these
  int64_t min_length = 0;
  std::optional<int64_t> max_length;

  bool any() const { return matches.empty() && excluded.empty() && min_length == 0 && !max_length; }
};

struct ArrayFacts {  // of one schema
  std::vector<SchemaRef> prefix;
  std::optional<SchemaRef> rest;
};

struct ObjectFacts {  // of one schema
  struct Pattern {
    Regex sure, perhaps;  // names that it takes in every dialect of expressions, and in one
    SchemaRef schema;
  };
  std::vector<std::pair<std::string, SchemaRef>> properties;
  std::vector<Pattern> patterns;
  std::optional<SchemaRef> additional;
  // unevaluatedProperties: for names that no object in [scope_begin, scope_end) evaluates.
  std::optional<SchemaRef> unevaluated;
  size_t scope_begin = 0, scope_end = 0;
};

struct Facts {
  SchemaView view = SchemaView::kInside;
  uint32_t types = kAllTypes;
  uint32_t implied = 0;                                 // types that keywords speak about
  std::optional<std::vector<const JsonValue*>> values;  // of enum and const
  NumberLimits numbers;
  StringFacts strings;
  std::vector<ArrayFacts> arrays;
  int64_t min_items = 0;
  std::optional<int64_t> max_items;
  std::vector<ObjectFacts> objects;
  std::vector<std::string> required;
  std::vector<SchemaRef> names;  // propertyNames
  int64_t min_properties = 0;
  std::optional<int64_t> max_properties;
  SchemaRef at;  // of the last schema that added something, for messages
};

// The narrowing "a type made explicit": without a type, keywords about objects mean an object, and
// so on.
void MakeTypeExplicit(Facts& facts);

// Adds what unevaluatedProperties says of one name. evaluated: by object, whether it is about it.
void AddUnevaluated(const std::vector<ObjectFacts>& objects, const std::vector<bool>& evaluated,
                    SchemaSet& set);

class SchemaReader {
 public:
  explicit SchemaReader(SchemaDocument& document) : document_(document) {}

  // The alternatives; none: nothing is allowed. Errors: as SchemaDocument::Check; kUnimplemented
  // for what view kInside cannot promise.
  StatusOr<std::vector<Facts>> Read(const SchemaSet& set, SchemaView view);

  // The schemas that a property with this name must meet, by all of `facts`.
  SchemaSet ForProperty(const Facts& facts, std::string_view name) const;
  // Those of the item at this place.
  static SchemaSet ForItem(const Facts& facts, size_t idx);
  // Objects of these facts get no other properties than those that `properties` names: the
  // narrowing of schemas that list properties and say nothing about further ones.
  static bool Closed(const Facts& facts);
  // The names that `properties` and `required` list, in their order.
  static std::vector<std::string> NamedProperties(const Facts& facts);

  SchemaDocument& document() { return document_; }

 private:
  using Many = std::vector<Facts>;
  StatusOr<Many> Expand(Many all, const SchemaRef& schema, SchemaView view);
  StatusOr<Many> ExpandKeywords(Many all, const SchemaRef& schema, SchemaView view);
  StatusOr<Many> ExpandAny(const Many& all, const SchemaRef& schema, SchemaView view);
  StatusOr<Many> ExpandOne(const Many& all, const SchemaRef& schema, SchemaView view);
  StatusOr<Many> ExpandConditions(Many all, const SchemaRef& schema, SchemaView view);
  static void OpenScope(Many& all, const SchemaRef& schema);
  static void CloseScope(Many& all);
  Status AddPlain(Facts& facts, const SchemaRef& schema, SchemaView view);
  Status AddNumbers(Facts& facts, const SchemaRef& schema, SchemaView view);
  Status AddStrings(Facts& facts, const SchemaRef& schema, SchemaView view);
  Status AddArrays(Facts& facts, const SchemaRef& schema, SchemaView view);
  Status AddObjects(Facts& facts, const SchemaRef& schema, SchemaView view);

  SchemaDocument& document_;
  std::map<const JsonValue*, std::vector<SchemaRef>> conditions_;  // of if, not, dependencies
  int64_t num_opposites_ = 0;           // how often `not` or `if` was met
  std::vector<const JsonValue*> open_;  // schemas being expanded: one that meets itself is endless
};

}  // namespace deepinfer
