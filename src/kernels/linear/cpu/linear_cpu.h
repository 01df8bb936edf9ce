// kernels/linear/cpu/linear_cpu.h: the plain CPU form of Linear, for CPU forms of ops that contain
// products (experts, hyper_connection). Same contract as LinearParams.
#pragma once

#include "kernels/linear/linear.h"

namespace deepinfer {

void LinearCpu(const Backend& backend, const LinearParams& params);

}  // namespace deepinfer
