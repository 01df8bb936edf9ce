#include "kernels/embedding/embedding.h"

namespace deepinfer {

void EmbeddingRef(const Backend& backend, const EmbeddingParams& params);
void EmbeddingCpu(const Backend& backend, const EmbeddingParams& params);

namespace {

void Check(const EmbeddingParams& p) {
  CHECK_GE(p.num_tokens, 0);
  CHECK_GT(p.num_streams, 0);
  CHECK(p.table.format == WeightFormat::kBf16);
  CHECK_EQ(p.table.cols, p.dim);
  for (int32_t t = 0; t < p.num_tokens; ++t) {
    CHECK_GE(p.ids[t], 0);
    CHECK_LT(p.ids[t], p.table.rows);
  }
}

}  // namespace

Op<EmbeddingParams>& EmbeddingOp() {
  static Op<EmbeddingParams> table(EmbeddingRef, EmbeddingCpu, Check);
  return table;
}

}  // namespace deepinfer
