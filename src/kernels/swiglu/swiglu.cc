#include "kernels/swiglu/swiglu.h"

namespace deepinfer {

void SwigluRef(const Backend& backend, const SwigluParams& params);
void SwigluCpu(const Backend& backend, const SwigluParams& params);

namespace {

void Check(const SwigluParams& p) {
  CHECK_GE(p.num_tokens, 0);
  CHECK_GT(p.inner, 0);
  CHECK_GE(p.limit, 0.0f);
}

}  // namespace

Op<SwigluParams>& SwigluOp() {
  static Op<SwigluParams> table(SwigluRef, SwigluCpu, Check);
  return table;
}

}  // namespace deepinfer
