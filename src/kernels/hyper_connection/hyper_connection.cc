#include "kernels/hyper_connection/hyper_connection.h"

#include "kernels/hyper_connection/max_streams.h"

namespace deepinfer {

void HyperMixRef(const Backend& backend, const HyperMixParams& params);
void HyperMixCpu(const Backend& backend, const HyperMixParams& params);
void HyperMixAvx512(const Backend& backend, const HyperMixParams& params);
void HyperCollapseRef(const Backend& backend, const HyperCollapseParams& params);
void HyperCollapseCpu(const Backend& backend, const HyperCollapseParams& params);
void HyperCollapseAvx512(const Backend& backend, const HyperCollapseParams& params);
void HyperUpdateRef(const Backend& backend, const HyperUpdateParams& params);
void HyperUpdateCpu(const Backend& backend, const HyperUpdateParams& params);
void HyperUpdateAvx512(const Backend& backend, const HyperUpdateParams& params);

namespace {

template <typename Params>
void CheckShape(const Params& p) {
  CHECK_GE(p.num_tokens, 0);
  CHECK_GE(p.num_streams, 1);
  CHECK_LE(p.num_streams, kMaxHyperStreams);
  CHECK_GE(p.dim, 1);
}

void CheckMix(const HyperMixParams& p) {
  CheckShape(p);
  CHECK_GE(p.sinkhorn_iterations, 1);
}

}  // namespace

Op<HyperMixParams>& HyperMixOp() {
  static Op<HyperMixParams> table(HyperMixRef, HyperMixCpu, CheckMix, HyperMixAvx512);
  return table;
}

Op<HyperCollapseParams>& HyperCollapseOp() {
  static Op<HyperCollapseParams> table(HyperCollapseRef, HyperCollapseCpu,
                                       CheckShape<HyperCollapseParams>, HyperCollapseAvx512);
  return table;
}

Op<HyperUpdateParams>& HyperUpdateOp() {
  static Op<HyperUpdateParams> table(HyperUpdateRef, HyperUpdateCpu, CheckShape<HyperUpdateParams>,
                                     HyperUpdateAvx512);
  return table;
}

}  // namespace deepinfer
