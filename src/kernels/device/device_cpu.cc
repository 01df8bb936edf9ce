// kernels/device/device_cpu.cc: the answers of a build without CUDA.
#include "kernels/device/device.h"

namespace deepinfer {

std::vector<GpuInfo> ListGpus() { return {}; }

bool IsCudaBuild() { return false; }

std::string AcceleratorNote() { return "built without CUDA; computing on the CPU"; }

}  // namespace deepinfer
