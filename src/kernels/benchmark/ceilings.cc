#include "kernels/benchmark/ceilings.h"

#include <algorithm>
#include <atomic>

namespace deepinfer {
namespace {

constexpr int kRuns = 5;
constexpr int64_t kPieceBytes = int64_t{4} << 20;
constexpr int64_t kIterations = 4'000'000;  // of a piece: some tens of milliseconds

// Best seconds of kRuns calls.
template <typename Work>
double BestSeconds(Clock& clock, const Work& work) {
  double best = 1e30;
  for (int run = 0; run < kRuns; ++run) {
    const MonotonicTime start = clock.Now();
    work();
    best = std::min(best, Seconds(clock.Now() - start));
  }
  return best;
}

}  // namespace

Ceilings MeasureCeilings(const Backend& backend, const uint8_t* memory, int64_t num_bytes,
                         Clock& clock) {
  std::atomic<uint64_t> used{0};  // what keeps the loops alive
  Ceilings ceilings;
  const int64_t pieces = num_bytes / kPieceBytes;
  CHECK_GT(pieces, 0);
  const double read = BestSeconds(clock, [&] {
    backend.ParallelFor(pieces, 1, [&](int64_t begin, int64_t end) {
      used += ceiling_loops::ReadAvx2(memory + begin * kPieceBytes, (end - begin) * kPieceBytes);
    });
  });
  ceilings.read_bytes_per_s = static_cast<double>(pieces * kPieceBytes) / read;

  const bool wide = backend.variant == kAvx512Variant;
  const int threads = backend.threads == nullptr ? 1 : backend.threads->num_threads();
  const double dots = BestSeconds(clock, [&] {
    backend.ParallelFor(threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float sum =
            wide ? ceiling_loops::DotsAvx512(kIterations) : ceiling_loops::DotsAvx2(kIterations);
        used += static_cast<uint64_t>(sum > 0);
      }
    });
  });
  const int64_t macs = wide ? ceiling_loops::kMacsAvx512 : ceiling_loops::kMacsAvx2;
  ceilings.macs_per_s = static_cast<double>(macs * kIterations * threads) / dots;
  return ceilings;
}

}  // namespace deepinfer
