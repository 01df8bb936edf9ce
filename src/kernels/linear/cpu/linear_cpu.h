// kernels/linear/cpu/linear_cpu.h: the plain CPU form of Linear, for CPU forms of ops that contain
// products (experts, hyper_connection). Same contract as LinearParams.
#pragma once

#include "kernels/cpu/scratch.h"
#include "kernels/linear/cpu/f32_tiles.h"
#include "kernels/linear/linear.h"

namespace deepinfer {

void LinearCpu(const Backend& backend, const LinearParams& params,
               const F32Tiles& tiles = kAvx2F32Tiles);
// Whatever the scales; pointers are not looked at.
ScratchBytes LinearCpuScratchBytes(const LinearParams& params);

// out[t, i] = ToBf16(values[t, i]) for i < count.
void RoundToBf16(const float* values, int64_t stride, int64_t num_rows, int64_t count, bf16* out,
                 int64_t out_stride);

}  // namespace deepinfer
