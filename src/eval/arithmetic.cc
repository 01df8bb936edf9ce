#include "eval/arithmetic.h"

#include <algorithm>

#include "eval/operation.h"
#include "eval/turns.h"
#include "eval/words.h"

namespace deepinfer {
namespace {

// In either order where that does not matter.
Operation DrawSmallOperation(Rng& rng) {
  constexpr int64_t kMax = 99;
  Operation operation{Between(rng, 0, kMax), Between(rng, 0, kMax), Chance(rng, 0.5) ? '+' : '-'};
  if (operation.sign == '-' && operation.left < operation.right) {
    std::swap(operation.left, operation.right);
  }
  return operation;
}

std::string AskFor(Rng& rng, const Operation& op) {
  const bool plus = op.sign == '+';
  switch (rng.Uniform(6)) {
    case 0:
      return StrCat(op.left, " ", op.sign, " ", op.right, " =");
    case 1:
      return StrCat("What is ", op.left, " ", op.sign, " ", op.right, "?");
    case 2:
      return StrCat("What is ", op.left, plus ? " plus " : " minus ", op.right, "?");
    case 3:
      return plus ? StrCat("Add ", op.left, " and ", op.right, ".")
                  : StrCat("Subtract ", op.right, " from ", op.left, ".");
    case 4:
      return StrCat("Calculate ", op.left, op.sign, op.right, ".");
    default:
      return StrCat("How much is ", op.left, " ", op.sign, " ", op.right, "?");
  }
}

// ---- Compare ------------------------------------------------------------------------------------

struct Comparison {
  bool largest;
  std::vector<int64_t> numbers;  // different ones
  std::string key;
};

Comparison DrawComparison(Rng& rng) {
  Comparison comparison{.largest = Chance(rng, 0.5)};
  constexpr int64_t kMax[] = {99, 999, 9999};
  const int64_t max = Pick(rng, kMax);
  const auto count = static_cast<size_t>(Between(rng, 2, 5));
  std::vector<int64_t>& numbers = comparison.numbers;
  while (numbers.size() < count) {
    const int64_t number = Between(rng, 1, max);
    if (std::find(numbers.begin(), numbers.end(), number) == numbers.end()) {
      numbers.push_back(number);
    }
  }
  std::vector<int64_t> sorted = numbers;
  std::sort(sorted.begin(), sorted.end());
  comparison.key = StrCat(comparison.largest, "|", Join(sorted, " "));
  return comparison;
}

Question QuestionOf(Rng& rng, const Comparison& comparison) {
  const auto [low, high] =
      std::minmax_element(comparison.numbers.begin(), comparison.numbers.end());
  const std::string list = Join(comparison.numbers, ", ");
  const std::string_view most = comparison.largest ? "largest" : "smallest";
  const std::string answer = StrCat(comparison.largest ? *high : *low);
  constexpr std::string_view kBefore[] = {"Which number is the ", "Find the "};
  const bool asks = Chance(rng, 0.5);
  return {.ask = asks ? StrCat(kBefore[0], most, ": ", list, "?")
                      : StrCat(kBefore[1], most, " number: ", list),
          .answer = answer,
          .reasoning = StrCat("The ", most, " of them is ", answer, "."),
          .key = comparison.key};
}

// ---- Count --------------------------------------------------------------------------------------

struct Counting {
  std::vector<std::string_view> list;
  std::string_view counted;  // empty: all words
  std::string key;
};

Counting DrawCounting(Rng& rng) {
  Counting counting;
  const auto size = static_cast<size_t>(Between(rng, 2, 9));
  const bool all = Chance(rng, 0.5);
  const std::string_view choices[] = {Pick(rng, Animals()), Pick(rng, Objects()),
                                      Pick(rng, Foods())};
  while (counting.list.size() < size) {
    counting.list.push_back(all ? Pick(rng, CommonWords()) : Pick(rng, choices));
  }
  if (!all) counting.counted = Pick(rng, counting.list);
  counting.key = StrCat(counting.counted, "|", Join(counting.list, " "));
  return counting;
}

Question QuestionOf(Rng& rng, const Counting& counting) {
  const std::string list = Join(counting.list, ", ");
  const bool all = counting.counted.empty();
  const int64_t count =
      all ? std::ssize(counting.list)
          : std::count(counting.list.begin(), counting.list.end(), counting.counted);
  const std::string ask =
      all ? StrCat(Chance(rng, 0.5) ? "How many words are in this list: " : "Count the words: ",
                   list)
          : StrCat("How often does ", counting.counted, " occur in this list: ", list);
  std::string reasoning;  // every counted word with its number
  for (size_t i = 0, number = 0; i < counting.list.size(); ++i) {
    if (!all && counting.list[i] != counting.counted) continue;
    reasoning += StrCat(reasoning.empty() ? "" : ", ", counting.list[i], " ", ++number);
  }
  return {.ask = ask, .answer = StrCat(count), .reasoning = reasoning, .key = counting.key};
}

}  // namespace

StatusOr<Exercise> DrawArithmetic(DrawContext& context) {
  return DrawTurns(context, kOperationKeys, 8, [&]() -> Question {
    const Operation op =
        DrawOperationInSplit(context, [&] { return DrawSmallOperation(context.rng); });
    const std::string result = StrCat(op.result());
    return {.ask = AskFor(context.rng, op),
            .answer = result,
            .reasoning = StrCat(op.left, " ", op.sign, " ", op.right, " = ", result),
            .key = op.key()};
  });
}

StatusOr<Exercise> DrawCompare(DrawContext& context) {
  constexpr std::string_view kTask = "compare";
  return DrawTurns(context, kTask, 6, [&] {
    return QuestionOf(context.rng,
                      DrawInSplit(context, kTask, [&] { return DrawComparison(context.rng); }));
  });
}

StatusOr<Exercise> DrawCount(DrawContext& context) {
  constexpr std::string_view kTask = "count";
  return DrawTurns(context, kTask, 6, [&] {
    return QuestionOf(context.rng,
                      DrawInSplit(context, kTask, [&] { return DrawCounting(context.rng); }));
  });
}

}  // namespace deepinfer
