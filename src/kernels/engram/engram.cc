#include "kernels/engram/engram.h"

namespace deepinfer {

void EngramGatherRef(const Backend& backend, const EngramGatherParams& params);
void EngramGatherCpu(const Backend& backend, const EngramGatherParams& params);
void EngramMixRef(const Backend& backend, const EngramMixParams& params);
void EngramMixCpu(const Backend& backend, const EngramMixParams& params);

namespace {

void CheckGather(const EngramGatherParams& params) {
  CHECK_GE(params.num_tokens, 0);
  CHECK(params.table.dim > 0 && params.table.dim % 32 == 0);
  if (params.num_tokens == 0) return;
  CHECK(params.table.data && params.table.scale && params.rows && params.out);
  for (int64_t i = 0; i < int64_t{params.num_tokens} * params.columns; ++i) {
    CHECK(params.rows[i] >= 0 && params.rows[i] < params.table.rows);
  }
}

void CheckMix(const EngramMixParams& params) {
  CHECK_GE(params.num_tokens, 0);
  CHECK_GE(params.num_streams, 1);
  CHECK_GE(params.dim, 1);
  CHECK(params.num_tokens == 0 ||
        (params.kv && params.q_weight && params.k_weight && params.streams));
}

}  // namespace

Op<EngramGatherParams>& EngramGatherOp() {
  static Op<EngramGatherParams> table(EngramGatherRef, EngramGatherCpu, CheckGather);
  return table;
}

Op<EngramMixParams>& EngramMixOp() {
  static Op<EngramMixParams> table(EngramMixRef, EngramMixCpu, CheckMix);
  return table;
}

}  // namespace deepinfer
