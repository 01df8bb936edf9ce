// The table of kinds. A kind's generator is declared by the header of its group.
#include <algorithm>

#include "eval/arithmetic.h"
#include "eval/chat_exercises.h"
#include "eval/exercise.h"
#include "eval/gloss.h"
#include "eval/json_exercises.h"
#include "eval/keyval.h"
#include "eval/memory_exercises.h"
#include "eval/retrieval.h"
#include "eval/sequences.h"
#include "eval/story_exercises.h"
#include "eval/sums.h"
#include "eval/system_exercises.h"
#include "eval/tool_exercises.h"
#include "eval/unit_exercises.h"

namespace deepinfer {
namespace {

constexpr TaskKind kTasks[] = {
    {.name = "needle", .draw = DrawNeedle, .evaluated = false, .fills = true},
    {.name = "needle_4k", .draw = DrawNeedle4k, .fills = true},
    {.name = "needle_8k", .draw = DrawNeedle8k, .fills = true},
    {.name = "keyval", .draw = DrawKeyValue},
    {.name = "arithmetic", .draw = DrawArithmetic},
    {.name = "sums", .draw = DrawSums, .evaluated = false, .thinks = true},
    {.name = "sums_3", .draw = DrawSums3, .thinks = true},
    {.name = "sums_4", .draw = DrawSums4, .thinks = true},
    {.name = "products", .draw = DrawProducts, .thinks = true},
    {.name = "compare", .draw = DrawCompare},
    {.name = "count", .draw = DrawCount},
    {.name = "copy", .draw = DrawCopy},
    {.name = "sort", .draw = DrawSort},
    {.name = "reverse", .draw = DrawReverse},
    {.name = "gloss", .draw = DrawGloss, .split_by_key = false},
    {.name = "json", .draw = DrawJson},
    {.name = "tools", .draw = DrawTools},
    {.name = "tools_real", .draw = DrawRealTools},
    {.name = "system", .draw = DrawSystem},
    {.name = "memory", .draw = DrawMemory},
    {.name = "units", .draw = DrawUnits, .thinks = true},
    {.name = "chat", .draw = DrawChat, .evaluated = false},
    {.name = "stories", .draw = DrawStory, .evaluated = false},
};

}  // namespace

std::span<const TaskKind> AllTasks() { return kTasks; }

const TaskKind* FindTask(std::string_view name) {
  const auto found = std::find_if(std::begin(kTasks), std::end(kTasks),
                                  [&](const TaskKind& kind) { return kind.name == name; });
  return found == std::end(kTasks) ? nullptr : found;
}

}  // namespace deepinfer
