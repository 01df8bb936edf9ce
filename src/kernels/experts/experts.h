// kernels/experts/experts.h: the routed experts of a layer, and the sum over a token's experts.
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/formats/matrix.h"

namespace deepinfer {

struct ExpertMatrices {
  Matrix w1, w3, w2;  // gate, up [I, D]; down [D, I]
};

// y[t, i, :] = bf16 of expert e = experts[t, i] on x[t]: w2(Q8(swiglu(w1 x, w3 x, weights[t, i]))),
// with w1 x and w3 x rounded to BF16. Grouped by expert; a row's result does not depend on the
// grouping. Slots (t, i) of expert -1 are left out, their y as it was: a caller may run a subset of
// the experts at a time. Source: model.md 3.7. Reference: experts_ref.cc.
struct ExpertsParams {
  int32_t num_tokens = 0;                    // T
  int32_t dim = 0;                           // D
  int32_t inner = 0;                         // I
  int32_t num_experts = 0;                   // E
  int32_t topk = 0;                          // k
  float limit = 0;                           // swiglu clamp, 0 = none
  const bf16* x = nullptr;                   // [T, D], on the FP8 grid
  const int32_t* experts = nullptr;          // [T, k], or -1
  const float* weights = nullptr;            // [T, k]
  const ExpertMatrices* matrices = nullptr;  // [E]; only those that `experts` names are read
  bf16* y = nullptr;                         // [T, k, D]
};

// out[t, :] = bf16(sum_i y[t, i, :] + shared[t, :]): F32, ascending i, shared last.
struct CombineParams {
  int32_t num_tokens = 0;        // T
  int32_t dim = 0;               // D
  int32_t topk = 0;              // k
  const bf16* y = nullptr;       // [T, k, D], in ascending expert id
  const bf16* shared = nullptr;  // [T, D]
  bf16* out = nullptr;           // [T, D]; may be shared
};

Op<ExpertsParams>& ExpertsOp();
Op<CombineParams>& CombineOp();
inline void Experts(const Backend& backend, const ExpertsParams& params) {
  ExpertsOp().Run(backend, params);
}
inline void Combine(const Backend& backend, const CombineParams& params) {
  CombineOp().Run(backend, params);
}

}  // namespace deepinfer
