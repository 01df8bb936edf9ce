// Plain CPU form of SparseAttentionOp: AVX2 + FMA, F32.
//
// Each slot of a row is decoded once per head group, then two heads at a time pass over the block.
// Every score and every sum has its own fixed order of additions, so neither the grouping of heads
// nor the threads change a bit.
#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/simd.h"
#include "kernels/kv_records/cpu/kv_codes.h"
#include "kernels/sparse_attention/sparse_attention.h"

namespace deepinfer {
namespace {

struct Slot {
  const uint8_t* record = nullptr;  // null = empty
  bool global = false;
};

// Scratch of one (row, head group); kept per thread.
struct Scratch {
  std::vector<Slot> slots;
  std::vector<float> kv;                // [kAttentionBlock, d] decoded slots of a block
  std::vector<float> q;                 // [heads, d]
  std::vector<float> sum;               // [heads, d] sum of probability times kv
  std::vector<float> max, denominator;  // [heads]
};

const uint8_t* SwaRecord(const AttentionSegment& segment, int32_t position, int32_t dim) {
  const int32_t fresh = position - segment.first_position;
  return fresh >= 0 ? segment.fresh + int64_t{fresh} * SwaRecordBytes(dim)
                    : segment.ring + int64_t{position % segment.ring_rows} * SwaRecordBytes(dim);
}

void ListSlots(const SparseAttentionParams& params, const AttentionSegment& segment, int32_t t,
               std::vector<Slot>& slots) {
  const int32_t dim = params.head_dim;
  const int32_t end = segment.bidirectional ? segment.first_position
                                            : segment.first_position + (t - segment.row_begin) + 1;
  slots.clear();
  for (int32_t p = std::max({params.window_begin[t], end - params.window, 0}); p < end; ++p) {
    slots.push_back({SwaRecord(segment, p, dim)});
  }
  slots.resize(static_cast<size_t>(params.window));
  if (segment.bidirectional) {
    for (int32_t r = 0; r < segment.row_end - segment.row_begin; ++r) {
      slots.push_back({SwaRecord(segment, segment.first_position + r, dim)});
    }
  }
  if (params.selection == nullptr) return;
  for (int32_t k = 0; k < params.topk; ++k) {
    const int32_t entry = params.selection[int64_t{t} * params.topk + k];
    slots.push_back(entry < 0 ? Slot{} : Slot{segment.global.GlobalRecord(entry, dim), true});
  }
}

// Decodes the filled slots of [begin, end), packed. Returns how many there are.
int32_t DecodeBlock(const std::vector<Slot>& slots, size_t begin, size_t end, int32_t dim,
                    float* kv) {
  int32_t n = 0;
  for (size_t s = begin; s < end; ++s) {
    if (slots[s].record == nullptr) continue;
    float* out = kv + int64_t{n++} * dim;
    if (slots[s].global) {
      kv_codes::DecodeGlobal(slots[s].record, dim, out);
    } else {
      kv_codes::DecodeSwa(slots[s].record, dim, out);
    }
  }
  return n;
}

// scores[h][s] = q[h] . kv[s] for kHeads heads and kSlots slots.
template <int kHeads, int kSlots>
void DotTile(const float* q, const float* kv, int32_t dim, float* scores) {
  __m256 acc[kHeads][kSlots] = {};
  for (int32_t c = 0; c < dim; c += 8) {
    __m256 qv[kHeads];
    for (int h = 0; h < kHeads; ++h) qv[h] = _mm256_loadu_ps(q + h * dim + c);
    for (int s = 0; s < kSlots; ++s) {
      const __m256 k = _mm256_loadu_ps(kv + s * dim + c);
      for (int h = 0; h < kHeads; ++h) acc[h][s] = _mm256_fmadd_ps(qv[h], k, acc[h][s]);
    }
  }
  for (int h = 0; h < kHeads; ++h) {
    for (int s = 0; s < kSlots; ++s) scores[h * kAttentionBlock + s] = simd::ReduceLanes(acc[h][s]);
  }
}

template <int kHeads>
void Dots(const float* q, const float* kv, int32_t n, int32_t dim, float* scores) {
  int32_t s = 0;
  for (; s + 4 <= n; s += 4) DotTile<kHeads, 4>(q, kv + int64_t{s} * dim, dim, scores + s);
  for (; s < n; ++s) DotTile<kHeads, 1>(q, kv + int64_t{s} * dim, dim, scores + s);
}

// Scores -> BF16-rounded probabilities in place; updates the head's maximum and denominator.
// Returns the factor by which older sums shrink.
float SoftmaxBlock(float* scores, int32_t n, float scale, float& max, float& denominator) {
  float new_max = max;
  for (int32_t s = 0; s < n; ++s) {
    scores[s] *= scale;
    new_max = std::max(new_max, scores[s]);
  }
  const float correction = std::exp(max - new_max);
  float total = 0;
  for (int32_t s = 0; s < n; ++s) {
    const float p = std::exp(scores[s] - new_max);
    total += p;
    scores[s] = ToFloat(ToBf16(p));
  }
  max = new_max;
  denominator = denominator * correction + total;
  return correction;
}

// sum[h] = sum[h] * correction[h] + sum_s p[h][s] * kv[s].
template <int kHeads>
void AddProducts(const float* p, const float* correction, const float* kv, int32_t n, int32_t dim,
                 float* sum) {
  constexpr int kVectors = 4;
  for (int32_t c = 0; c < dim; c += 8 * kVectors) {
    __m256 acc[kHeads][kVectors];
    for (int h = 0; h < kHeads; ++h) {
      const __m256 factor = _mm256_set1_ps(correction[h]);
      for (int i = 0; i < kVectors; ++i) {
        acc[h][i] = _mm256_mul_ps(_mm256_loadu_ps(sum + h * dim + c + 8 * i), factor);
      }
    }
    for (int32_t s = 0; s < n; ++s) {
      __m256 weight[kHeads];
      for (int h = 0; h < kHeads; ++h) weight[h] = _mm256_set1_ps(p[h * kAttentionBlock + s]);
      for (int i = 0; i < kVectors; ++i) {
        const __m256 v = _mm256_loadu_ps(kv + int64_t{s} * dim + c + 8 * i);
        for (int h = 0; h < kHeads; ++h) acc[h][i] = _mm256_fmadd_ps(weight[h], v, acc[h][i]);
      }
    }
    for (int h = 0; h < kHeads; ++h) {
      for (int i = 0; i < kVectors; ++i) {
        _mm256_storeu_ps(sum + h * dim + c + 8 * i, acc[h][i]);
      }
    }
  }
}

// Heads [h, h + kHeads) of the group over one decoded block.
template <int kHeads>
void AddBlock(int32_t h, int32_t n, int32_t dim, float scale, Scratch& scratch) {
  float scores[kHeads * kAttentionBlock];
  float correction[kHeads];
  Dots<kHeads>(scratch.q.data() + int64_t{h} * dim, scratch.kv.data(), n, dim, scores);
  for (int i = 0; i < kHeads; ++i) {
    const auto head = static_cast<size_t>(h + i);
    correction[i] = SoftmaxBlock(scores + i * kAttentionBlock, n, scale, scratch.max[head],
                                 scratch.denominator[head]);
  }
  AddProducts<kHeads>(scores, correction, scratch.kv.data(), n, dim,
                      scratch.sum.data() + int64_t{h} * dim);
}

void StartRow(const bf16* q, int32_t heads, int32_t dim, Scratch& scratch) {
  const auto values = static_cast<size_t>(heads) * static_cast<size_t>(dim);
  scratch.kv.resize(static_cast<size_t>(kAttentionBlock) * static_cast<size_t>(dim));
  scratch.q.resize(values);
  for (size_t i = 0; i < values; ++i) scratch.q[i] = ToFloat(q[i]);
  scratch.sum.assign(values, 0.0f);
  scratch.max.assign(static_cast<size_t>(heads), -1e30f);
  scratch.denominator.assign(static_cast<size_t>(heads), 0.0f);
}

// out[h, :] of heads [head_begin, head_end) of row t.
void AttendRow(const SparseAttentionParams& params, const AttentionSegment& segment, int32_t t,
               int32_t head_begin, int32_t head_end, Scratch& scratch) {
  const int32_t dim = params.head_dim, heads = head_end - head_begin;
  const int64_t first = (int64_t{t} * params.num_heads + head_begin) * dim;
  StartRow(params.q + first, heads, dim, scratch);
  ListSlots(params, segment, t, scratch.slots);
  for (size_t begin = 0; begin < scratch.slots.size(); begin += kAttentionBlock) {
    const size_t end = std::min(scratch.slots.size(), begin + kAttentionBlock);
    const int32_t n = DecodeBlock(scratch.slots, begin, end, dim, scratch.kv.data());
    if (n == 0) continue;
    int32_t h = 0;
    for (; h + 2 <= heads; h += 2) AddBlock<2>(h, n, dim, params.scale, scratch);
    if (h < heads) AddBlock<1>(h, n, dim, params.scale, scratch);
  }
  for (int32_t h = 0; h < heads; ++h) {
    const auto head = static_cast<size_t>(h);
    const float denominator =
        scratch.denominator[head] + std::exp(params.sink[head_begin + h] - scratch.max[head]);
    const float* sum = scratch.sum.data() + int64_t{h} * dim;
    bf16* out = params.out + first + int64_t{h} * dim;
    for (int32_t c = 0; c < dim; ++c) out[c] = ToBf16(sum[c] / denominator);
  }
}

const AttentionSegment& SegmentOf(const SparseAttentionParams& params, int32_t t) {
  const AttentionSegment* segment = params.segments;
  while (t >= segment->row_end) ++segment;
  return *segment;
}

}  // namespace

void SparseAttentionCpu(const Backend& backend, const SparseAttentionParams& params) {
  // Few rows: split the heads too, and decode the slots once per group.
  const int32_t num_threads = backend.threads == nullptr ? 1 : backend.threads->num_threads();
  const bool few_rows = params.num_tokens < 4 * num_threads;
  const int32_t group = few_rows ? std::min(params.num_heads, 16) : params.num_heads;
  const int32_t groups = (params.num_heads + group - 1) / group;
  backend.ParallelFor(int64_t{params.num_tokens} * groups, 1, [&](int64_t begin, int64_t end) {
    static thread_local Scratch scratch;
    for (int64_t item = begin; item < end; ++item) {
      const auto t = static_cast<int32_t>(item / groups);
      const auto head = static_cast<int32_t>(item % groups) * group;
      AttendRow(params, SegmentOf(params, t), t, head, std::min(params.num_heads, head + group),
                scratch);
    }
  });
}

}  // namespace deepinfer
