#include "kernels/indexer/indexer.h"

namespace deepinfer {

void QuantiseIndexQueryRef(const Backend& backend, const QuantiseIndexQueryParams& params);
void QuantiseIndexQueryCpu(const Backend& backend, const QuantiseIndexQueryParams& params);
void IndexSelectRef(const Backend& backend, const IndexSelectParams& params);
void IndexSelectAvx2(const Backend& backend, const IndexSelectParams& params);
void IndexSelectAvx512(const Backend& backend, const IndexSelectParams& params);

namespace {

void CheckQuantise(const QuantiseIndexQueryParams& params) {
  CHECK_GE(params.num_rows, 0);
  CHECK(params.dim > 0 && params.dim % 32 == 0);
  CHECK(params.num_rows == 0 || params.x != nullptr);
}

void CheckSelect(const IndexSelectParams& params) {
  CHECK_GE(params.num_tokens, 0);
  CHECK(params.dim > 0 && params.dim % 32 == 0);
  CHECK(params.num_heads > 0 && params.topk > 0);
  if (params.num_tokens == 0) return;
  CHECK(params.q && params.head_weights && params.sources && params.num_visible &&
        params.selection);
  if (params.blocks_out != nullptr || params.blocks_in != nullptr) {
    CHECK(params.block_size > 0 && params.topk_blocks > 0);
  }
}

}  // namespace

Op<QuantiseIndexQueryParams>& QuantiseIndexQueryOp() {
  static Op<QuantiseIndexQueryParams> table(QuantiseIndexQueryRef, QuantiseIndexQueryCpu,
                                            CheckQuantise);
  return table;
}

Op<IndexSelectParams>& IndexSelectOp() {
  static Op<IndexSelectParams> table(IndexSelectRef, IndexSelectAvx2, CheckSelect,
                                     IndexSelectAvx512);
  return table;
}

}  // namespace deepinfer
