// base/process_memory.h: how much memory this process has, as the system counts it.
#pragma once

#include <cstdint>

#include "base/disk.h"

namespace deepinfer {

// Resident bytes, now and at most so far; 0 if the system does not say.
int64_t ResidentBytes(Disk& disk = RealDisk());
int64_t PeakResidentBytes(Disk& disk = RealDisk());
// Of address space, whether memory stands behind it or not; 0 if the system does not say.
int64_t VirtualBytes(Disk& disk = RealDisk());
// The peak counts from now on, where the system lets it.
void ForgetPeakResidentBytes();

}  // namespace deepinfer
