// apps/task_evaluation.h: asks a model held-out exercises in both replay modes, grades the answers,
// and makes them again with drafts.
#pragma once

#include <string>
#include <vector>

#include "apps/task_scores.h"
#include "base/clock.h"
#include "base/disk.h"
#include "engine/loaded_engine.h"

namespace deepinfer {

struct TaskEvaluationOptions {
  std::vector<std::string> tasks;  // empty: all, those apart that this model cannot be asked
  int32_t num_items = 0;           // of a task; 0: 200, of tasks that fill a context 100
  int32_t num_draft_items = 0;     // of a task's; 0: all, of tasks that fill a context a quarter
  uint64_t seed = 0;
  int32_t max_answer_tokens = 0;
  WritableFile* wrong = nullptr;  // not null: wrong answers in exact mode go there, JSONL
  std::string text, text_name;    // for the perplexity; empty: stories of the evaluation's own
  std::string published_tools;    // definitions for the task tools_real, JSONL; empty: not asked
};

// Requires: the engine runs exact replay. Errors: kInvalidArgument for an unknown task; as
// DrawItems for a task that was asked for, and AnswerItems.
StatusOr<Evaluation> EvaluateTasks(LoadedEngine& engine, Disk& disk, Clock& clock,
                                   const TaskEvaluationOptions& options);

// "arithmetic,json" -> kinds. Errors: kInvalidArgument naming the evaluated ones.
Status CheckTaskNames(const std::vector<std::string>& names);

}  // namespace deepinfer
