#include "kernels/kv_records/kv_records.h"

#include <limits>

#include "kernels/kv_layout.h"

namespace deepinfer {

void WriteSwaRef(const Backend& backend, const WriteSwaParams& params);
void WriteSwaCpu(const Backend& backend, const WriteSwaParams& params);
void WriteGlobalRef(const Backend& backend, const WriteGlobalParams& params);
void WriteGlobalCpu(const Backend& backend, const WriteGlobalParams& params);
void WriteIndexKeyRef(const Backend& backend, const WriteIndexKeyParams& params);
void WriteIndexKeyCpu(const Backend& backend, const WriteIndexKeyParams& params);

namespace {

bool HasBuffers(const WriteSwaParams& params) { return params.records != nullptr; }
bool HasBuffers(const WriteGlobalParams& params) { return params.records != nullptr; }
bool HasBuffers(const WriteIndexKeyParams& params) { return params.keys && params.scales; }

template <typename Params>
void Check(const Params& params) {
  CHECK_GE(params.num_rows, 0);
  CHECK(params.dim > 0 && params.dim % 32 == 0);
  CHECK(params.num_rows == 0 || (params.x != nullptr && HasBuffers(params)));
}

float ScaleOf(uint8_t e8m0) {
  return e8m0 == kE8m0Nan ? std::numeric_limits<float>::quiet_NaN() : E8m0ToFloat(e8m0);
}

uint8_t Nibble(const uint8_t* codes, int32_t i) {
  return i % 2 == 0 ? codes[i / 2] & 15 : codes[i / 2] >> 4;
}

}  // namespace

Op<WriteSwaParams>& WriteSwaOp() {
  static Op<WriteSwaParams> table(WriteSwaRef, WriteSwaCpu, Check<WriteSwaParams>);
  return table;
}

Op<WriteGlobalParams>& WriteGlobalOp() {
  static Op<WriteGlobalParams> table(WriteGlobalRef, WriteGlobalCpu, Check<WriteGlobalParams>);
  return table;
}

Op<WriteIndexKeyParams>& WriteIndexKeyOp() {
  static Op<WriteIndexKeyParams> table(WriteIndexKeyRef, WriteIndexKeyCpu,
                                       Check<WriteIndexKeyParams>);
  return table;
}

void DecodeSwaRecord(const uint8_t* record, int32_t dim, float* out) {
  const uint8_t* scales = record + dim;
  for (int32_t i = 0; i < dim; ++i) out[i] = E4m3ToFloat(record[i]) * ScaleOf(scales[i / 32]);
}

void DecodeGlobalRecord(const uint8_t* record, int32_t dim, float* out) {
  const uint8_t* scales = record + dim / 2;
  for (int32_t i = 0; i < dim; ++i) {
    out[i] = E2m1ToFloat(Nibble(record, i)) * E4m3ToFloat(scales[i / 16]);
  }
}

void DecodeIndexKey(const uint8_t* key, const uint8_t* scale, int32_t dim, float* out) {
  for (int32_t i = 0; i < dim; ++i) out[i] = E2m1ToFloat(Nibble(key, i)) * ScaleOf(scale[i / 32]);
}

}  // namespace deepinfer
