// Plain CPU forms of the record writers. Codes and scales equal the oracle's bit for bit.
#include <cmath>
#include <cstring>

#include "kernels/cpu/simd.h"
#include "kernels/kv_layout.h"
#include "kernels/kv_records/cpu/kv_codes.h"
#include "kernels/kv_records/kv_records.h"

namespace deepinfer {
namespace {

constexpr uint8_t kE4m3Nan = 0x7f;
constexpr int32_t kRowsPerPiece = 8;

void WriteSwaRow(const bf16* x, int32_t dim, uint8_t* record) {
  for (int32_t g = 0; g < dim / 32; ++g) {
    const bf16* group = x + g * 32;
    const float amax = ToFloat(bf16{simd::LargestMagnitude(group, 32)});
    uint8_t* codes = record + g * 32;
    if (std::isfinite(amax)) {
      const uint8_t scale = Fp8GroupScale(amax);
      kv_codes::EncodeE4m3(group, E8m0ToFloat(scale), 32, codes);
      record[dim + g] = scale;
    } else {
      std::memset(codes, kE4m3Nan, 32);
      record[dim + g] = 127;
    }
  }
}

void WriteGlobalRow(const bf16* x, int32_t dim, uint8_t* record) {
  for (int32_t g = 0; g < dim / 16; ++g) {
    const bf16* group = x + g * 16;
    const float amax = ToFloat(bf16{simd::LargestMagnitude(group, 16)});
    uint8_t* codes = record + g * 8;
    if (std::isfinite(amax)) {
      const uint8_t scale = Fp4GroupScaleE4m3(amax);
      kv_codes::EncodeE2m1(group, E4m3ToFloat(scale), 16, codes);
      record[dim / 2 + g] = scale;
    } else {
      std::memset(codes, 0, 8);
      record[dim / 2 + g] = kE4m3Nan;
    }
  }
}

void WriteIndexKeyRow(const bf16* x, int32_t dim, uint8_t* key, uint8_t* scales) {
  for (int32_t g = 0; g < dim / 32; ++g) {
    const bf16* group = x + g * 32;
    const float amax = ToFloat(bf16{simd::LargestMagnitude(group, 32)});
    if (std::isfinite(amax)) {
      scales[g] = Fp4GroupScaleE8m0(amax);
      kv_codes::EncodeE2m1(group, E8m0ToFloat(scales[g]), 32, key + g * 16);
    } else {
      std::memset(key + g * 16, 0, 16);
      scales[g] = kE8m0Nan;
    }
  }
}

}  // namespace

void WriteSwaCpu(const Backend& backend, const WriteSwaParams& params) {
  backend.ParallelFor(params.num_rows, kRowsPerPiece, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      WriteSwaRow(params.x + t * params.dim, params.dim,
                  params.records + t * SwaRecordBytes(params.dim));
    }
  });
}

void WriteGlobalCpu(const Backend& backend, const WriteGlobalParams& params) {
  backend.ParallelFor(params.num_rows, kRowsPerPiece, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      if (params.records[n] == nullptr) continue;
      WriteGlobalRow(params.x + n * params.dim, params.dim, params.records[n]);
    }
  });
}

void WriteIndexKeyCpu(const Backend& backend, const WriteIndexKeyParams& params) {
  backend.ParallelFor(params.num_rows, kRowsPerPiece, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      if (params.keys[n] == nullptr) continue;
      WriteIndexKeyRow(params.x + n * params.dim, params.dim, params.keys[n], params.scales[n]);
    }
  });
}

}  // namespace deepinfer
