#include "kernels/rms_norm/rms_norm.h"

namespace deepinfer {

void RmsNormRef(const Backend& backend, const RmsNormParams& params);
void RmsNormCpu(const Backend& backend, const RmsNormParams& params);

namespace {

void Check(const RmsNormParams& p) {
  CHECK_GE(p.num_tokens, 0);
  CHECK_GT(p.dim, 0);
  CHECK_GE(p.x_stride, p.dim);
  CHECK(p.out != p.x || p.x_stride == p.dim);
}

}  // namespace

Op<RmsNormParams>& RmsNormOp() {
  static Op<RmsNormParams> table(RmsNormRef, RmsNormCpu, Check);
  return table;
}

}  // namespace deepinfer
