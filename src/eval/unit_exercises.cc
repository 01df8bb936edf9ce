#include "eval/unit_exercises.h"

#include <string_view>

#include "base/strings.h"
#include "eval/dialogue.h"
#include "eval/operation.h"
#include "eval/turns.h"

namespace deepinfer {
namespace {

constexpr std::string_view kTask = "units";

// `factor` of the small unit make one of the large unit.
struct UnitPair {
  std::string_view one, large, small;  // "hour", "hours", "minutes"
  int64_t factor;
  int64_t large_max;  // values of the large unit that are asked
};

// Powers of ten: the number keeps its digits.
constexpr UnitPair kTens[] = {
    {"km", "km", "m", 1000, 99},
    {"m", "m", "cm", 100, 999},
    {"cm", "cm", "mm", 10, 999},
    {"m", "m", "mm", 1000, 99},
    {"kg", "kg", "g", 1000, 99},
    {"ton", "tons", "kg", 1000, 99},
    {"g", "g", "mg", 1000, 99},
    {"liter", "liters", "ml", 1000, 99},
    {"euro", "euros", "cents", 100, 999},
    {"kilometer", "kilometers", "meters", 1000, 99},
    {"meter", "meters", "centimeters", 100, 999},
    {"dollar", "dollars", "cents", 100, 999},
    {"kilogram", "kilograms", "grams", 1000, 99},
};
// Others: the number is worked out in steps.
constexpr UnitPair kOthers[] = {
    {"hour", "hours", "minutes", 60, 24},
    {"minute", "minutes", "seconds", 60, 60},
    {"h", "h", "min", 60, 24},
    {"day", "days", "hours", 24, 14},
    {"week", "weeks", "days", 7, 52},
    {"year", "years", "months", 12, 30},
    {"dozen", "dozens", "pieces", 12, 20},
};

constexpr std::string_view kWordings =
    "How many {to} are {value}?|Convert {value} to {to}.|What is {value} in {to}?|{value} in {to}?|"
    "Write {value} in {to}.|Please convert {value} into {to}.|Change {value} to {to}.";

// A conversion, and what of it counts for the split: the numbers and the way, whatever the units'
// names, and the operations in its steps.
struct Conversion {
  std::string key;
  std::string value, to, answer, reasoning;
  std::vector<Operation> operations = {};
};

// value / factor for a power of ten: "3.45", "0.05", "12".
std::string Divided(int64_t value, int64_t factor) {
  std::string rest = StrCat(factor + value % factor).substr(1);  // with its leading zeros
  while (!rest.empty() && rest.back() == '0') rest.pop_back();
  const std::string whole = StrCat(value / factor);
  return rest.empty() ? whole : StrCat(whole, ".", rest);
}

std::string OneLargeIs(const UnitPair& pair) {
  return StrCat("1 ", pair.one, " is ", pair.factor, " ", pair.small, ". ");
}

// "1 hour", "2 hours"
std::string Large(const UnitPair& pair, int64_t count) {
  return StrCat(count, " ", count == 1 ? pair.one : pair.large);
}

Conversion TensDown(Rng& rng, const UnitPair& pair) {
  // Sometimes with decimals, no more than the factor has zeros.
  const int64_t small = Chance(rng, 0.5) ? Between(rng, 1, pair.large_max) * pair.factor
                                         : Between(rng, 1, 99) * (pair.factor / 10);
  const std::string large = Divided(small, pair.factor);
  return {.key = StrCat(large, " x ", pair.factor),
          .value = StrCat(large, " ", pair.large),
          .to = std::string(pair.small),
          .answer = StrCat(small, " ", pair.small),
          .reasoning = StrCat(OneLargeIs(pair), large, " x ", pair.factor, " = ", small, ".")};
}

Conversion TensUp(Rng& rng, const UnitPair& pair) {
  const int64_t small =
      Chance(rng, 0.5) ? Between(rng, 1, pair.large_max) * pair.factor : Between(rng, 1, 9999);
  const std::string large = Divided(small, pair.factor);
  return {.key = StrCat(small, " / ", pair.factor),
          .value = StrCat(small, " ", pair.small),
          .to = std::string(pair.large),
          .answer = StrCat(large, " ", pair.large),
          .reasoning = StrCat(OneLargeIs(pair), small, " / ", pair.factor, " = ", large, ".")};
}

Conversion OthersDown(Rng& rng, const UnitPair& pair) {
  const int64_t large = Between(rng, 1, pair.large_max);
  const Operation product{large, pair.factor, 'x'};
  WorkedProduct worked = WorkOutProduct(large, pair.factor);
  worked.sums.push_back(product);
  return {.key = StrCat(large, " x ", pair.factor),
          .value = Large(pair, large),
          .to = std::string(pair.small),
          .answer = StrCat(product.result(), " ", pair.small),
          .reasoning = OneLargeIs(pair) + worked.steps,
          .operations = std::move(worked.sums)};
}

// "2 hours and 15 minutes" to minutes.
Conversion MixedDown(Rng& rng, const UnitPair& pair) {
  Conversion conversion = OthersDown(rng, pair);
  const int64_t product = conversion.operations.back().result();
  const Operation sum{product, Between(rng, 2, pair.factor - 1), '+'};
  conversion.key += StrCat(" + ", sum.right);
  conversion.value += StrCat(" and ", sum.right, " ", pair.small);
  conversion.answer = StrCat(sum.result(), " ", pair.small);
  conversion.reasoning += StrCat(" ", sum.left, " + ", sum.right, " = ", sum.result(), ".");
  conversion.operations.push_back(sum);
  return conversion;
}

// 1395 minutes to "23 hours and 15 minutes": 20 hours are taken off, then 3.
Conversion MixedUp(Rng& rng, const UnitPair& pair) {
  const int64_t large = Between(rng, 1, pair.large_max);
  const int64_t rest = Between(rng, 2, pair.factor - 1), total = large * pair.factor + rest;
  Conversion conversion = {.key = StrCat(total, " / ", pair.factor),
                           .value = StrCat(total, " ", pair.small),
                           .to = StrCat(pair.large, " and ", pair.small),
                           .answer = StrCat(Large(pair, large), " and ", rest, " ", pair.small),
                           .reasoning = OneLargeIs(pair)};
  int64_t left = total;
  for (const int64_t part : DecimalParts(large)) {
    const Operation taken{left, part * pair.factor, '-'};
    left = taken.result();
    conversion.reasoning += StrCat(part, " x ", pair.factor, " = ", taken.right, ". ", taken.left,
                                   " - ", taken.right, " = ", left, ". ");
    conversion.operations.push_back(taken);
  }
  conversion.reasoning += StrCat("So ", large, " and ", rest, ".");
  return conversion;
}

Conversion DrawConversion(Rng& rng) {
  const UnitPair& ten = Pick(rng, kTens);
  const UnitPair& other = Pick(rng, kOthers);
  switch (rng.Uniform(6)) {
    case 0:
    case 1:
      return TensDown(rng, ten);
    case 2:
      return TensUp(rng, ten);
    case 3:
      return OthersDown(rng, other);
    case 4:
      return MixedDown(rng, other);
    default:
      return MixedUp(rng, other);
  }
}

Question Ask(Rng& rng, Conversion conversion) {
  Question question;
  question.ask =
      Filled(PickAlternative(rng, kWordings), {{"value", conversion.value}, {"to", conversion.to}});
  question.answer = std::move(conversion.answer);
  question.reasoning = std::move(conversion.reasoning);
  question.key = std::move(conversion.key);
  return question;
}

Question DrawQuestion(DrawContext& context) {
  for (;;) {
    Conversion conversion =
        DrawInSplit(context, kTask, [&context] { return DrawConversion(context.rng); });
    if (MayBeShown(conversion.operations, context.split)) {
      return Ask(context.rng, std::move(conversion));
    }
  }
}

}  // namespace

StatusOr<Exercise> DrawUnits(DrawContext& context) {
  return DrawTurns(context, kTask, 2, [&context] { return DrawQuestion(context); });
}

}  // namespace deepinfer
