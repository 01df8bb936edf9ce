// kernels/sparse_attention/cpu/slots.h: the KV records that a row attends to, in the order of the
// contract.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/sparse_attention/sparse_attention.h"

namespace deepinfer {

struct AttentionSlot {
  const uint8_t* record = nullptr;  // null = empty
  bool global = false;
};

inline const uint8_t* SwaRecord(const AttentionSegment& segment, int32_t position, int32_t dim) {
  const int32_t fresh = position - segment.first_position;
  return fresh >= 0 ? segment.fresh + int64_t{fresh} * SwaRecordBytes(dim)
                    : segment.ring + int64_t{position % segment.ring_rows} * SwaRecordBytes(dim);
}

// Slots of row t; empty ones keep their place.
inline void ListSlots(const SparseAttentionParams& params, const AttentionSegment& segment,
                      int32_t t, std::vector<AttentionSlot>& slots) {
  const int32_t dim = params.head_dim;
  const int32_t end = segment.bidirectional ? segment.first_position
                                            : segment.first_position + (t - segment.row_begin) + 1;
  slots.clear();
  for (int32_t p = std::max({params.window_begin[t], end - params.window, 0}); p < end; ++p) {
    slots.push_back({SwaRecord(segment, p, dim)});
  }
  slots.resize(static_cast<size_t>(params.window));
  if (segment.bidirectional) {
    for (int32_t r = 0; r < segment.row_end - segment.row_begin; ++r) {
      slots.push_back({SwaRecord(segment, segment.first_position + r, dim)});
    }
  }
  if (params.selection == nullptr) return;
  for (int32_t k = 0; k < params.topk; ++k) {
    const int32_t entry = params.selection[int64_t{t} * params.topk + k];
    slots.push_back(entry < 0 ? AttentionSlot{}
                              : AttentionSlot{segment.global.GlobalRecord(entry, dim), true});
  }
}

inline const AttentionSegment& SegmentOf(const SparseAttentionParams& params, int32_t t) {
  const AttentionSegment* segment = params.segments;
  while (t >= segment->row_end) ++segment;
  return *segment;
}

}  // namespace deepinfer
