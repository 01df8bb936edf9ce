#include "kernels/benchmark/ceilings.h"

#include <algorithm>
#include <array>
#include <atomic>

namespace deepinfer {
namespace {

constexpr int kRuns = 9;
constexpr int64_t kPieceBytes = int64_t{4} << 20;

// Median seconds of kRuns calls, as of the steps that are compared with it: a virtual machine's
// neighbours let a single run be twice as fast as what lasts.
template <typename Work>
double MedianSeconds(Clock& clock, const Work& work) {
  std::array<double, kRuns> seconds{};
  for (double& run : seconds) {
    const MonotonicTime start = clock.Now();
    work();
    run = Seconds(clock.Now() - start);
  }
  std::nth_element(seconds.begin(), seconds.begin() + kRuns / 2, seconds.end());
  return seconds[kRuns / 2];
}

// The dot products of a variant.
struct DotLoop {
  float (*run)(int64_t iterations);
  int64_t macs;        // an iteration
  int64_t iterations;  // some tens of milliseconds of them
};

DotLoop DotLoopOf(VariantId variant) {
  switch (variant) {
    case kAvx512Variant:
      return {ceiling_loops::DotsAvx512, ceiling_loops::kMacsAvx512, 4'000'000};
    case kAmxVariant:
      return {ceiling_loops::DotsAmx, ceiling_loops::kMacsAmx, 1'000'000};
    default:
      return {ceiling_loops::DotsAvx2, ceiling_loops::kMacsAvx2, 4'000'000};
  }
}

}  // namespace

int64_t ReadMemory(const Backend& backend, const uint8_t* memory, int64_t num_bytes) {
  std::atomic<uint64_t> used{0};
  const int64_t pieces = num_bytes / kPieceBytes;
  CHECK_GT(pieces, 0);
  backend.ParallelFor(pieces, 1, [&](int64_t begin, int64_t end) {
    used += ceiling_loops::ReadAvx2(memory + begin * kPieceBytes, (end - begin) * kPieceBytes);
  });
  return pieces * kPieceBytes;
}

Ceilings MeasureCeilings(const Backend& backend, const uint8_t* memory, int64_t num_bytes,
                         Clock& clock) {
  std::atomic<uint64_t> used{0};  // what keeps the loops alive
  Ceilings ceilings;
  int64_t bytes = 0;
  const double read = MedianSeconds(clock, [&] { bytes = ReadMemory(backend, memory, num_bytes); });
  ceilings.read_bytes_per_s = static_cast<double>(bytes) / read;

  const DotLoop loop = DotLoopOf(backend.variant);
  const int threads = backend.threads == nullptr ? 1 : backend.threads->num_threads();
  const double dots = MedianSeconds(clock, [&] {
    backend.ParallelFor(threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        used += static_cast<uint64_t>(loop.run(loop.iterations) > 0);
      }
    });
  });
  ceilings.macs_per_s = static_cast<double>(loop.macs * loop.iterations * threads) / dots;
  return ceilings;
}

}  // namespace deepinfer
