#include <algorithm>

#include "tokens/json.h"
#include "tokens/schema_numbers.h"

namespace deepinfer {
namespace {

// Exact, unlike F64: 9007199254740993 is not 9007199254740992.
bool SameNumber(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const auto x = Decimal::Parse(a), y = Decimal::Parse(b);
  return x.ok() && y.ok() && *x == *y;
}

std::vector<const JsonMember*> ByKey(const JsonValue& object) {
  std::vector<const JsonMember*> members;
  for (const JsonMember& member : object.members) members.push_back(&member);
  std::sort(members.begin(), members.end(),
            [](const JsonMember* x, const JsonMember* y) { return x->key < y->key; });
  return members;
}

bool SameMembers(const JsonValue& a, const JsonValue& b) {
  if (a.members.size() != b.members.size()) return false;
  const std::vector<const JsonMember*> left = ByKey(a), right = ByKey(b);
  return std::equal(left.begin(), left.end(), right.begin(),
                    [](const JsonMember* x, const JsonMember* y) {
                      return x->key == y->key && SameJson(x->value, y->value);
                    });
}

}  // namespace

bool SameJson(const JsonValue& a, const JsonValue& b) {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case JsonValue::Kind::kNull:
      return true;
    case JsonValue::Kind::kBool:
      return a.boolean == b.boolean;
    case JsonValue::Kind::kNumber:
      return SameNumber(a.text, b.text);
    case JsonValue::Kind::kString:
      return a.text == b.text;
    case JsonValue::Kind::kArray:
      return std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), SameJson);
    case JsonValue::Kind::kObject:
      return SameMembers(a, b);
  }
  return false;
}

}  // namespace deepinfer
