// schedule/scheduler_entry.h: what the scheduler remembers of a sequence. Private to schedule/.
#pragma once

#include "schedule/scheduler.h"

namespace deepinfer {

inline int32_t PagesFor(int32_t num_tokens) {
  return (num_tokens + kTokensPerPage - 1) / kTokensPerPage;
}
inline int32_t PageFloor(int32_t num_tokens) {
  return num_tokens / kTokensPerPage * kTokensPerPage;
}

struct Scheduler::Entry {
  int32_t id = -1;
  State state = State::kFree;
  SequenceSpec spec;
  ReplayPlan replay;
  int64_t order = 0;        // of admission; kept through preemption
  int64_t last_chunk = 0;   // plan that last held a prefill chunk of it
  int64_t planned_in = -1;  // plan that holds rows of it
  MonotonicTime rows_at;    // when rows of it were planned last, or it started
  int32_t state_slot = -1;
  int32_t save = -1;                 // while preempted
  std::vector<int32_t> pages;        // while running
  std::vector<int32_t> saved_pages;  // host pages, pinned; while preempted
  int32_t prefill_end = 0;           // tokens that prefill computes: the prompt, or what was lost
  int32_t next_row = 0;              // next of them to plan
  bool recompute = false;            // waiting again after its pages were lost

  // Known from results.
  int32_t num_computed = 0;
  int32_t num_tokens = 0;
  int32_t num_published = 0;  // pages [0, this) were offered to the prefix index

  // In plans whose results did not come yet.
  int32_t in_flight = 0;                         // of them with rows of it
  int32_t in_flight_before = 0;                  // of them made before it resumed
  int32_t copies_in_flight = 0;                  // copies for it
  int32_t in_flight_min = 0, in_flight_max = 0;  // tokens they give

  int32_t output_slot = -1;  // the newest snapshot of its output, while output_key finds it
  PageKey output_key = {};
  bool preempt_requested = false;
  bool has_started = false;  // a row of it was planned
  bool prompt_done = false;

  // A plan in flight names it.
  bool is_named() const { return in_flight + copies_in_flight > 0; }
  bool prefilling() const { return next_row < prefill_end; }
  bool resting() const { return spec.held && !prefilling(); }
  MonotonicTime deadline() const { return has_started ? kNoDeadline : spec.start_deadline; }
  int32_t tokens_min() const { return num_tokens + in_flight_min; }
  int32_t tokens_max() const { return num_tokens + in_flight_max; }
  // Positions that will ever be computed: the last output token is not fed back.
  int32_t max_rows() const { return spec.num_prompt + std::max(0, spec.max_output - 1); }
  // Tokens that a planned row set gives, if it does not sit out.
  int32_t GivesMin(const PlannedRows& rows) const {
    return rows.samples && spec.max_output > 0 ? 1 : 0;
  }
  int32_t GivesMax(const PlannedRows& rows) const {
    return rows.kind == RowsKind::kDecode ? rows.num_rows() : GivesMin(rows);
  }
};

}  // namespace deepinfer
