#include "kernels/router/router.h"

namespace deepinfer {

void RouterRef(const Backend& backend, const RouterParams& params);
void RouterCpu(const Backend& backend, const RouterParams& params);

namespace {

void Check(const RouterParams& p) {
  CHECK_GE(p.num_tokens, 0);
  CHECK_GE(p.topk, 1);
  CHECK_LE(p.topk, p.num_experts);
  CHECK_EQ(p.bias_vl == nullptr, p.is_image == nullptr);
}

}  // namespace

Op<RouterParams>& RouterOp() {
  static Op<RouterParams> table(RouterRef, RouterCpu, Check);
  return table;
}

}  // namespace deepinfer
