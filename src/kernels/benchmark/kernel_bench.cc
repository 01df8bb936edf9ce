#include "kernels/benchmark/kernel_bench.h"

#include <sys/mman.h>

#include <algorithm>
#include <memory>

#include "kernels/experts/experts.h"
#include "kernels/formats/panels.h"
#include "kernels/linear/linear.h"

namespace deepinfer {
namespace {

constexpr int32_t kDim = 5120, kInner = 2304, kNumExperts = 384, kTopk = 6;

struct Unmap {
  int64_t num_bytes;
  void operator()(uint8_t* memory) const { ::munmap(memory, static_cast<size_t>(num_bytes)); }
};
using Block = std::unique_ptr<uint8_t, Unmap>;

uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Bytes that are weights in every format: from 0x50 to 0x77 they are numbers as e4m3 and BF16
// and usual scales as E8M0.
Block MakeWeights(const Backend& backend, int64_t num_bytes) {
  const auto size = static_cast<size_t>(num_bytes);
  void* const memory =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return {nullptr, {num_bytes}};
  ::madvise(memory, size, MADV_HUGEPAGE);
  auto* const bytes = static_cast<uint8_t*>(memory);
  backend.ParallelFor(num_bytes / 8, 1 << 20, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const uint64_t word =
          (Mix(static_cast<uint64_t>(i)) & 0x2727272727272727u) | 0x5050505050505050u;
      std::memcpy(bytes + i * 8, &word, 8);
    }
  });
  return {bytes, {num_bytes}};
}

// Hands out stretches of the block, turn by turn.
class WeightSupply {
 public:
  WeightSupply(const uint8_t* memory, int64_t num_bytes) : memory_(memory), size_(num_bytes) {}

  // A matrix in panels; its plain view has the right shape and the wrong weights.
  Matrix Next(WeightFormat format, int32_t rows, int32_t cols) {
    const int64_t bytes = PackedBytes(format, rows, cols);
    CHECK_LE(bytes, size_);
    if (at_ + bytes > size_) at_ = 0;
    const uint8_t* const data = memory_ + at_;
    at_ += (bytes + 4095) / 4096 * 4096;
    return {.format = format,
            .rows = rows,
            .cols = cols,
            .data = data,
            .scale = memory_,
            .panels = data};
  }

 private:
  const uint8_t* const memory_;
  const int64_t size_;
  int64_t at_ = 0;
};

std::vector<bf16> MakeRows(int64_t count) {
  std::vector<bf16> x(static_cast<size_t>(count));
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = ToBf16(static_cast<float>(static_cast<int>(Mix(i) % 15) - 7) * 0.125f);
  }
  return x;
}

class Bench {
 public:
  Bench(const Backend& backend, const KernelBenchOptions& options, Clock& clock,
        WeightSupply supply, const std::function<void(const KernelFigure&)>& done)
      : backend_(backend), options_(options), clock_(clock), supply_(supply), done_(done) {}

  std::vector<KernelFigure> All() {
    for (const int32_t num_rows : options_.row_counts) {
      Product("wq_a", WeightFormat::kFp8, 1280, kDim, num_rows);
      Product("wq_b", WeightFormat::kFp8, 32768, 1280, num_rows);
      Product("wo_a, one group", WeightFormat::kFp8, 1024, 4096, num_rows);
      Product("wo_b", WeightFormat::kFp8, kDim, 8192, num_rows);
      Product("expert up", WeightFormat::kFp4, kInner, kDim, num_rows);
      Product("expert down", WeightFormat::kFp4, kDim, kInner, num_rows);
      Product("gate", WeightFormat::kBf16, kNumExperts, kDim, num_rows);
      Product("head, a sixteenth", WeightFormat::kBf16, 8080, kDim, num_rows);
      RoutedExperts(num_rows);
    }
    return std::move(figures_);
  }

 private:
  // Calls `work`, which returns the bytes it reads, for the time of a case; keeps the median time
  // and the mean of the bytes.
  template <typename Work>
  void Time(KernelFigure figure, const Work& work) {
    work();
    std::vector<double> us;
    int64_t bytes = 0;
    const MonotonicTime start = clock_.Now();
    while (us.size() < 5 || Seconds(clock_.Now() - start) < options_.seconds_per_case) {
      const MonotonicTime begin = clock_.Now();
      bytes += work();
      us.push_back(Seconds(clock_.Now() - begin) * 1e6);
    }
    std::nth_element(us.begin(), us.begin() + std::ssize(us) / 2, us.end());
    figure.us = us[us.size() / 2];
    figure.bytes = bytes / std::ssize(us);
    if (done_) done_(figure);
    figures_.push_back(std::move(figure));
  }

  void Product(std::string name, WeightFormat format, int32_t rows, int32_t cols,
               int32_t num_rows) {
    const std::vector<bf16> x = MakeRows(int64_t{num_rows} * cols);
    std::vector<float> out(static_cast<size_t>(num_rows) * static_cast<size_t>(rows));
    Time({.name = std::move(name), .num_rows = num_rows, .macs = int64_t{num_rows} * rows * cols},
         [&] {
           Linear(backend_, {.num_tokens = num_rows,
                             .weight = supply_.Next(format, rows, cols),
                             .x = x.data(),
                             .x_stride = cols,
                             .out_f32 = out.data(),
                             .out_stride = rows});
           return PackedBytes(format, rows, cols);
         });
  }

  // All 384 experts, each row's six drawn anew for every call.
  void RoutedExperts(int32_t num_rows) {
    const std::vector<bf16> x = MakeRows(int64_t{num_rows} * kDim);
    const auto slots = static_cast<size_t>(num_rows) * kTopk;
    std::vector<bf16> y(slots * kDim);
    std::vector<float> weights(slots, 0.25f);
    std::vector<int32_t> chosen(slots);
    uint64_t draw = 1;
    std::vector<ExpertMatrices> experts;
    for (int32_t e = 0; e < kNumExperts; ++e) {
      experts.push_back({.w1 = supply_.Next(WeightFormat::kFp4, kInner, kDim),
                         .w3 = supply_.Next(WeightFormat::kFp4, kInner, kDim),
                         .w2 = supply_.Next(WeightFormat::kFp4, kDim, kInner)});
    }
    const int64_t expert_bytes = 2 * PackedBytes(WeightFormat::kFp4, kInner, kDim) +
                                 PackedBytes(WeightFormat::kFp4, kDim, kInner);
    Time({.name = "experts, top 6 of 384",
          .num_rows = num_rows,
          .macs = int64_t{num_rows} * kTopk * 3 * kDim * kInner},
         [&] {
           std::vector<bool> used(kNumExperts);
           for (size_t slot = 0; slot < slots; ++slot) {
             // One of 64 experts for each of the six, so that a row's are distinct.
             const auto base = static_cast<int32_t>(slot % kTopk) * (kNumExperts / kTopk);
             chosen[slot] = base + static_cast<int32_t>(Mix(draw++) % (kNumExperts / kTopk));
             used[static_cast<size_t>(chosen[slot])] = true;
           }
           Experts(backend_, {.num_tokens = num_rows,
                              .dim = kDim,
                              .inner = kInner,
                              .num_experts = kNumExperts,
                              .topk = kTopk,
                              .limit = 10,
                              .x = x.data(),
                              .experts = chosen.data(),
                              .weights = weights.data(),
                              .matrices = experts.data(),
                              .y = y.data()});
           return std::count(used.begin(), used.end(), true) * expert_bytes;
         });
  }

  const Backend backend_;
  const KernelBenchOptions& options_;
  Clock& clock_;
  WeightSupply supply_;
  const std::function<void(const KernelFigure&)>& done_;
  std::vector<KernelFigure> figures_;
};

}  // namespace

StatusOr<KernelBench> BenchKernels(const Backend& backend, const KernelBenchOptions& options,
                                   Clock& clock,
                                   const std::function<void(const KernelFigure&)>& done) {
  const Block weights = MakeWeights(backend, options.weight_bytes);
  if (weights == nullptr) {
    return ResourceExhausted("bench: cannot map ", options.weight_bytes,
                             " bytes of weights; give a smaller --weight-bytes");
  }
  KernelBench bench;
  bench.ceilings = MeasureCeilings(backend, weights.get(), options.weight_bytes, clock);
  bench.figures = Bench(backend, options, clock, {weights.get(), options.weight_bytes}, done).All();
  return bench;
}

}  // namespace deepinfer
