#include "eval/unit_exercises.h"

#include <string_view>

#include "base/strings.h"
#include "eval/dialogue.h"
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

Question Ask(Rng& rng, const std::string& value, std::string_view to, std::string answer,
             std::string reasoning) {
  Question question;
  question.ask =
      Filled(PickAlternative(rng, kWordings), {{"value", value}, {"to", std::string(to)}});
  question.key = StrCat(value, " in ", to);
  question.answer = std::move(answer);
  question.reasoning = std::move(reasoning);
  return question;
}

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

Question TensDown(Rng& rng, const UnitPair& pair) {
  // Sometimes with decimals, no more than the factor has zeros.
  const int64_t small = Chance(rng, 0.5) ? Between(rng, 1, pair.large_max) * pair.factor
                                         : Between(rng, 1, 99) * (pair.factor / 10);
  const std::string large = Divided(small, pair.factor);
  return Ask(rng, StrCat(large, " ", pair.large), pair.small, StrCat(small, " ", pair.small),
             StrCat(OneLargeIs(pair), large, " x ", pair.factor, " = ", small, "."));
}

Question TensUp(Rng& rng, const UnitPair& pair) {
  const int64_t small =
      Chance(rng, 0.5) ? Between(rng, 1, pair.large_max) * pair.factor : Between(rng, 1, 9999);
  const std::string large = Divided(small, pair.factor);
  return Ask(rng, StrCat(small, " ", pair.small), pair.large, StrCat(large, " ", pair.large),
             StrCat(OneLargeIs(pair), small, " / ", pair.factor, " = ", large, "."));
}

// "23 x 60: 20 x 60 = 1200, 3 x 60 = 180, 1200 + 180 = 1380." or "7 x 60 = 420."
std::string ProductSteps(int64_t a, int64_t b) {
  const int64_t tens = a / 10 * 10, ones = a % 10;
  if (tens == 0 || ones == 0) return StrCat(a, " x ", b, " = ", a * b, ".");
  return StrCat(a, " x ", b, ": ", tens, " x ", b, " = ", tens * b, ", ", ones, " x ", b, " = ",
                ones * b, ", ", tens * b, " + ", ones * b, " = ", a * b, ".");
}

Question OthersDown(Rng& rng, const UnitPair& pair) {
  const int64_t large = Between(rng, 1, pair.large_max);
  return Ask(rng, Large(pair, large), pair.small, StrCat(large * pair.factor, " ", pair.small),
             StrCat(OneLargeIs(pair), ProductSteps(large, pair.factor)));
}

// "2 hours and 15 minutes" to minutes.
Question MixedDown(Rng& rng, const UnitPair& pair) {
  const int64_t large = Between(rng, 1, pair.large_max);
  const int64_t rest = Between(rng, 2, pair.factor - 1);
  const int64_t product = large * pair.factor;
  return Ask(rng, StrCat(Large(pair, large), " and ", rest, " ", pair.small), pair.small,
             StrCat(product + rest, " ", pair.small),
             StrCat(OneLargeIs(pair), ProductSteps(large, pair.factor), " ", product, " + ", rest,
                    " = ", product + rest, "."));
}

// 135 minutes to "2 hours and 15 minutes".
Question MixedUp(Rng& rng, const UnitPair& pair) {
  const int64_t large = Between(rng, 1, pair.large_max);
  const int64_t rest = Between(rng, 2, pair.factor - 1);
  const int64_t product = large * pair.factor;
  const std::string to = StrCat(pair.large, " and ", pair.small);
  return Ask(rng, StrCat(product + rest, " ", pair.small), to,
             StrCat(Large(pair, large), " and ", rest, " ", pair.small),
             StrCat(OneLargeIs(pair), product + rest, " / ", pair.factor, " is ", large,
                    " and a rest. ", large, " x ", pair.factor, " = ", product, ". ",
                    product + rest, " - ", product, " = ", rest, "."));
}

Question DrawQuestion(Rng& rng) {
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

}  // namespace

StatusOr<Exercise> DrawUnits(DrawContext& context) {
  return DrawTurns(context, kTask, 2, [&context] {
    return DrawInSplit(context, kTask, [&context] { return DrawQuestion(context.rng); });
  });
}

}  // namespace deepinfer
