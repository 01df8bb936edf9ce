// kernels/benchmark/ceilings.h: what this machine can do at most: bytes read a second, and
// multiplications a second in the arithmetic of a variant's products.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "kernels/backend.h"

namespace deepinfer {

struct Ceilings {
  double read_bytes_per_s = 0;
  double macs_per_s = 0;  // F32 FMA for avx2, VDPBF16PS for avx512, TDPBF16PS for amx
};

// Median of a few runs on the threads of `backend`. `memory` of num_bytes is read whole: it should
// exceed the last-level cache several times.
Ceilings MeasureCeilings(const Backend& backend, const uint8_t* memory, int64_t num_bytes,
                         Clock& clock);

// Reads the memory once, on all threads, in pieces of 4 MiB, a rest left out. Returns how many
// bytes that were.
int64_t ReadMemory(const Backend& backend, const uint8_t* memory, int64_t num_bytes);

// The loops behind them; each returns a value made of all it did, so that none is optimised away.
namespace ceiling_loops {
inline constexpr int64_t kMacsAvx2 = 12 * 8, kMacsAvx512 = 12 * 32;  // an iteration
inline constexpr int64_t kMacsAmx = 6 * 16 * 16 * 32;
uint64_t ReadAvx2(const uint8_t* memory, int64_t num_bytes);  // a multiple of 256
float DotsAvx2(int64_t iterations);
float DotsAvx512(int64_t iterations);
float DotsAmx(int64_t iterations);
}  // namespace ceiling_loops

}  // namespace deepinfer
