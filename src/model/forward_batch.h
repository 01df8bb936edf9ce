// model/forward_batch.h: what one forward pass computes: ragged rows of several sequences, by
// absolute position.
//
// Prefill, chunk, replay, verification and decode differ only in the numbers here. Filled by
// engine/.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "cache/kv_memory.h"
#include "cache/sequence_kv.h"
#include "kernels/formats/number_formats.h"

namespace deepinfer {

inline constexpr int32_t kNoPosition = std::numeric_limits<int32_t>::max();

// Consecutive positions [begin, end) of one sequence.
// Requires: everything below `begin` that the rows look at is in `kv`; its page table covers [0,
// end).
struct ForwardSegment {
  SequenceKv* kv = nullptr;
  const int32_t* tokens = nullptr;      // ids of positions [0, end)
  const uint8_t* image_mask = nullptr;  // 1 = position of an image span; [0, end), or null for none
  const bf16* const* image_rows =
      nullptr;  // vectors of image positions [begin, end) (null entries: text), or null
  int32_t begin = 0;
  int32_t end = 0;

  // Row sets of the replay modes; the defaults run every layer on every row with full windows.
  int32_t decoder_begin = 0;  // rows at positions >= this run the decoder half
  int32_t window_begin = 0;   // first position that windows of the encoder half may see
  int32_t decoder_window_begin =
      0;  // the same for the decoder half; rows at positions >= it are narrowed
  int32_t keep_entries_below =
      0;  // global KV made only of positions < this is present and not rewritten

  // Rings of the encoder half keep their rows of positions < this: a replay that feeds the decoder
  // alone reads its own rows and leaves restored ones as they are. Pages: keep_entries_below.
  int32_t keep_rings_below = 0;
  // Gets the ring rows of positions [end - ring_rows, end) as a pass that stops at `end` leaves
  // them; rows of positions < 0 stay as they are. Which others a ring has ever held is the caller's
  // to know. A half that runs no row of the segment writes nothing.
  // Requires: begin <= snapshot.end <= end.
  SnapshotTarget snapshot;

  int32_t logits_begin =
      kNoPosition;  // rows at positions >= this ask for logits (they must run the decoder)
};

struct ForwardBatch {
  std::vector<ForwardSegment> segments;
};

// The rows that run a half of the model, in segment order.
struct RowSet {
  struct Segment {
    const ForwardSegment* source = nullptr;
    int32_t row_begin = 0, row_end = 0;
    int32_t first_position = 0;
  };
  std::vector<Segment> segments;                         // empty ones are left out
  std::vector<int32_t> positions, tokens, window_begin;  // [num_rows]
  std::vector<uint8_t> is_image;                         // [num_rows]
  bool has_images = false;

  // Empties it; the memory stays.
  void Clear() {
    segments.clear();
    positions.clear();
    tokens.clear();
    window_begin.clear();
    is_image.clear();
    has_images = false;
  }
  int32_t num_rows() const { return static_cast<int32_t>(positions.size()); }
};

// Sees, and may replace, what flows between layers. For tests and for `selftest`; every hook does
// nothing by default.
class ForwardObserver {
 public:
  virtual ~ForwardObserver() = default;
  // streams [T, hc, D], pre [T, hc] at the entry of a layer, before engram. layer == num layers:
  // after the last.
  virtual void LayerInput(int32_t /*layer*/, const RowSet&, bf16* /*streams*/, float* /*pre*/) {}
  virtual void EngramRows(int32_t /*table*/, const RowSet&, const int32_t* /*rows*/) {}
  virtual void EngramOutput(int32_t /*layer*/, const RowSet&, const bf16* /*streams*/) {}
  virtual void AttentionOutput(int32_t /*layer*/, const RowSet&, const bf16* /*streams*/,
                               const float* /*pre*/) {}
  // selection [T, index_topk] of an index source; may be replaced. scores: of the selected entries,
  // or null.
  virtual void Selection(int32_t /*layer*/, const RowSet&, int32_t* /*selection*/,
                         const float* /*scores*/) {}
  // blocks [T, candidate_topk_blocks] of the candidate source; may be replaced.
  virtual void CandidateBlocks(int32_t /*layer*/, const RowSet&, int32_t* /*blocks*/) {}
  // experts [T, k] ascending; gap [T] = k-th minus (k+1)-th of score + bias, or null.
  virtual void Routes(int32_t /*layer*/, const RowSet&, const int32_t* /*experts*/,
                      const float* /*gap*/) {}
  // Whether `scores` and `gap` are to be computed.
  virtual bool wants_details() const { return false; }
  // main_hidden [T, targets * D]: what feeds the draft.
  virtual void MainHidden(const RowSet&, bf16* /*main_hidden*/) {}
};

}  // namespace deepinfer
