// kernels/testing/attention_case.h: made-up sequences and steps for tests of sparse attention.
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <vector>

#include "kernels/kv_records/kv_records.h"
#include "kernels/sparse_attention/sparse_attention.h"
#include "kernels/testing/compare.h"
#include "kernels/testing/data.h"
#include "kernels/testing/kv_pages.h"

namespace deepinfer::testing {

struct AttentionShape {
  int32_t heads = 4;
  int32_t dim = 64;
  int32_t window = 16;
  int32_t topk = 8;  // 0 = no global source
  int32_t ratio = 1;
  DataKind kind = DataKind::kNormal;
};

// Everything by absolute position: one SWA record, one query and one selection a position, so that
// the same row can be computed in any step.
class AttentionSequence {
 public:
  AttentionSequence(const AttentionShape& shape, int32_t num_positions, uint64_t seed)
      : shape_(shape), random_(seed), pages_(shape.dim, 32, shape.ratio, num_positions, random_) {
    const Backend oracle{.variant = kRefVariant};
    const std::vector<bf16> kv = MakeBf16(shape.kind, num_positions, shape.dim, random_);
    swa_.resize(static_cast<size_t>(num_positions * SwaRecordBytes(shape.dim)));
    WriteSwa(oracle,
             {.num_rows = num_positions, .dim = shape.dim, .x = kv.data(), .records = swa_.data()});
    const int32_t entries = num_positions / shape.ratio;
    const std::vector<bf16> global = MakeBf16(shape.kind, entries, shape.dim, random_);
    WriteGlobal(oracle, {.num_rows = entries,
                         .dim = shape.dim,
                         .x = global.data(),
                         .records = pages_.GlobalRecords().data()});
    q_ = MakeBf16(shape.kind, int64_t{num_positions} * shape.heads, shape.dim, random_);
    for (int32_t p = 0; p < num_positions; ++p) Choose((p + 1) / shape.ratio);
  }

  const AttentionShape& shape() const { return shape_; }
  PagedSource Global() { return pages_.Source(); }
  const uint8_t* SwaRecord(int32_t position) const {
    return swa_.data() + position * SwaRecordBytes(shape_.dim);
  }
  const bf16* Query(int32_t position) const {
    return q_.data() + int64_t{position} * shape_.heads * shape_.dim;
  }
  std::vector<int32_t>& Selection(int32_t position) {
    return selections_[static_cast<size_t>(position)];
  }

 private:
  // A random ascending choice among `visible` entries, padded with -1.
  void Choose(int32_t visible) {
    std::vector<int32_t> chosen;
    for (int32_t j = 0; j < visible; ++j) {
      const auto wanted = static_cast<int64_t>(shape_.topk) - std::ssize(chosen);
      if (random_.Below(visible - j) < wanted) chosen.push_back(j);
    }
    chosen.resize(static_cast<size_t>(shape_.topk), -1);
    selections_.push_back(chosen);
  }

  AttentionShape shape_;
  Random random_;
  KvPages pages_;
  std::vector<uint8_t> swa_;
  std::vector<bf16> q_;
  std::vector<std::vector<int32_t>> selections_;
};

// One step over rows of one or more sequences (of the same shape).
class AttentionStep {
 public:
  explicit AttentionStep(const AttentionShape& shape, uint64_t sink_seed = 9) : shape_(shape) {
    Random random(sink_seed);
    for (int32_t h = 0; h < shape.heads; ++h) {
      sink_.push_back(static_cast<float>(2 * random.Normal()));
    }
  }

  // Appends rows [first, first + count) of the sequence. Records before `first` come from a ring.
  void Add(AttentionSequence& sequence, int32_t first, int32_t count, int32_t window_begin = 0,
           bool bidirectional = false) {
    const int32_t record = SwaRecordBytes(shape_.dim), ring_rows = shape_.window + 6;
    std::vector<uint8_t> ring(static_cast<size_t>(ring_rows * record), 0xff);
    for (int32_t p = std::max(0, first - ring_rows); p < first; ++p) {
      std::copy_n(sequence.SwaRecord(p), record, ring.data() + p % ring_rows * record);
    }
    rings_.push_back(std::move(ring));
    segments_.push_back({.row_begin = num_rows_,
                         .row_end = num_rows_ + count,
                         .first_position = first,
                         .ring = rings_.back().data(),
                         .ring_rows = ring_rows,
                         .fresh = sequence.SwaRecord(first),
                         .global = sequence.Global(),
                         .bidirectional = bidirectional});
    num_rows_ += count;
    for (int32_t p = first; p < first + count; ++p) {
      q_.insert(q_.end(), sequence.Query(p), sequence.Query(p + 1));
      window_begin_.push_back(window_begin);
      selection_.insert(selection_.end(), sequence.Selection(p).begin(),
                        sequence.Selection(p).end());
    }
  }

  int64_t row_values() const { return int64_t{shape_.heads} * shape_.dim; }

  // Output [rows, heads, dim]; empty if the op wrote outside it.
  std::vector<bf16> Run(const Backend& backend) const {
    Guarded<bf16> out(num_rows_ * row_values());
    SparseAttention(backend, {.num_tokens = num_rows_,
                              .num_heads = shape_.heads,
                              .head_dim = shape_.dim,
                              .window = shape_.window,
                              .scale = 1.0f / std::sqrt(static_cast<float>(shape_.dim)),
                              .q = q_.data(),
                              .sink = sink_.data(),
                              .window_begin = window_begin_.data(),
                              .selection = shape_.topk == 0 ? nullptr : selection_.data(),
                              .topk = shape_.topk,
                              .segments = segments_.data(),
                              .num_segments = static_cast<int32_t>(segments_.size()),
                              .out = out.data()});
    return out.GuardsIntact() ? out.ToVector() : std::vector<bf16>();
  }

  float Sink(int32_t head) const { return sink_[static_cast<size_t>(head)]; }

 private:
  AttentionShape shape_;
  int32_t num_rows_ = 0;
  std::deque<std::vector<uint8_t>> rings_;
  std::vector<AttentionSegment> segments_;
  std::vector<bf16> q_;
  std::vector<int32_t> window_begin_, selection_;
  std::vector<float> sink_;
};

}  // namespace deepinfer::testing
