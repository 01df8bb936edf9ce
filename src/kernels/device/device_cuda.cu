// kernels/device/device_cuda.cu: the answers of a CUDA build. The CUDA runtime is linked statically
// and finds the driver when it is first called, so the program starts on machines that have none.
#include <cuda_runtime.h>

#include "kernels/device/device.h"

namespace deepinfer {
namespace {

// Never launched: asking for its attributes shows whether a device can load this build's code.
__global__ void probe_kernel() {}

struct Found {
  std::vector<GpuInfo> gpus;
  std::string reason;  // why none or not all are usable; empty if nothing is wrong
};

Found Look() {
  Found found;
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    found.reason = cudaGetErrorString(error);
    return found;
  }
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties;
    cudaFuncAttributes attributes;
    cudaError_t failure = cudaGetDeviceProperties(&properties, i);
    if (failure == cudaSuccess) failure = cudaSetDevice(i);
    if (failure == cudaSuccess) failure = cudaFuncGetAttributes(&attributes, probe_kernel);
    if (failure == cudaSuccess) {
      found.gpus.push_back({properties.name, properties.major, properties.minor,
                            static_cast<int64_t>(properties.totalGlobalMem)});
    } else {
      found.reason = "GPU " + std::to_string(i) + ": " + cudaGetErrorString(failure);
    }
  }
  return found;
}

const Found& OnThisMachine() {
  static const Found found = Look();
  return found;
}

}  // namespace

std::vector<GpuInfo> ListGpus() { return OnThisMachine().gpus; }

bool IsCudaBuild() { return true; }

std::string AcceleratorNote() {
  const Found& found = OnThisMachine();
  if (found.gpus.empty()) {
    return "CUDA build, no usable GPU: " + (found.reason.empty() ? "none found" : found.reason) +
           "; computing on the CPU";
  }
  std::string note = "CUDA build, usable:";
  for (const GpuInfo& gpu : found.gpus) {
    note += " " + gpu.name + " (" + std::to_string(gpu.compute_major) + "." +
            std::to_string(gpu.compute_minor) + ", " +
            std::to_string(gpu.memory_bytes / 1'000'000'000) + " GB);";
  }
  return note + " no operation has a GPU form yet: computing on the CPU";
}

}  // namespace deepinfer
