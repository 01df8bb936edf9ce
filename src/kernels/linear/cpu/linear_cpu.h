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

}  // namespace deepinfer
