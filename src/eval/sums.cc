#include "eval/sums.h"

#include "eval/turns.h"

namespace deepinfer {
namespace {

struct Sum {
  int64_t left, right;
  char sign;
  std::string key;
};

int64_t DrawOfDigits(Rng& rng, int64_t num_digits) {
  int64_t low = 1;
  while (--num_digits > 0) low *= 10;
  return Between(rng, low, 10 * low - 1);
}

Sum DrawSum(Rng& rng, int low, int high) {
  Sum sum{DrawOfDigits(rng, Between(rng, low, high)),
          DrawOfDigits(rng, Between(rng, low, high)),
          Chance(rng, 0.5) ? '+' : '-',
          {}};
  if (sum.left < sum.right) std::swap(sum.left, sum.right);
  sum.key = StrCat(sum.left, sum.sign, sum.right);
  if (sum.sign == '+' && Chance(rng, 0.5)) std::swap(sum.left, sum.right);
  return sum;
}

std::string AskFor(Rng& rng, const Sum& sum) {
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
  constexpr std::string_view kTask = "sums";
  return DrawTurns(context, kTask, 1, [&]() -> Question {
    const Sum sum = DrawInSplit(context, kTask, [&] { return DrawSum(context.rng, low, high); });
    const int64_t result = sum.sign == '+' ? sum.left + sum.right : sum.left - sum.right;
    return {.ask = AskFor(context.rng, sum),
            .answer = StrCat(result),
            .reasoning = StrCat(ColumnSteps(sum.left, sum.sign, sum.right), " So ", result, "."),
            .key = sum.key};
  });
}

struct Product {
  int64_t left, right;
  std::string key;
};

std::string AskFor(Rng& rng, const Product& product) {
  constexpr std::string_view kBefore[] = {"What is ", "Calculate ", "How much is ", ""};
  constexpr std::string_view kAfter[] = {"?", ".", "?", " ="};
  constexpr std::string_view kSigns[] = {" x ", " times ", " * "};
  const size_t wording = rng.Uniform(std::size(kBefore));
  const std::string_view sign = Pick(rng, kSigns);
  return StrCat(kBefore[wording], product.left, sign, product.right, kAfter[wording]);
}

std::string Steps(const Product& product) {
  const int64_t tens = product.left / 10 * 10, ones = product.left % 10;
  const int64_t upper = tens * product.right, lower = ones * product.right;
  return StrCat(tens, " x ", product.right, " = ", upper, ". ", ones, " x ", product.right, " = ",
                lower, ". ", upper, " + ", lower, " = ", upper + lower, ".");
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
  constexpr std::string_view kTask = "products";
  return DrawTurns(context, kTask, 1, [&]() -> Question {
    const Product product = DrawInSplit(context, kTask, [&] {
      Product drawn{Between(context.rng, 10, 99), Between(context.rng, 2, 9), {}};
      drawn.key = StrCat(drawn.left, "x", drawn.right);
      return drawn;
    });
    return {.ask = AskFor(context.rng, product),
            .answer = StrCat(product.left * product.right),
            .reasoning = Steps(product),
            .key = product.key};
  });
}

}  // namespace deepinfer
