// Oracle of the record writers: the quantisers of model.md 6.1, value by value.
//
// A group that holds a NaN or an infinity becomes all NaN (as the official amax would make it), so
// that a broken row stays visible instead of turning into plausible numbers.
#include <algorithm>
#include <cmath>

#include "kernels/fault.h"
#include "kernels/kv_layout.h"
#include "kernels/kv_records/kv_records.h"

namespace deepinfer {
namespace {

constexpr uint8_t kE4m3Nan = 0x7f;

// Largest magnitude of x[0, n), or infinity if some value is not finite.
float GroupMax(const bf16* x, int32_t n) {
  float amax = 0;
  for (int32_t i = 0; i < n; ++i) {
    const float a = std::fabs(ToFloat(x[i]));
    if (!std::isfinite(a)) return std::numeric_limits<float>::infinity();
    amax = std::max(amax, a);
  }
  return amax;
}

// Rounding to zero instead of to nearest: what the faults "..._unquantised" stand for, since a
// record cannot hold values off its grid.
uint8_t TruncateToE2m1(float x) {
  uint8_t code = FloatToE2m1(x);
  if (std::fabs(E2m1ToFloat(code)) > std::fabs(x)) --code;
  return code;
}

void PutNibble(uint8_t* codes, int32_t i, uint8_t code) {
  uint8_t& byte = codes[i / 2];
  byte = i % 2 == 0 ? static_cast<uint8_t>((byte & 0xf0) | code)
                    : static_cast<uint8_t>((byte & 0x0f) | code << 4);
}

void WriteGlobalRow(const bf16* x, int32_t dim, uint8_t* record) {
  const bool truncate = DI_FAULT("global_kv_unquantised");
  const bool e8m0_group32 = DI_FAULT("global_kv_e8m0_scale_group32");
  const int32_t swap = DI_FAULT("swapped_nibbles_kv") ? 1 : 0;
  for (int32_t g = 0; g < dim / 16; ++g) {
    const float amax = e8m0_group32 ? GroupMax(x + (g / 2) * 32, 32) : GroupMax(x + g * 16, 16);
    uint8_t scale = Fp4GroupScaleE4m3(amax);
    if (e8m0_group32) scale = FloatToE4m3(E8m0ToFloat(Fp4GroupScaleE8m0(amax)));
    const float divisor = E4m3ToFloat(scale);
    for (int32_t i = g * 16; i < (g + 1) * 16; ++i) {
      const float scaled = std::isfinite(amax) ? ToFloat(x[i]) / divisor : 0.0f;
      PutNibble(record, i ^ swap, truncate ? TruncateToE2m1(scaled) : FloatToE2m1(scaled));
    }
    record[dim / 2 + g] = std::isfinite(amax) ? scale : kE4m3Nan;
  }
}

void WriteIndexKeyRow(const bf16* x, int32_t dim, uint8_t* key, uint8_t* scales) {
  const bool truncate = DI_FAULT("index_key_unquantised");
  for (int32_t g = 0; g < dim / 32; ++g) {
    const float amax = GroupMax(x + g * 32, 32);
    scales[g] = std::isfinite(amax) ? Fp4GroupScaleE8m0(amax) : kE8m0Nan;
    for (int32_t i = g * 32; i < (g + 1) * 32; ++i) {
      const float scaled = std::isfinite(amax) ? ToFloat(x[i]) / E8m0ToFloat(scales[g]) : 0.0f;
      PutNibble(key, i, truncate ? TruncateToE2m1(scaled) : FloatToE2m1(scaled));
    }
  }
}

}  // namespace

void WriteSwaRef(const Backend&, const WriteSwaParams& params) {
  for (int32_t t = 0; t < params.num_rows; ++t) {
    const bf16* x = params.x + int64_t{t} * params.dim;
    uint8_t* record = params.records + int64_t{t} * SwaRecordBytes(params.dim);
    for (int32_t g = 0; g < params.dim / 32; ++g) {
      const float amax = GroupMax(x + g * 32, 32);
      const uint8_t scale = std::isfinite(amax) ? Fp8GroupScale(amax) : 127;
      for (int32_t i = g * 32; i < (g + 1) * 32; ++i) {
        record[i] =
            std::isfinite(amax) ? FloatToE4m3(ToFloat(x[i]) / E8m0ToFloat(scale)) : kE4m3Nan;
      }
      record[params.dim + g] = scale;
    }
  }
}

void WriteGlobalRef(const Backend&, const WriteGlobalParams& params) {
  for (int32_t n = 0; n < params.num_rows; ++n) {
    if (params.records[n] == nullptr) continue;
    WriteGlobalRow(params.x + int64_t{n} * params.dim, params.dim, params.records[n]);
  }
}

void WriteIndexKeyRef(const Backend&, const WriteIndexKeyParams& params) {
  for (int32_t n = 0; n < params.num_rows; ++n) {
    if (params.keys[n] == nullptr) continue;
    WriteIndexKeyRow(params.x + int64_t{n} * params.dim, params.dim, params.keys[n],
                     params.scales[n]);
  }
}

}  // namespace deepinfer
