#include "cache/sequence_kv.h"

namespace deepinfer {

SequenceKv::SequenceKv(const KvShape& shape, PagePool* pool)
    : shape_(shape), pool_(pool), rings_(static_cast<size_t>(shape.num_rings * shape.RingBytes())) {
  int64_t floats = 0;
  for (size_t s = 0; s < shape_.layout.sections.size(); ++s) {
    tail_offsets_.push_back(floats);
    floats += shape_.TailFloats(static_cast<int32_t>(s));
  }
  tails_.resize(static_cast<size_t>(floats));
}

SequenceKv::~SequenceKv() { pool_->Release(page_table_); }

Status SequenceKv::Reserve(int64_t num_tokens) {
  const auto needed = static_cast<int32_t>((num_tokens + kTokensPerPage - 1) / kTokensPerPage);
  const auto held = static_cast<int32_t>(page_table_.size());
  return needed > held ? pool_->Acquire(needed - held, page_table_) : OkStatus();
}

float* SequenceKv::TailRow(int32_t source, int64_t position) {
  const int64_t row = position % shape_.TailRows(source);
  return tails_.data() + tail_offsets_[static_cast<size_t>(source)] +
         row * 2 * shape_.layout.head_dim;
}

PagedSource SequenceKv::Source(int32_t source) const {
  return {.pool = pool_->data(),
          .page_bytes = pool_->page_bytes(),
          .page_table = page_table_.data(),
          .section = shape_.layout.sections[static_cast<size_t>(source)]};
}

}  // namespace deepinfer
