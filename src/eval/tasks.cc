// The table of kinds. A kind's generator is declared by the header of its group.
#include <algorithm>

#include "eval/arithmetic.h"
#include "eval/exercise.h"

namespace deepinfer {
namespace {

constexpr TaskKind kTasks[] = {
    {.name = "arithmetic", .draw = DrawArithmetic},
};

}  // namespace

std::span<const TaskKind> AllTasks() { return kTasks; }

const TaskKind* FindTask(std::string_view name) {
  const auto found = std::find_if(std::begin(kTasks), std::end(kTasks),
                                  [&](const TaskKind& kind) { return kind.name == name; });
  return found == std::end(kTasks) ? nullptr : found;
}

}  // namespace deepinfer
