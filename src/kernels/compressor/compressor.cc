#include "kernels/compressor/compressor.h"

#include "base/check.h"

namespace deepinfer {

void CompressRef(const Backend& backend, const CompressParams& params);
void CompressCpu(const Backend& backend, const CompressParams& params);

namespace {

template <Op<CompressParams>::Fn kForm>
void Checked(const Backend& backend, const CompressParams& params) {
  CHECK_GE(params.num_entries, 0);
  CHECK_GE(params.ratio, 2);
  CHECK_GE(params.dim, 1);
  if (params.num_entries == 0) return;
  CHECK(params.rows != nullptr && params.out != nullptr);
  kForm(backend, params);
}

}  // namespace

Op<CompressParams>& CompressOp() {
  static Op<CompressParams> table{Checked<CompressRef>, Checked<CompressCpu>};
  return table;
}

}  // namespace deepinfer
