// eval/tool_exercises.h: which tool a request asks for, and with which arguments.
#pragma once

#include "eval/exercise.h"

namespace deepinfer {

// One to four tools are offered: one call, two calls in one block, or no tool that fits and a plain
// answer. In training also the tools' results with the sentence that reports them, further
// requests, and definitions of the material. Key: names and arguments of the calls.
StatusOr<Exercise> DrawTools(DrawContext& context);

// The same with nothing but published definitions, and a call always: the material's in training,
// DrawContext::published_tools when held out. Errors: kFailedPrecondition without them.
StatusOr<Exercise> DrawRealTools(DrawContext& context);

}  // namespace deepinfer
