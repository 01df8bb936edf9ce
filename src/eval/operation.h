// eval/operation.h: sums, differences and products of two whole numbers.
//
// One rule decides which are held out, for every kind that asks one or writes one down on the way
// to an answer: a sum that `arithmetic` holds out occurs neither in `sums` nor in the steps of
// `units`.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eval/exercise.h"

namespace deepinfer {

// The task whose keys operations have (Exercise::task).
inline constexpr std::string_view kOperationKeys = "operations";

struct Operation {
  int64_t left = 0, right = 0;
  char sign = '+';  // '+', '-' or 'x'

  int64_t result() const;
  // "38+47" for 47 + 38 too: the same whichever of the two comes first, where that does not matter.
  std::string key() const;
  // What longer ones are worked out from: two digits added or subtracted, two numbers of one digit
  // and zeros multiplied, or a number made longer by zeros. Never evaluated, so steps may show all.
  bool IsElementary() const;
};

// Whether a conversation of this split may hold the operation: training none that is held out.
bool MayBeShown(const Operation& operation, Split split);
bool MayBeShown(std::span<const Operation> operations, Split split);

// 700, 40 and 3 of 743.
std::vector<int64_t> DecimalParts(int64_t number);

// make() until the operation that it returned may be asked in the split.
template <typename Make>
Operation DrawOperationInSplit(const DrawContext& context, Make make) {
  struct Drawn {
    std::string key;
    Operation operation;
  };
  for (;;) {
    const Drawn drawn = DrawInSplit(context, kOperationKeys, [&] {
      const Operation operation = make();
      return Drawn{operation.key(), operation};
    });
    if (context.split == Split::kTraining || !drawn.operation.IsElementary()) {
      return drawn.operation;
    }
  }
}

// "20 x 7 = 140. 3 x 7 = 21. 140 + 21 = 161.", and the sums in it. Requires: both above 0.
struct WorkedProduct {
  std::string steps;
  std::vector<Operation> sums;
};
WorkedProduct WorkOutProduct(int64_t left, int64_t right);

}  // namespace deepinfer
