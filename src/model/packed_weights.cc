#include "model/packed_weights.h"

#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include "kernels/formats/panels.h"

namespace deepinfer {
namespace {

constexpr int64_t kRoundBytes = int64_t{256} << 20;  // between two calls of `progress`
constexpr int32_t kPanelsPerJob = 64;

// Panels [begin, end) of one matrix.
struct Job {
  const Matrix* matrix;
  int32_t begin, end;
  int64_t bytes;
};

bool ScalesAreUsual(const Matrix& w) {
  if (w.scale == nullptr || w.usual_scales) return true;
  const int64_t per_scale = w.format == WeightFormat::kFp8 ? 1024 : 32;
  const uint8_t* const end = w.scale + int64_t{w.rows} * w.cols / per_scale;
  return std::all_of(w.scale, end,
                     [](uint8_t e) { return e >= kUsualScaleMin && e <= kUsualScaleMax; });
}

void ForEachExpertMatrix(ExpertWeights& expert, const std::function<void(Matrix&)>& visit) {
  for (Matrix* m : {&expert.w1, &expert.w3, &expert.w2}) visit(*m);
}

// Every matrix that is multiplied by rows.
void ForEachProduct(ModelWeights& w, const std::function<void(Matrix&)>& visit) {
  const auto block = [&](BlockWeights& b) {
    for (Matrix* m :
         {&b.wq_a, &b.wq_b, &b.wkv, &b.wo_a, &b.wo_b, &b.compressor_wkv, &b.compressor_wgate,
          &b.indexer_wk, &b.indexer_wq_b, &b.indexer_weights_proj, &b.gate, &b.engram.wkv}) {
      visit(*m);
    }
    for (ExpertWeights& expert : b.experts) ForEachExpertMatrix(expert, visit);
    ForEachExpertMatrix(b.shared_experts, visit);
  };
  for (BlockWeights& b : w.layers) block(b);
  for (BlockWeights& b : w.mtp) block(b);
  for (Matrix* m : {&w.head, &w.main_proj, &w.markov_head, &w.confidence_proj}) visit(*m);
}

void RunJobs(const std::vector<Job>& jobs, int64_t total, const PackOptions& options) {
  const Backend backend{.threads = options.pool};
  int64_t done = 0;
  for (size_t first = 0; first < jobs.size();) {
    size_t last = first;
    for (int64_t round = 0; last < jobs.size() && round < kRoundBytes; ++last) {
      round += jobs[last].bytes;
      done += jobs[last].bytes;
    }
    backend.ParallelFor(static_cast<int64_t>(last - first), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Job& job = jobs[first + static_cast<size_t>(i)];
        PackPanels(*job.matrix, job.begin, job.end,
                   const_cast<uint8_t*>(job.matrix->panels) +
                       job.begin * PanelBytes(job.matrix->format, job.matrix->cols));
      }
    });
    first = last;
    if (options.progress) options.progress(done, total);
  }
}

}  // namespace

StatusOr<std::unique_ptr<PackedWeights>> PackedWeights::Pack(const ModelWeights& plain,
                                                             const PackOptions& options) {
  std::unique_ptr<PackedWeights> packed(new PackedWeights);
  packed->weights_ = plain;
  std::vector<Matrix*> matrices;
  ForEachProduct(packed->weights_, [&](Matrix& m) {
    m.usual_scales = ScalesAreUsual(m);
    const int64_t bytes = m.usual_scales ? PackedBytes(m.format, m.rows, m.cols) : 0;
    if (bytes == 0) return;
    matrices.push_back(&m);
    packed->num_bytes_ += bytes;
  });
  if (matrices.empty()) return packed;

  const auto size = static_cast<size_t>(packed->num_bytes_);
  void* const memory =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return ResourceExhausted("weights: cannot map ", packed->num_bytes_,
                             " bytes for the packed copy; --variant ref needs none");
  }
  ::madvise(memory, size, MADV_HUGEPAGE);  // a wish; small pages are as right
  packed->memory_ = static_cast<uint8_t*>(memory);

  std::vector<Job> jobs;
  uint8_t* at = packed->memory_;
  for (Matrix* m : matrices) {
    m->panels = at;
    at += PackedBytes(m->format, m->rows, m->cols);
    const int32_t panels = NumPanels(m->rows);
    for (int32_t begin = 0; begin < panels; begin += kPanelsPerJob) {
      const int32_t end = std::min(panels, begin + kPanelsPerJob);
      jobs.push_back({m, begin, end, (end - begin) * PanelBytes(m->format, m->cols)});
    }
  }
  RunJobs(jobs, packed->num_bytes_, options);
  return packed;
}

PackedWeights::~PackedWeights() {
  if (memory_ != nullptr) ::munmap(memory_, static_cast<size_t>(num_bytes_));
}

}  // namespace deepinfer
