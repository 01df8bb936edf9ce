#include "eval/sums.h"

#include <utility>

#include "eval/operation.h"
#include "eval/turns.h"

namespace deepinfer {
namespace {

int64_t DrawOfDigits(Rng& rng, int64_t num_digits) {
  int64_t low = 1;
  while (--num_digits > 0) low *= 10;
  return Between(rng, low, 10 * low - 1);
}

// In either order where that does not matter.
Operation DrawSum(Rng& rng, int low, int high) {
  Operation sum{DrawOfDigits(rng, Between(rng, low, high)),
                DrawOfDigits(rng, Between(rng, low, high)), Chance(rng, 0.5) ? '+' : '-'};
  const bool swap = sum.sign == '-' ? sum.left < sum.right : Chance(rng, 0.5);
  if (swap) std::swap(sum.left, sum.right);
  return sum;
}

std::string AskForSum(Rng& rng, const Operation& sum) {
  const bool plus = sum.sign == '+';
  switch (rng.Uniform(4)) {
    case 0:
      return StrCat(sum.left, " ", sum.sign, " ", sum.right, " =");
    case 1:
      return StrCat("Calculate ", sum.left, " ", sum.sign, " ", sum.right, ".");
    case 2:
      return plus ? StrCat("What is ", sum.left, " plus ", sum.right, "?")
                  : StrCat("What is ", sum.left, " minus ", sum.right, "?");
    default:
      return StrCat("What is ", sum.left, " ", sum.sign, " ", sum.right, "?");
  }
}

// One column; `carry` is what the column to the right left over, and this one's afterwards.
std::string Column(int64_t upper, char sign, int64_t lower, int64_t& carry) {
  std::string step = StrCat(upper, " ", sign, " ", lower);
  if (carry > 0) step += StrCat(" ", sign, " ", carry);
  const int64_t value = sign == '+' ? upper + lower + carry : upper - lower - carry;
  carry = value > 9 || value < 0 ? 1 : 0;
  const int64_t digit = (value + 10) % 10;
  step += StrCat(" = ", value, ", write ", digit);
  if (carry > 0) step += sign == '+' ? ", carry 1" : ", borrow 1";
  return step + ".";
}

// Numbers of `low` to `high` digits, each of a length of its own where these differ.
StatusOr<Exercise> DrawSumsOf(DrawContext& context, int low, int high) {
  return DrawTurns(context, kOperationKeys, 1, [&]() -> Question {
    const Operation sum =
        DrawOperationInSplit(context, [&] { return DrawSum(context.rng, low, high); });
    return {
        .ask = AskForSum(context.rng, sum),
        .answer = StrCat(sum.result()),
        .reasoning = StrCat(ColumnSteps(sum.left, sum.sign, sum.right), " So ", sum.result(), "."),
        .key = sum.key()};
  });
}

std::string AskForProduct(Rng& rng, const Operation& product) {
  constexpr std::string_view kBefore[] = {"What is ", "Calculate ", "How much is ", ""};
  constexpr std::string_view kAfter[] = {"?", ".", "?", " ="};
  constexpr std::string_view kSigns[] = {" x ", " times ", " * "};
  const size_t wording = rng.Uniform(std::size(kBefore));
  const std::string_view sign = Pick(rng, kSigns);
  return StrCat(kBefore[wording], product.left, sign, product.right, kAfter[wording]);
}

// Two or three digits times one, as often.
Operation DrawProduct(Rng& rng) {
  return {DrawOfDigits(rng, Between(rng, 2, 3)), Between(rng, 2, 9), 'x'};
}

}  // namespace

std::string ColumnSteps(int64_t left, char sign, int64_t right) {
  CHECK(sign == '+' || (sign == '-' && right <= left));
  std::string steps;
  int64_t carry = 0;
  for (; left > 0 || right > 0; left /= 10, right /= 10) {
    steps += StrCat(steps.empty() ? "" : " ", Column(left % 10, sign, right % 10, carry));
  }
  return steps;
}

StatusOr<Exercise> DrawSums(DrawContext& context) {
  const int num_digits = static_cast<int>(Between(context.rng, 3, 4));
  return Chance(context.rng, 0.2) ? DrawSumsOf(context, 2, 4)
                                  : DrawSumsOf(context, num_digits, num_digits);
}

StatusOr<Exercise> DrawSums3(DrawContext& context) { return DrawSumsOf(context, 3, 3); }

StatusOr<Exercise> DrawSums4(DrawContext& context) { return DrawSumsOf(context, 4, 4); }

StatusOr<Exercise> DrawProducts(DrawContext& context) {
  return DrawTurns(context, kOperationKeys, 1, [&]() -> Question {
    for (;;) {
      const Operation product =
          DrawOperationInSplit(context, [&] { return DrawProduct(context.rng); });
      const WorkedProduct worked = WorkOutProduct(product.left, product.right);
      if (!MayBeShown(worked.sums, context.split)) continue;
      return {.ask = AskForProduct(context.rng, product),
              .answer = StrCat(product.result()),
              .reasoning = worked.steps,
              .key = product.key()};
    }
  });
}

}  // namespace deepinfer
