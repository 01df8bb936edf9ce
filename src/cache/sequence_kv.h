// cache/sequence_kv.h: everything one sequence keeps between steps.
//
//   pages    global KV and index keys of all kv sources (page table into a PagePool)
//   rings    SWA records of every text layer and draft block; position p lies in row p % ring_rows
//   tails    per kv source with ratio > 1: the compressor's (a, b) rows, position p in row p %
//   tail_rows
// Rings hold W + v rows and tails ratio + v - 1, so a rejected verification of v rows needs no
// restore: rejected rows are overwritten by position. Source: model.md 4.1, 4.3. Threads: the step
// loop only. Pages go back to the pool with the object.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "cache/page_pool.h"
#include "kernels/kv_layout.h"

namespace deepinfer {

// Sizes of a sequence's state; formulas of the model's shape (model/kv_shape.h makes it).
struct KvShape {
  PageLayout layout;
  int32_t num_rings = 0;     // text layers, then draft blocks
  int32_t ring_rows = 0;     // W + v
  int32_t verify_width = 0;  // v = 1 + draft length

  int32_t TailRows(int32_t source) const {
    const int32_t ratio = layout.sections[static_cast<size_t>(source)].ratio;
    return ratio > 1 ? ratio + verify_width - 1 : 0;
  }
  int64_t RingBytes() const { return int64_t{ring_rows} * SwaRecordBytes(layout.head_dim); }
  int64_t TailFloats(int32_t source) const {
    return int64_t{TailRows(source)} * 2 * layout.head_dim;
  }
};

class SequenceKv {
 public:
  // `pool` outlives the object. Takes ring memory; pages come with Reserve().
  SequenceKv(const KvShape& shape, PagePool* pool);
  ~SequenceKv();
  SequenceKv(const SequenceKv&) = delete;
  SequenceKv& operator=(const SequenceKv&) = delete;

  // Makes room for positions [0, num_tokens). Errors: kResourceExhausted; then nothing changed.
  Status Reserve(int64_t num_tokens);

  const KvShape& shape() const { return shape_; }
  uint8_t* Ring(int32_t ring) { return rings_.data() + ring * shape_.RingBytes(); }
  // Row (a[head_dim], b[head_dim]) of a position. Requires: the source's ratio > 1.
  float* TailRow(int32_t source, int64_t position);
  PagedSource Source(int32_t source) const;
  const std::vector<int32_t>& page_table() const { return page_table_; }

 private:
  const KvShape shape_;
  PagePool* const pool_;
  std::vector<int32_t> page_table_;
  std::vector<uint8_t> rings_;
  std::vector<int64_t> tail_offsets_;  // into tails_, one a source
  std::vector<float> tails_;
};

}  // namespace deepinfer
