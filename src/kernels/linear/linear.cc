#include "kernels/linear/linear.h"

#include <algorithm>

#include "kernels/linear/cpu/linear_panels.h"

namespace deepinfer {

void LinearRef(const Backend& backend, const LinearParams& params);

namespace {

void Check(const LinearParams& p) {
  const Matrix& w = p.weight;
  CHECK(!w.empty());
  CHECK_GE(p.num_tokens, 0);
  CHECK_GE(p.x_stride, w.cols);
  CHECK_GE(p.out_stride, w.rows);
  CHECK((p.out == nullptr) != (p.out_f32 == nullptr));
  if (w.format == WeightFormat::kFp8 || w.format == WeightFormat::kFp4) {
    CHECK(w.scale != nullptr);
    CHECK_EQ(w.cols % 32, 0);
  }
  if (w.format == WeightFormat::kFp8) CHECK_EQ(w.rows % 32, 0);
}

void CheckAll(const LinearsParams& p) {
  std::for_each(p.products.begin(), p.products.end(), Check);
}

// Of every variant that has no form for several at once.
void OneByOne(const Backend& backend, const LinearsParams& p) {
  for (const LinearParams& product : p.products) Linear(backend, product);
}

}  // namespace

Op<LinearParams>& LinearOp() {
  static Op<LinearParams> table(LinearRef, LinearAvx2, Check, LinearAvx512, LinearAmx);
  return table;
}

Op<LinearsParams>& LinearsOp() {
  static Op<LinearsParams> table(OneByOne, LinearsAvx2, CheckAll, LinearsAvx512, LinearsAmx);
  return table;
}

}  // namespace deepinfer
