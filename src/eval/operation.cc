#include "eval/operation.h"

#include <algorithm>

#include "base/strings.h"

namespace deepinfer {

std::vector<int64_t> DecimalParts(int64_t number) {
  std::vector<int64_t> parts;
  for (int64_t power = 1; power <= number; power *= 10) {
    const int64_t part = number / power % 10 * power;
    if (part > 0) parts.insert(parts.begin(), part);
  }
  return parts;
}

int64_t Operation::result() const {
  if (sign == 'x') return left * right;
  return sign == '+' ? left + right : left - right;
}

std::string Operation::key() const {
  if (sign == '-') return StrCat(left, sign, right);
  return StrCat(std::max(left, right), sign, std::min(left, right));
}

bool Operation::IsElementary() const {
  if (sign != 'x') return left <= 9 && right <= 9;
  const auto is_power_of_ten = [](int64_t number) {
    while (number > 0 && number % 10 == 0) number /= 10;
    return number == 1;
  };
  return (DecimalParts(left).size() <= 1 && DecimalParts(right).size() <= 1) ||
         is_power_of_ten(left) || is_power_of_ten(right);
}

bool MayBeShown(const Operation& operation, Split split) {
  return split == Split::kHeldOut || operation.IsElementary() ||
         SplitOf(kOperationKeys, operation.key()) == Split::kTraining;
}

bool MayBeShown(std::span<const Operation> operations, Split split) {
  return std::all_of(operations.begin(), operations.end(),
                     [split](const Operation& operation) { return MayBeShown(operation, split); });
}

WorkedProduct WorkOutProduct(int64_t left, int64_t right) {
  CHECK(left > 0 && right > 0);
  WorkedProduct worked;
  int64_t sum = 0;
  for (const int64_t part : DecimalParts(left)) {
    const int64_t product = part * right;
    worked.steps +=
        StrCat(worked.steps.empty() ? "" : " ", part, " x ", right, " = ", product, ".");
    if (sum > 0) {
      worked.sums.push_back({sum, product, '+'});
      worked.steps += StrCat(" ", sum, " + ", product, " = ", sum + product, ".");
    }
    sum += product;
  }
  return worked;
}

}  // namespace deepinfer
