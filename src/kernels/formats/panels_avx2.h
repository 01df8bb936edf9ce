// kernels/formats/panels_avx2.h: whole panels transposed with AVX2. For panels.cc only; the plain
// form there finishes what is left and says what is right.
#pragma once

#include <cstdint>

#include "kernels/formats/matrix.h"

namespace deepinfer {

// 16 rows of codes, `row_bytes` each and one after the other, into their places in `panel` (64-byte
// aligned). Returns how many bytes of each row were done: a multiple of 32.
int64_t PackPanelAvx2(WeightFormat format, const uint8_t* rows, int64_t row_bytes, uint8_t* panel);

// 16 rows of FP4 scales [16, num_groups] to out [num_groups, 16] (16-byte aligned). Returns how
// many groups were done: a multiple of 16.
int32_t PackFp4ScalesAvx2(const uint8_t* scales, int32_t num_groups, uint8_t* out);

}  // namespace deepinfer
