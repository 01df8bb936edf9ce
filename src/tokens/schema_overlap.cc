#include "tokens/schema_overlap.h"

#include <algorithm>
#include <utility>

#include "tokens/schema_strings.h"
#include "tokens/utf8.h"

namespace deepinfer {
namespace {

using Kind = JsonValue::Kind;

// Proofs look this deep into properties and items.
constexpr int kMaxProofDepth = 4;

int64_t CountCharacters(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

StatusOr<bool> AllowsString(const StringFacts& facts, const std::string& text) {
  const int64_t length = CountCharacters(text);
  if (length < facts.min_length || (facts.max_length && length > *facts.max_length)) return false;
  if (std::find(facts.excluded.begin(), facts.excluded.end(), text) != facts.excluded.end()) {
    return false;
  }
  for (const Regex& regex : facts.matches) {
    DI_ASSIGN_OR_RETURN(const Dfa dfa, Dfa::Of(regex));
    if (!dfa.Matches(text)) return false;
  }
  return true;
}

StatusOr<bool> AllowsArray(SchemaReader& reader, const Facts& facts, const JsonValue& value) {
  const auto count = std::ssize(value.items);
  if (count < facts.min_items || (facts.max_items && count > *facts.max_items)) return false;
  for (size_t i = 0; i < value.items.size(); ++i) {
    DI_ASSIGN_OR_RETURN(const bool allowed, Allows(reader, SchemaReader::ForItem(facts, i),
                                                   facts.view, value.items[i]));
    if (!allowed) return false;
  }
  return true;
}

StatusOr<bool> AllowsObject(SchemaReader& reader, const Facts& facts, const JsonValue& value) {
  const auto count = std::ssize(value.members);
  if (count < facts.min_properties || (facts.max_properties && count > *facts.max_properties)) {
    return false;
  }
  for (const std::string& name : facts.required) {
    if (value.Find(name) == nullptr) return false;
  }
  for (const auto& [name, member] : value.members) {
    DI_ASSIGN_OR_RETURN(const bool allowed,
                        Allows(reader, reader.ForProperty(facts, name), facts.view, member));
    if (!allowed) return false;
    for (const SchemaRef& names : facts.names) {
      DI_ASSIGN_OR_RETURN(const bool named,
                          Allows(reader, {names}, facts.view, JsonValue::String(name)));
      if (!named) return false;
    }
  }
  return true;
}

}  // namespace

StatusOr<bool> Allows(SchemaReader& reader, const Facts& facts, const JsonValue& value) {
  if ((facts.types & TypeOf(value)) == 0) return false;
  if (facts.values && std::none_of(facts.values->begin(), facts.values->end(),
                                   [&](const JsonValue* v) { return SameJson(*v, value); })) {
    return false;
  }
  switch (value.kind) {
    case Kind::kNumber: {
      const auto number = Decimal::Parse(value.text);
      return number.ok() ? facts.numbers.Holds(*number) : facts.view == SchemaView::kAround;
    }
    case Kind::kString:
      return AllowsString(facts.strings, value.text);
    case Kind::kArray:
      return AllowsArray(reader, facts, value);
    case Kind::kObject:
      return AllowsObject(reader, facts, value);
    default:
      return true;
  }
}

StatusOr<bool> Allows(SchemaReader& reader, const SchemaSet& set, SchemaView view,
                      const JsonValue& value) {
  DI_ASSIGN_OR_RETURN(const std::vector<Facts> all, reader.Read(set, view));
  for (const Facts& facts : all) {
    DI_ASSIGN_OR_RETURN(const bool allowed, Allows(reader, facts, value));
    if (allowed) return true;
  }
  return false;
}

namespace {

class Proof {
 public:
  explicit Proof(SchemaReader& reader) : reader_(reader) {}

  // Nothing that `a` (inside) allows is allowed by `b` (around).
  StatusOr<bool> Apart(const Facts& a, const Facts& b, int depth);
  bool used_closed() const { return used_closed_; }

 private:
  StatusOr<bool> SetsApart(const SchemaSet& a, const SchemaSet& b, int depth);
  StatusOr<bool> ValuesApart(const Facts& with_values, const Facts& other);
  StatusOr<bool> StringsApart(const StringFacts& a, const StringFacts& b);
  StatusOr<bool> ArraysApart(const Facts& a, const Facts& b, int depth);
  StatusOr<bool> ObjectsApart(const Facts& a, const Facts& b, int depth);

  SchemaReader& reader_;
  bool used_closed_ = false;
};

StatusOr<bool> Proof::SetsApart(const SchemaSet& a, const SchemaSet& b, int depth) {
  DI_ASSIGN_OR_RETURN(const std::vector<Facts> left, reader_.Read(a, SchemaView::kInside));
  DI_ASSIGN_OR_RETURN(const std::vector<Facts> right, reader_.Read(b, SchemaView::kAround));
  for (const Facts& one : left) {
    for (const Facts& other : right) {
      DI_ASSIGN_OR_RETURN(const bool apart, Apart(one, other, depth));
      if (!apart) return false;
    }
  }
  return true;
}

StatusOr<bool> Proof::Apart(const Facts& a, const Facts& b, int depth) {
  if (depth > kMaxProofDepth) return false;
  if (a.values) return ValuesApart(a, b);
  if (b.values) return ValuesApart(b, a);
  const uint32_t both = a.types & b.types;
  if ((both & (kNullBit | kBoolBit)) != 0) return false;
  if ((both & kNumberBit) != 0 && !NumberLimits::Apart(a.numbers, b.numbers)) return false;
  if ((both & kStringBit) != 0) {
    DI_ASSIGN_OR_RETURN(const bool apart, StringsApart(a.strings, b.strings));
    if (!apart) return false;
  }
  if ((both & kArrayBit) != 0) {
    DI_ASSIGN_OR_RETURN(const bool apart, ArraysApart(a, b, depth));
    if (!apart) return false;
  }
  if ((both & kObjectBit) != 0) return ObjectsApart(a, b, depth);
  return true;
}

StatusOr<bool> Proof::ValuesApart(const Facts& with_values, const Facts& other) {
  for (const JsonValue* value : *with_values.values) {
    DI_ASSIGN_OR_RETURN(const bool here, Allows(reader_, with_values, *value));
    if (!here) continue;
    DI_ASSIGN_OR_RETURN(const bool there, Allows(reader_, other, *value));
    if (there) return false;
  }
  return true;
}

StatusOr<bool> Proof::StringsApart(const StringFacts& a, const StringFacts& b) {
  const auto below = [](const StringFacts& x, const StringFacts& y) {
    return x.max_length && *x.max_length < y.min_length;
  };
  if (below(a, b) || below(b, a)) return true;
  const auto left = StringValues(a), right = StringValues(b);
  if (!left.ok() || !right.ok()) return false;
  const auto both = Dfa::Both(*left, *right);
  return both.ok() && both->empty();
}

StatusOr<bool> Proof::ArraysApart(const Facts& a, const Facts& b, int depth) {
  const auto below = [](const Facts& x, const Facts& y) {
    return x.max_items && *x.max_items < y.min_items;
  };
  if (below(a, b) || below(b, a)) return true;
  constexpr int64_t kMaxItems = 8;
  const int64_t common = std::min(kMaxItems, std::max(a.min_items, b.min_items));
  for (size_t i = 0; static_cast<int64_t>(i) < common; ++i) {
    DI_ASSIGN_OR_RETURN(const bool apart, SetsApart(SchemaReader::ForItem(a, i),
                                                    SchemaReader::ForItem(b, i), depth + 1));
    if (apart) return true;
  }
  return false;
}

StatusOr<bool> Proof::ObjectsApart(const Facts& a, const Facts& b, int depth) {
  std::vector<std::string> names = SchemaReader::NamedProperties(a);
  const std::vector<std::string> mine = names;
  names.insert(names.end(), b.required.begin(), b.required.end());
  const auto has = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  for (const std::string& name : names) {
    const bool needed_here = has(a.required, name), needed_there = has(b.required, name);
    if (!needed_here && !needed_there) continue;
    // Only the outermost object is narrowed by KeepApart.
    if (depth == 0 && !has(mine, name) && SchemaReader::Closed(a)) {
      used_closed_ = true;
      return true;
    }
    // The value must be there, so it must meet both.
    DI_ASSIGN_OR_RETURN(const bool apart, SetsApart(reader_.ForProperty(a, name),
                                                    reader_.ForProperty(b, name), depth + 1));
    if (apart) return true;
  }
  return (a.max_properties && *a.max_properties < b.min_properties) ||
         (b.max_properties && *b.max_properties < a.min_properties);
}

}  // namespace

StatusOr<bool> KeepApart(SchemaReader& reader, Facts& inside, const std::vector<Facts>& around) {
  MakeTypeExplicit(inside);
  Proof proof(reader);
  for (const Facts& other : around) {
    DI_ASSIGN_OR_RETURN(const bool apart, proof.Apart(inside, other, 0));
    if (!apart) return false;
  }
  if (!proof.used_closed()) return true;
  JsonValue nothing;
  nothing.kind = Kind::kBool;
  ObjectFacts closed;
  JsonValue anything = nothing;
  anything.boolean = true;
  const SchemaRef any = reader.document().Own(std::move(anything), inside.at);
  for (const std::string& name : SchemaReader::NamedProperties(inside)) {
    closed.properties.emplace_back(name, any);
  }
  closed.additional = reader.document().Own(std::move(nothing), inside.at);
  inside.objects.push_back(std::move(closed));
  return true;
}

}  // namespace deepinfer
