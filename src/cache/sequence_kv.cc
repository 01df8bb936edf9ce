#include "cache/sequence_kv.h"

namespace deepinfer {

float* SequenceKv::TailRow(int32_t source, int64_t position) {
  const int64_t row = position % shape_->TailRows(source);
  return tails_ + shape_->TailOffset(source) + row * 2 * shape_->layout.head_dim;
}

PagedSource SequenceKv::Source(int32_t source) const {
  return {.pool = pages_,
          .page_bytes = shape_->layout.page_bytes,
          .page_table = page_table_.data(),
          .section = shape_->layout.sections[static_cast<size_t>(source)]};
}

}  // namespace deepinfer
