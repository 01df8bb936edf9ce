// cache/sequence_kv.h: where everything lies that one sequence keeps between steps. A view: the
// memory is a KvMemory's (serving) or a StandaloneKv's (one sequence: tools, tests).
//
//   pages    global KV and index keys of all kv sources: [num_pages, page_bytes], reached through
//            the sequence's page table
//   rings    SWA records of every text layer and draft block: [num_rings, ring_rows, record];
//            position p lies in row p % ring_rows
//   tails    per kv source with ratio > 1, one after the other: the compressor's (a, b) rows,
//            [tail_rows, 2, head_dim]; position p lies in row p % tail_rows
//
// Rings hold W + v rows and tails ratio + v - 1, so a rejected verification of v rows needs no
// restore: rejected rows are overwritten by position. Source: model.md 4.1, 4.3. Threads: whoever
// runs the forward passes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/kv_layout.h"

namespace deepinfer {

// A byte that is NaN as a number and as a scale of every KV format, and as a part of an F32. Memory
// that holds no rows yet is filled with it.
inline constexpr uint8_t kNanByte = 0xff;

// Sizes of a sequence's state; formulas of the model's shape (model/kv_shape.h makes it).
struct KvShape {
  PageLayout layout;
  int32_t num_rings = 0;     // text layers, then draft blocks
  int32_t ring_rows = 0;     // W + v
  int32_t verify_width = 0;  // v = 1 + draft length

  int32_t num_sources() const { return static_cast<int32_t>(layout.sections.size()); }
  int64_t RingBytes() const { return int64_t{ring_rows} * SwaRecordBytes(layout.head_dim); }
  int64_t AllRingBytes() const { return num_rings * RingBytes(); }
  int32_t TailRows(int32_t source) const {
    const int32_t ratio = layout.sections[static_cast<size_t>(source)].ratio;
    return ratio > 1 ? ratio + verify_width - 1 : 0;
  }
  int64_t TailFloats(int32_t source) const {
    return int64_t{TailRows(source)} * 2 * layout.head_dim;
  }
  int64_t AllTailFloats() const { return TailOffset(num_sources()); }
  // First float of a source's tail among those of all sources.
  int64_t TailOffset(int32_t source) const {
    int64_t floats = 0;
    for (int32_t s = 0; s < source; ++s) floats += TailFloats(s);
    return floats;
  }
};

class SequenceKv {
 public:
  // `shape` and all memory outlive the object.
  SequenceKv(const KvShape& shape, uint8_t* pages, uint8_t* rings, float* tails)
      : shape_(&shape), pages_(pages), rings_(rings), tails_(tails) {}

  const KvShape& shape() const { return *shape_; }
  uint8_t* Ring(int32_t ring) { return rings_ + ring * shape_->RingBytes(); }
  // Row (a[head_dim], b[head_dim]) of a position. Requires: the source's ratio > 1.
  float* TailRow(int32_t source, int64_t position);
  PagedSource Source(int32_t source) const;
  // Pages of positions [0, 64), [64, 128), ...; who may change it says the owner of the pages.
  std::vector<int32_t>& page_table() { return page_table_; }
  const std::vector<int32_t>& page_table() const { return page_table_; }

 private:
  const KvShape* shape_;
  uint8_t* pages_;
  uint8_t* rings_;
  float* tails_;
  std::vector<int32_t> page_table_;
};

}  // namespace deepinfer
