#include "eval/arithmetic.h"

namespace deepinfer {
namespace {

struct Operation {
  int64_t left, right;
  char sign;  // '+' or '-'
  std::string key;

  int64_t result() const { return sign == '+' ? left + right : left - right; }
};

Operation DrawOperation(Rng& rng, int64_t max) {
  Operation op{Between(rng, 0, max), Between(rng, 0, max), Chance(rng, 0.5) ? '+' : '-', {}};
  if (op.sign == '-' && op.left < op.right) std::swap(op.left, op.right);
  op.key = StrCat(op.left, op.sign, op.right);
  return op;
}

std::string Ask(Rng& rng, const Operation& op) {
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

}  // namespace

StatusOr<Exercise> DrawArithmetic(DrawContext& context) {
  constexpr std::string_view kTask = "arithmetic";
  const Operation op = DrawInSplit(context, kTask, [&] { return DrawOperation(context.rng, 99); });
  Exercise exercise{.task = std::string(kTask), .key = op.key};
  const std::string result = StrCat(op.result());
  exercise.conversation.messages = {
      UserMessage(Ask(context.rng, op)),
      AssistantMessage(result, StrCat(op.left, " ", op.sign, " ", op.right, " = ", result))};
  return exercise;
}

}  // namespace deepinfer
