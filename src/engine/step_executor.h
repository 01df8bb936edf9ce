// engine/step_executor.h: runs one plan: copies, one forward pass over all rows, sampling and
// verification, sealing of snapshots.
//
// Lengths and ids that the plan could not know when it was made (a step was in flight) are taken
// from the sequences' own state here, so a plan says what may run and this says what does.
// Grammars: the masks of a row are computed beside the pass (engine/mask_workers.h). Where they are
// not ready when everything else has been sampled and a short wait is over, the row sits out:
// nothing is sampled, and the same rows run in its next step with the same result.
// Verification: the token at each position is sampled from the model's own logits, whatever was
// drafted; a draft is accepted if it is that token. Source: serving.md 14 (Gumbel coupling).
// Threads: the executing thread only, and for sampling those of its pool. Allocates nothing once it
// has met its largest step, except for log-probabilities that somebody asked for and for failures.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "cache/kv_memory.h"
#include "engine/mask_workers.h"
#include "engine/step_job.h"
#include "model/forward_batch.h"
#include "model/sampler.h"

namespace deepinfer {

// Runs the pass and returns logits [rows that asked, V]; see Model::Forward. A failure may concern
// any of the sequences in it, so they are tried one by one: whoever fails alone, ends.
using ForwardFn = std::function<StatusOr<std::span<const float>>(const ForwardBatch&)>;

// Guesses what comes next. Called after a sequence's newest token was sampled; writes up to `most`
// tokens to run.tokens[run.num_tokens ...] and returns how many.
class Drafter {
 public:
  virtual ~Drafter() = default;
  virtual int32_t Draft(SequenceRun& run, int32_t most) = 0;
};

struct ExecutorBackend {
  ForwardFn forward;
  // Rows are sampled on these, which may be those of `forward`; null: on the executing thread.
  ThreadPool* threads = nullptr;
  KvMemory* memory = nullptr;
  Drafter* drafter = nullptr;  // null: nothing is drafted
  const Clock* clock = nullptr;
  MaskWorkers* masks = nullptr;  // null: no sequence has masks
  MaskOptions mask_options;
  int32_t vocab_size = 0;
  int32_t eos_id = 0;             // ends what has a mask, also with ignore_eos
  std::function<void()> prepare;  // run once on the executing thread, before any step; may be empty
};

class StepExecutor {
 public:
  explicit StepExecutor(ExecutorBackend backend);

  void Prepare() {
    if (backend_.prepare) backend_.prepare();
  }
  void Run(StepJob& job);

 private:
  // The logits of a segment, and what was sampled from the first row of them that is sampled.
  struct FirstRow {
    std::span<const float> logits;
    std::optional<StatusOr<SampledToken>> sampled;
  };

  void RunCopies(StepJob& job);
  Status RunCopy(const StepPlan& plan, const PlannedCopy& copy, SequenceRun* run);
  void MakeBatch(StepJob& job);
  void RunTogether(StepJob& job);
  void SampleFirstRows(const StepJob& job, std::span<const float> logits);
  void RunApart(StepJob& job);
  void RunAlone(StepJob& job, int32_t rows_idx, const ForwardSegment& segment);
  ForwardSegment MakeSegment(const PlannedRows& rows, SequenceRun& run);
  std::span<const float> TakeLogits(const ForwardSegment& segment,
                                    std::span<const float>& logits) const;
  void Advance(const PlannedRows& rows, const ForwardSegment& segment, SequenceRun& run,
               RowsOutcome& outcome, std::span<const float> logits, FirstRow* first = nullptr);
  void ScorePrompt(const ForwardSegment& segment, SequenceRun& run, RowsOutcome& outcome,
                   std::span<const float> logits);
  void AdvanceWaiting(StepJob& job, Duration pass_time);
  static void SitOut(SequenceRun& run, RowsOutcome& outcome);
  void SampleAndVerify(SequenceRun& run, RowsOutcome& outcome, std::span<const float> logits,
                       FirstRow* first);
  bool TakeSample(SequenceRun& run, RowsOutcome& outcome, StatusOr<SampledToken> sampled,
                  bool is_masked);
  void PrepareNext(SequenceRun& run, const RowsOutcome& outcome);
  static void Fail(SequenceRun& run, RowsOutcome& outcome, const Status& status);

  const ExecutorBackend backend_;
  std::vector<Sampler> samplers_;     // as many as threads sample at a time
  ForwardBatch batch_;                // segments of rows that run together
  std::vector<int32_t> batch_rows_;   // index of plan.rows, one a segment
  std::vector<FirstRow> first_rows_;  // one a segment
  struct Alone {                      // a segment that has a pass of its own
    int32_t rows_idx;
    ForwardSegment segment;
  };
  std::vector<Alone> alone_;
  ForwardBatch alone_batch_;
  struct Waiting {   // for its masks
    size_t segment;  // index
    std::span<const float> logits;
  };
  std::vector<Waiting> waiting_;
};

}  // namespace deepinfer
