// apps/task_scores.h: what `eval tasks` finds out about a model. Plain data, filled by
// task_evaluation.cc, shown by task_report.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/calibration.h"
#include "apps/routing_load.h"

namespace deepinfer {

// What drafts were worth.
struct DraftScore {
  int64_t num_answers = 0;
  int64_t num_steps = 0;
  int64_t num_accepted = 0;   // drafts
  int64_t num_tokens = 0;     // of answers; those of the steps: without the first of each
  int64_t num_different = 0;  // answers that are not the engine's; 0, or one of the two is wrong

  // Tokens that a step brought: accepted drafts and, unless the answer ended among them, the token
  // after them. Requires: num_steps > 0.
  double AcceptedLength() const {
    return static_cast<double>(num_tokens - num_answers) / static_cast<double>(num_steps);
  }
  void Add(const DraftScore& other);
};

struct TaskScore {
  std::string name;
  int32_t total = 0;
  int32_t right_exact = 0, right_bounded = 0;
  int32_t num_in_training = 0;                           // as TaskItems has it
  bool split_by_key = true;                              // false: the split check does not apply
  int64_t num_prompt_tokens = 0, num_answer_tokens = 0;  // of the exact answers
  int32_t num_cut = 0;                                   // exact answers without an end
  DraftScore draft;

  double Exact() const { return static_cast<double>(right_exact) / total; }
  double Bounded() const { return static_cast<double>(right_bounded) / total; }
};

struct PerplexityScore {
  std::string text;  // what was scored: a file, or words of ours
  double perplexity = 0;
  int64_t num_tokens = 0;
};

struct EvaluationSeconds {
  double exact = 0, bounded = 0, draft = 0, perplexity = 0;
};

struct Evaluation {
  std::string model;
  uint64_t seed = 0;
  bool seed_of_weights = false;
  int32_t max_answer_tokens = 0;
  std::vector<TaskScore> tasks;
  std::vector<std::pair<std::string, std::string>> skipped;  // task, why
  std::optional<PerplexityScore> perplexity;

  // ---- of the draft loop
  bool has_drafts = false;               // false: the model has no draft blocks
  DraftScore draft;                      // over all tasks
  Calibration confidence;                // of all drafts that were judged
  std::vector<Calibration> by_position;  // the same by place in the block
  std::vector<double> temperatures;      // of the checkpoint, which divide the confidences
  std::optional<RoutingLoad> load;       // of prompts and answers
  EvaluationSeconds seconds;

  // Nothing of what must be 0 is not.
  bool IsSound() const;
};

}  // namespace deepinfer
