#include "kernels/quantise/quantise.h"

namespace deepinfer {

void QuantiseRef(const Backend& backend, const QuantiseParams& params);
void QuantiseCpu(const Backend& backend, const QuantiseParams& params);

namespace {

void Check(const QuantiseParams& p) {
  CHECK_GE(p.num_tokens, 0);
  CHECK_EQ(p.dim % 32, 0);
}

}  // namespace

Op<QuantiseParams>& QuantiseOp() {
  static Op<QuantiseParams> table(QuantiseRef, QuantiseCpu, Check);
  return table;
}

}  // namespace deepinfer
