#include "kernels/compressor/compressor.h"

namespace deepinfer {

void CompressRef(const Backend& backend, const CompressParams& params);
void CompressCpu(const Backend& backend, const CompressParams& params);

namespace {

void Check(const CompressParams& params) {
  CHECK_GE(params.num_entries, 0);
  CHECK_GE(params.ratio, 2);
  CHECK_GE(params.dim, 1);
  CHECK(params.num_entries == 0 || (params.rows != nullptr && params.out != nullptr));
}

}  // namespace

Op<CompressParams>& CompressOp() {
  static Op<CompressParams> table(CompressRef, CompressCpu, Check);
  return table;
}

}  // namespace deepinfer
