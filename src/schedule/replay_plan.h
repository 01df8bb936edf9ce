// schedule/replay_plan.h: which rows of a prompt are computed once its prefix hit is known, and
// what their windows may see. Pure functions of lengths and flags.
//
// Names: N prompt tokens, H tokens of the hit (whole pages, at most N - 1), W sliding window, v
// rows of a verification, KEEP last prompt rows that run the decoder. Source: design.md 4 (replay
// modes), serving.md 8.2, 9.3, 9.4.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace deepinfer {

enum class ReplayMode {
  kExact,    // all layers on all rows; a hit gives what a cold run gives
  kBounded,  // the decoder half on the last KEEP prompt rows only
  kMask,     // bounded, but with every row computed and windows narrowed: its oracle, bit for bit
};
// Errors: kInvalidArgument naming the value and the three that are known.
StatusOr<ReplayMode> ParseReplayMode(std::string_view name);

struct ReplayShape {
  int32_t window = 0;              // W
  int32_t verify_width = 0;        // v = 1 + draft length
  int32_t num_layers = 0;          // of the text model
  int32_t num_encoder_layers = 0;  // the first of them
  int32_t keep = 0;                // KEEP
};
// Errors: kInvalidArgument if KEEP < W + v.
Status CheckReplayShape(const ReplayShape& shape);

// What the caches have of a prompt.
struct PrefixHit {
  int32_t num_tokens = 0;        // H; a multiple of the page size, less than N
  bool pages_exact = true;       // the pages of [0, H) hold what a cold run writes
  bool has_slot = false;         // a snapshot at H; in exact mode only one that holds all rings
  int32_t slot_first_valid = 0;  // the snapshot's rows are those of positions [this, H)
  bool slot_exact = false;       // it holds what a cold run has there
};

// Rows [begin, N) run the encoder half, those at positions >= decoder_begin the decoder half too.
struct ReplayPlan {
  int32_t num_cached = 0;  // the hit that is used; 0: a miss. Pages [0, num_cached) are not written
  bool uses_slot = false;  // the snapshot is loaded before the first row
  int32_t begin = 0;       // first row to compute
  // Rows [begin, num_cached) are a pass of their own that leaves the encoder's rings as loaded.
  bool separate_replay = false;
  int32_t replay_window_begin = 0;   // first position that encoder windows of rows < num_cached see
  int32_t window_begin = 0;          // the same for all later rows of the sequence's life
  int32_t decoder_begin = 0;         // first position that runs the decoder half
  int32_t decoder_window_begin = 0;  // first position that windows of decoder rows >= it see
  bool exact = true;                 // pages and encoder state from here on are those of a cold run
};

// Requires: 0 <= hit.num_tokens < num_prompt; a shape that CheckReplayShape() accepts.
// A snapshot without the whole window of position H, or in exact mode an inexact one, counts as
// absent.
ReplayPlan PlanReplay(ReplayMode mode, const ReplayShape& shape, int32_t num_prompt,
                      const PrefixHit& hit);

// Rows times layers that the plan computes of the prompt. The KV projections that the first decoder
// layer does for all rows are not counted.
int64_t PlannedRowLayers(const ReplayShape& shape, int32_t num_prompt, const ReplayPlan& plan);

}  // namespace deepinfer
