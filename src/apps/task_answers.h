// apps/task_answers.h: the engine's greedy answers to exercises, many computed together.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/task_items.h"
#include "base/status.h"
#include "engine/engine_core.h"
#include "tokens/answer_parser.h"

namespace deepinfer {

struct TaskAnswer {
  std::vector<int32_t> ids;  // with EOS, if it came
  ParsedAnswer parsed;
};

struct AnswerOptions {
  AnswerTokens tokens;
  int32_t max_answer_tokens = 0;
  std::function<void(int64_t tokens)> progress;  // of a prompt whose answer is done
};

// One answer an item, in their order. Requires: the engine has no work. Errors: as
// EngineCore::Submit; the first failure of a request.
StatusOr<std::vector<TaskAnswer>> AnswerItems(EngineCore& core, std::span<const TaskItem> items,
                                              const AnswerOptions& options);

// {"task":, "key":, "prompt":, "expected":, "expected_calls":, "answer":} and a line end. The
// prompt and the answer as the model reads and writes them; the calls only if some are expected.
std::string WrongAnswerJson(std::string_view task, const TaskItem& item, const TaskAnswer& answer,
                            const Tokenizer& tokenizer);

}  // namespace deepinfer
