// kernels/sparse_attention/sparse_attention.h: queries over a sliding window and selected global
// entries.
//
// One KV row per position serves as key and value of all heads. Prefill, chunk, decode,
// verification and draft are this one op. Source: model.md 3.4, 3.11.
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/formats/number_formats.h"
#include "kernels/kv_layout.h"

namespace deepinfer {

// Rows [row_begin, row_end) of the op: consecutive positions of one sequence.
struct AttentionSegment {
  int32_t row_begin = 0;
  int32_t row_end = 0;
  int32_t first_position = 0;  // of row_begin
  const uint8_t* ring =
      nullptr;  // [ring_rows, SwaRecordBytes]; position p < first_position is row p % ring_rows
  int32_t ring_rows = 0;
  const uint8_t* fresh =
      nullptr;         // [row_end - row_begin, SwaRecordBytes]: records of this step's own rows
  PagedSource global;  // used where selection >= 0
  // Draft block: every row sees the window of positions before first_position, then all fresh rows.
  bool bidirectional = false;
};

// out[t,h,:] = sum_k exp(s_k) kv_k / (sum_k exp(s_k) + exp(sink_h)), s_k = q[t,h,:] . kv_k * scale.
// Slots of row t at position p, in this order: W window slots (positions max(window_begin[t],
// p-W+1)..p, oldest first; empty slots keep their place after them), then selection[t, :] (-1 =
// empty). Draft block: W window slots (positions max(window_begin[t], P-W)..P-1, P =
// first_position), then the fresh rows. The softmax is online over blocks of 64 slots: running
// maximum from -1e30, probabilities against it rounded to BF16 before the product with kv,
// denominator from unrounded ones; F32. One rounding to BF16 at the end. Same result for any batch
// and chunking: yes. Reference: sparse_attention_ref.cc.
struct SparseAttentionParams {
  int32_t num_tokens = 0;                 // T
  int32_t num_heads = 0;                  // H
  int32_t head_dim = 0;                   // d
  int32_t window = 0;                     // W
  float scale = 0;                        // d^-0.5
  const bf16* q = nullptr;                // [T, H, d], rotated
  const float* sink = nullptr;            // [H]
  const int32_t* window_begin = nullptr;  // [T] first position a row's window may see
  const int32_t* selection = nullptr;  // [T, topk] entries of the segment's global source, or null
  int32_t topk = 0;
  const AttentionSegment* segments = nullptr;
  int32_t num_segments = 0;
  bf16* out = nullptr;  // [T, H, d]; still rotated
};

inline constexpr int32_t kAttentionBlock =
    64;  // slots per online-softmax block: fixed by the reference

Op<SparseAttentionParams>& SparseAttentionOp();
inline void SparseAttention(const Backend& backend, const SparseAttentionParams& params) {
  SparseAttentionOp().Run(backend, params);
}

}  // namespace deepinfer
