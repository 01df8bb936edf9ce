#include "kernels/experts/experts.h"

namespace deepinfer {

void ExpertsRef(const Backend& backend, const ExpertsParams& params);
void ExpertsAvx2(const Backend& backend, const ExpertsParams& params);
void ExpertsAvx512(const Backend& backend, const ExpertsParams& params);
void ExpertsAmx(const Backend& backend, const ExpertsParams& params);
void CombineRef(const Backend& backend, const CombineParams& params);
void CombineCpu(const Backend& backend, const CombineParams& params);

namespace {

void CheckExperts(const ExpertsParams& p) {
  CHECK_GE(p.num_tokens, 0);
  CHECK_EQ(p.inner % 32, 0);
  for (int64_t i = 0; i < int64_t{p.num_tokens} * p.topk; ++i) {
    CHECK_GE(p.experts[i], -1);
    CHECK_LT(p.experts[i], p.num_experts);
    if (p.experts[i] < 0) continue;
    const ExpertMatrices& matrices = p.matrices[p.experts[i]];
    for (const Matrix* up : {&matrices.w1, &matrices.w3}) {
      CHECK_EQ(up->rows, p.inner);
      CHECK_EQ(up->cols, p.dim);
    }
    CHECK_EQ(matrices.w2.rows, p.dim);
    CHECK_EQ(matrices.w2.cols, p.inner);
  }
}

void CheckCombine(const CombineParams& p) {
  CHECK_GE(p.num_tokens, 0);
  CHECK_GE(p.topk, 0);
}

}  // namespace

Op<ExpertsParams>& ExpertsOp() {
  static Op<ExpertsParams> table(ExpertsRef, ExpertsAvx2, CheckExperts, ExpertsAvx512, ExpertsAmx);
  return table;
}

Op<CombineParams>& CombineOp() {
  static Op<CombineParams> table(CombineRef, CombineCpu, CheckCombine);
  return table;
}

}  // namespace deepinfer
