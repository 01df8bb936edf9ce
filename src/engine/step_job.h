// engine/step_job.h: a plan on its way through execution, and what came of it. Private to engine/.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "deepinfer/sampling.h"
#include "engine/sequence_run.h"
#include "schedule/cost_model.h"
#include "schedule/step_plan.h"

namespace deepinfer {

// What became of one PlannedRows.
struct RowsOutcome {
  Status status;             // not ok: the sequence's last outcome
  bool dropped = false;      // it had ended before, or its KV is useless; no rows ran
  bool starts_anew = false;  // dropped, because its pass failed
  bool snapshot_taken = false;
  int32_t num_computed = 0;  // positions whose KV is present
  int32_t num_tokens = 0;    // known tokens
  int32_t num_new = 0;       // of them new in this step
  int32_t num_drafts = 0;    // verified beside the newest token
  int32_t tokens[kMaxDrafts + 1] = {};
  bool ends = false;       // the last of them ends the output
  bool mask_late = false;  // nothing was sampled: masks were not ready
  int32_t num_masks = 0;   // used or not, but computed for this step
  double mask_seconds = 0;
  std::vector<PositionLogprobs> logprobs;         // one a new token, if asked for
  std::vector<PositionLogprobs> prompt_logprobs;  // of this step's prompt rows, if asked for
};

// Made by the planning thread, run by the executing thread, read by the planning thread.
struct StepJob {
  StepPlan plan;
  std::vector<SequenceRun*> copy_runs;  // one a copy; null for page saves
  std::vector<SequenceRun*> row_runs;   // one a PlannedRows

  std::vector<RowsOutcome> outcomes;   // one a PlannedRows
  std::vector<int32_t> failed_copies;  // indices of plan.copies whose source was damaged
  StepLoad load;                       // of the rows that ran
  double seconds = 0;                  // copies, pass and sampling
  double plan_seconds = 0;             // set by the planning thread
};

}  // namespace deepinfer
