// kernels/kv_records/kv_records.h: BF16 rows -> stored KV records, and back.
//
// Formats: kernels/kv_layout.h. Quantisers: model.md 6.1. Decoding is exact in BF16.
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/formats/number_formats.h"

namespace deepinfer {

// records[t] = dim e4m3 codes, then dim/32 E8M0 bytes (FP8, groups of 32).
struct WriteSwaParams {
  int32_t num_rows = 0;
  int32_t dim = 0;             // head_dim
  const bf16* x = nullptr;     // [num_rows, dim], after RoPE
  uint8_t* records = nullptr;  // [num_rows, SwaRecordBytes(dim)]
};

// *records[n] = dim/2 bytes of e2m1, then dim/16 E4M3 bytes (FP4, groups of 16).
struct WriteGlobalParams {
  int32_t num_rows = 0;
  int32_t dim = 0;                    // head_dim
  const bf16* x = nullptr;            // [num_rows, dim], after RoPE
  uint8_t* const* records = nullptr;  // [num_rows] places in pages; null = do not write that row
};

// FP4, groups of 32, E8M0: codes to *keys[n], scales to *scales[n].
struct WriteIndexKeyParams {
  int32_t num_rows = 0;
  int32_t dim = 0;                   // index_head_dim
  const bf16* x = nullptr;           // [num_rows, dim], after RoPE
  uint8_t* const* keys = nullptr;    // [num_rows] places in pages; null = do not write that row
  uint8_t* const* scales = nullptr;  // [num_rows]
};

Op<WriteSwaParams>& WriteSwaOp();
Op<WriteGlobalParams>& WriteGlobalOp();
Op<WriteIndexKeyParams>& WriteIndexKeyOp();
inline void WriteSwa(const Backend& backend, const WriteSwaParams& params) {
  WriteSwaOp().Run(backend, params);
}
inline void WriteGlobal(const Backend& backend, const WriteGlobalParams& params) {
  WriteGlobalOp().Run(backend, params);
}
inline void WriteIndexKey(const Backend& backend, const WriteIndexKeyParams& params) {
  WriteIndexKeyOp().Run(backend, params);
}

// Host-side decoding of one record, for tests and tools. out: [dim].
void DecodeSwaRecord(const uint8_t* record, int32_t dim, float* out);
void DecodeGlobalRecord(const uint8_t* record, int32_t dim, float* out);
void DecodeIndexKey(const uint8_t* key, const uint8_t* scale, int32_t dim, float* out);

}  // namespace deepinfer
