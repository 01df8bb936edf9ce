// kernels/device/device.h: which GPUs this build can use on this machine.
//
// A build for the CPU answers "none"; a CUDA build asks the driver, and runs without one. Threads:
// any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace deepinfer {

struct GpuInfo {
  std::string name;
  int compute_major = 0, compute_minor = 0;  // compute capability, 9.0 for Hopper
  int64_t memory_bytes = 0;
};

// The GPUs that can run the code of this build, in the driver's order. Empty without driver or GPU.
std::vector<GpuInfo> ListGpus();

// True where this was compiled with CUDA, whatever the machine has.
bool IsCudaBuild();

// One line for people: how this was built, what was found and where it computes.
std::string AcceleratorNote();

}  // namespace deepinfer
