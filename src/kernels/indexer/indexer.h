// kernels/indexer/indexer.h: which compressed entries a query attends to.
//
// Scores, then the top index_topk entries; at the candidate source also the best blocks of entries,
// inside which later index sources choose. Ties: lowest index first, for entries and blocks.
// Source: model.md 3.6.
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/formats/number_formats.h"
#include "kernels/kv_layout.h"

namespace deepinfer {

// Where the official arithmetic rounds scores. kOfficial: each dot to BF16, relu, times the BF16
// head weight to BF16, sum over heads in F32, to BF16. kF32: no rounding between (what most engines
// run).
enum class IndexScores : uint8_t { kOfficial, kF32 };

// FP4 fake-quantisation of index queries, groups of 32, E8M0, in place: x [num_rows, dim].
struct QuantiseIndexQueryParams {
  int32_t num_rows = 0;  // T * heads
  int32_t dim = 0;       // index_head_dim
  bf16* x = nullptr;
};

// score_j = sum_h w_h * relu(q_h . key_j), for the num_visible[t] first entries of row t's source.
// selection: top min(topk, visible) by score, ascending, -1 at the end.
// With candidates: only entries inside the row's candidate blocks are scored.
// Reference: indexer_ref.cc.
struct IndexSelectParams {
  int32_t num_tokens = 0;  // T
  int32_t num_heads = 0;   // index_n_heads
  int32_t dim = 0;         // index_head_dim
  int32_t topk = 0;        // index_topk
  IndexScores scores = IndexScores::kOfficial;
  const bf16* q = nullptr;                      // [T, heads, dim], rotated, on the FP4 grid
  const bf16* head_weights = nullptr;           // [T, heads]; w_h = bf16(head_weight * head_scale)
  float head_scale = 1;                         // dim^-0.5 * heads^-0.5
  const PagedSource* const* sources = nullptr;  // [T] the row's sequence's source
  const int32_t* num_visible = nullptr;  // [T] entries visible to the row, floor((p+1)/ratio)
  int32_t* selection = nullptr;          // [T, topk]
  float* selected_scores = nullptr;      // [T, topk] scores of the selection, or null (tests)

  // Two-level part. Blocks are block_size consecutive entries; -1 pads at the end, ascending.
  int32_t block_size = 0;
  int32_t topk_blocks = 0;
  int32_t* blocks_out = nullptr;  // [T, topk_blocks] candidate source: best blocks by largest
                                  // score, the newest visible entry's block forced in; else null
  const int32_t* blocks_in =
      nullptr;  // [T, topk_blocks] later sources; null = every entry is a candidate

  // What scores and ranks of candidates may take of memory, over all threads; 0 = as much as the
  // longest row asks for. Longer rows are then chosen from in tiles, with the same result. The
  // arrays that a row has at any length (queries, the best so far) come out of it first and are
  // taken even where it is too small.
  int64_t scratch_bytes = 0;
};

Op<QuantiseIndexQueryParams>& QuantiseIndexQueryOp();
Op<IndexSelectParams>& IndexSelectOp();
inline void QuantiseIndexQuery(const Backend& backend, const QuantiseIndexQueryParams& params) {
  QuantiseIndexQueryOp().Run(backend, params);
}
inline void IndexSelect(const Backend& backend, const IndexSelectParams& params) {
  IndexSelectOp().Run(backend, params);
}

}  // namespace deepinfer
