#include "kernels/sparse_attention/sparse_attention.h"

namespace deepinfer {

void SparseAttentionRef(const Backend& backend, const SparseAttentionParams& params);
void SparseAttentionAvx2(const Backend& backend, const SparseAttentionParams& params);
void SparseAttentionAvx512(const Backend& backend, const SparseAttentionParams& params);
void SparseAttentionAmx(const Backend& backend, const SparseAttentionParams& params);

namespace {

void CheckSegment(const SparseAttentionParams& params, const AttentionSegment& segment,
                  int32_t row_begin) {
  CHECK_EQ(segment.row_begin, row_begin);  // segments tile the rows in order
  CHECK_GT(segment.row_end, segment.row_begin);
  CHECK_GE(segment.first_position, 0);
  CHECK(segment.fresh != nullptr);
  // Rows below first_position live in the ring; it must hold every one that a window can reach.
  if (segment.first_position > 0 && (params.window > 1 || segment.bidirectional)) {
    CHECK(segment.ring != nullptr);
    CHECK_GE(segment.ring_rows, segment.bidirectional ? params.window : params.window - 1);
  }
}

void Check(const SparseAttentionParams& params) {
  CHECK_GE(params.num_tokens, 0);
  CHECK(params.head_dim > 0 && params.head_dim % 32 == 0);
  CHECK(params.num_heads > 0 && params.window > 0 && params.topk >= 0);
  if (params.num_tokens == 0) return;
  CHECK(params.q && params.sink && params.window_begin && params.out && params.segments);
  int32_t row = 0;
  for (int32_t s = 0; s < params.num_segments; ++s) {
    CheckSegment(params, params.segments[s], row);
    row = params.segments[s].row_end;
  }
  CHECK_EQ(row, params.num_tokens);
}

}  // namespace

Op<SparseAttentionParams>& SparseAttentionOp() {
  static Op<SparseAttentionParams> table(SparseAttentionRef, SparseAttentionAvx2, Check,
                                         SparseAttentionAvx512, SparseAttentionAmx);
  return table;
}

}  // namespace deepinfer
