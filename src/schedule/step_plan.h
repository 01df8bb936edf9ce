// schedule/step_plan.h: one step of one rank: what is copied, then which rows run. Written by
// schedule/, read-only afterwards; executed in the order in which plans were made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace deepinfer {

// A scheduled sequence: an index that is given again only when no plan in flight names it.
struct SequenceId {
  int32_t v = -1;
  bool operator==(const SequenceId&) const = default;
};

// Copies of a step, in this order, before its rows.
enum class CopyKind : uint8_t {
  kSavePage,      // device page `from` -> host page `to`
  kLoadPage,      // host page `from` -> device page `to`, for `sequence`
  kSaveState,     // the sequence's state -> save `to`; it keeps no state and no pages
  kNewState,      // the sequence gets state `to` and `pages`; it has computed nothing. What is
                  // loaded for it comes after this
  kLoadState,     // the same, filled from save `from`: goes on where it was
  kLoadSnapshot,  // SWA slot `from`, of page end `end`, into the sequence's state
};
struct PlannedCopy {
  CopyKind kind = CopyKind::kSavePage;
  SequenceId sequence;
  int32_t from = -1;
  int32_t to = -1;
  int32_t end = 0;
  uint32_t generation = 0;  // of the SWA slot's use
  // Pages [first_page, first_page + num_pages) of StepPlan::pages become the sequence's page table.
  int32_t first_page = 0;
  int32_t num_pages = 0;
};

enum class RowsKind : uint8_t {
  kPrefill,  // known tokens: prompt, replay, or what a preempted sequence has to compute again
  kDecode,   // the newest token and drafts to verify
};

// Rows of one sequence. Positions are absolute; see ForwardSegment of model/forward_batch.h for the
// row sets.
struct PlannedRows {
  SequenceId sequence;
  RowsKind kind = RowsKind::kPrefill;
  // Prefill: [begin, end). Decode: where the rows begin is known when the step before has run; at
  // most end - begin rows.
  int32_t begin = 0;
  int32_t end = 0;
  bool samples = false;  // the last row's logits give the next token
  int32_t window_begin = 0;
  int32_t decoder_begin = 0;
  int32_t decoder_window_begin = 0;
  int32_t keep_entries_below = 0;
  int32_t keep_rings_below = 0;
  // A snapshot of the window state at page end `snapshot_end`, into this SWA slot; -1: none.
  int32_t snapshot_slot = -1;
  int32_t snapshot_end = 0;
  uint32_t snapshot_generation = 0;  // of the slot's use: a late copy cannot pass for another
  // Pages [first_page, first_page + num_pages) of StepPlan::pages are appended to the sequence's.
  int32_t first_page = 0;
  int32_t num_pages = 0;

  int32_t num_rows() const { return end - begin; }
};

struct StepPlan {
  int64_t number = 0;  // 1, 2, ...
  std::vector<PlannedCopy> copies;
  std::vector<PlannedRows> rows;  // decode rows first
  std::vector<int32_t> pages;     // of `copies` and `rows`
  int32_t num_rows = 0;           // sum over `rows`, at most the token budget
  int32_t num_replay_rows = 0;    // of them, rows of pages that were found in the cache

  // Takes the memory of the largest plan in which nothing starts: every page saved, others loaded,
  // every sequence with its pages. Page tables of sequences that start may share pages and so come
  // to more; a start may allocate, as admission may.
  void Reserve(int32_t num_sequences, int32_t num_device_pages) {
    const auto n = static_cast<size_t>(num_sequences);
    const auto device = static_cast<size_t>(num_device_pages);
    rows.reserve(n);
    copies.reserve(2 * device + 3 * n);
    pages.reserve(2 * device);
  }
  // Keeps the memory.
  void Clear() {
    copies.clear();
    rows.clear();
    pages.clear();
    num_rows = num_replay_rows = 0;
  }
};

}  // namespace deepinfer
