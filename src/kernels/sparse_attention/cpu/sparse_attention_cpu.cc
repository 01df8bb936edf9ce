// Plain CPU form of SparseAttentionOp: AVX2 + FMA, F32.
//
// Each slot of a row is decoded once, then four heads at a time pass over the slots, block by
// block. Many rows: a thread does both for its rows. Few rows: the threads share the slots of a
// row, then its heads. Every score and every sum has its own fixed order of additions, so neither
// the grouping of heads nor the threads change a bit.
#include <immintrin.h>

#include <algorithm>
#include <cmath>

#include "kernels/cpu/scratch_sizes.h"
#include "kernels/cpu/simd.h"
#include "kernels/kv_records/cpu/kv_codes.h"

namespace deepinfer {
namespace {

struct Slot {
  const uint8_t* record = nullptr;  // null = empty
  bool global = false;
};

// A row's filled slots, decoded block by block: block b has sizes[b] of them, packed from slot
// b * kAttentionBlock on. Slots lie `stride` floats apart: a power of two would put a column of all
// of them into a few sets of the cache.
struct DecodedSlots {
  template <typename Memory>
  DecodedSlots(Memory& memory, int32_t most_slots, int32_t dim)
      : stride(dim + kPadding),
        slots(memory.template Get<Slot>(most_slots)),
        kv(memory.template Get<float>(most_slots * stride)),
        sizes(memory.template Get<int32_t>(NumBlocks(most_slots))) {}

  static constexpr int32_t kPadding = 16;
  static int32_t NumBlocks(int32_t num_slots) {
    return (num_slots + kAttentionBlock - 1) / kAttentionBlock;
  }
  int32_t num_blocks() const { return NumBlocks(num_slots); }
  void Add(const Slot& slot) { slots[num_slots++] = slot; }

  int64_t stride;
  Slot* slots;
  float* kv;       // [slots, stride]
  int32_t* sizes;  // [blocks]
  int32_t num_slots = 0;
};

constexpr int32_t kHeadsAbreast = 4;

// Of the heads that pass together, on every thread.
struct HeadScratch {
  template <typename Memory>
  HeadScratch(Memory& memory, int32_t dim)
      : q(memory.template Get<float>(int64_t{kHeadsAbreast} * dim)),
        sum(memory.template Get<float>(int64_t{kHeadsAbreast} * dim)) {}

  float* q;    // [heads, d]
  float* sum;  // [heads, d] sum of probability times kv
  float max[kHeadsAbreast], denominator[kHeadsAbreast];
};

const uint8_t* SwaRecord(const AttentionSegment& segment, int32_t position, int32_t dim) {
  const int32_t fresh = position - segment.first_position;
  return fresh >= 0 ? segment.fresh + int64_t{fresh} * SwaRecordBytes(dim)
                    : segment.ring + int64_t{position % segment.ring_rows} * SwaRecordBytes(dim);
}

int32_t MostSlots(const SparseAttentionParams& params) {
  int32_t block_rows = 0;
  for (int32_t i = 0; i < params.num_segments; ++i) {
    const AttentionSegment& segment = params.segments[i];
    if (segment.bidirectional)
      block_rows = std::max(block_rows, segment.row_end - segment.row_begin);
  }
  return params.window + block_rows + (params.selection == nullptr ? 0 : params.topk);
}

void ListSlots(const SparseAttentionParams& params, const AttentionSegment& segment, int32_t t,
               DecodedSlots& out) {
  const int32_t dim = params.head_dim;
  const int32_t end = segment.bidirectional ? segment.first_position
                                            : segment.first_position + (t - segment.row_begin) + 1;
  out.num_slots = 0;
  for (int32_t p = std::max({params.window_begin[t], end - params.window, 0}); p < end; ++p) {
    out.Add({SwaRecord(segment, p, dim)});
  }
  while (out.num_slots < params.window) out.Add({});
  if (segment.bidirectional) {
    for (int32_t r = 0; r < segment.row_end - segment.row_begin; ++r) {
      out.Add({SwaRecord(segment, segment.first_position + r, dim)});
    }
  }
  if (params.selection == nullptr) return;
  for (int32_t k = 0; k < params.topk; ++k) {
    const int32_t entry = params.selection[int64_t{t} * params.topk + k];
    out.Add(entry < 0 ? Slot{} : Slot{segment.global.GlobalRecord(entry, dim), true});
  }
}

void DecodeBlock(int32_t dim, int32_t block, const DecodedSlots& out) {
  const int32_t begin = block * kAttentionBlock;
  const int32_t end = std::min(out.num_slots, begin + kAttentionBlock);
  float* kv = out.kv + begin * out.stride;
  int32_t n = 0;
  for (int32_t s = begin; s < end; ++s) {
    const Slot& slot = out.slots[s];
    if (slot.record == nullptr) continue;
    if (slot.global) {
      kv_codes::DecodeGlobal(slot.record, dim, kv);
    } else {
      kv_codes::DecodeSwa(slot.record, dim, kv);
    }
    kv += out.stride;
    ++n;
  }
  out.sizes[block] = n;
}

// scores[h][s] = q[h] . kv[s] for kHeads heads and kSlots slots, which lie `stride` apart.
template <int kHeads, int kSlots>
void DotTile(const float* q, const float* kv, int64_t stride, int32_t dim, float* scores) {
  __m256 acc[kHeads][kSlots] = {};
  for (int32_t c = 0; c < dim; c += 8) {
    __m256 qv[kHeads];
    for (int h = 0; h < kHeads; ++h) qv[h] = _mm256_loadu_ps(q + h * dim + c);
    for (int s = 0; s < kSlots; ++s) {
      const __m256 k = _mm256_loadu_ps(kv + s * stride + c);
      for (int h = 0; h < kHeads; ++h) acc[h][s] = _mm256_fmadd_ps(qv[h], k, acc[h][s]);
    }
  }
  for (int h = 0; h < kHeads; ++h) {
    for (int s = 0; s < kSlots; ++s) scores[h * kAttentionBlock + s] = simd::ReduceLanes(acc[h][s]);
  }
}

template <int kHeads>
void Dots(const float* q, const float* kv, int64_t stride, int32_t n, int32_t dim, float* scores) {
  constexpr int kSlots = kHeads == 4 ? 2 : 4;  // eight sums, or four
  int32_t s = 0;
  for (; s + kSlots <= n; s += kSlots) {
    DotTile<kHeads, kSlots>(q, kv + s * stride, stride, dim, scores + s);
  }
  for (; s < n; ++s) DotTile<kHeads, 1>(q, kv + s * stride, stride, dim, scores + s);
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
void AddProducts(const float* p, const float* correction, const float* kv, int64_t stride,
                 int32_t n, int32_t dim, float* sum) {
  constexpr int kVectors = kHeads == 4 ? 2 : 4;
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
        const __m256 v = _mm256_loadu_ps(kv + s * stride + c + 8 * i);
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

template <int kHeads>
void AddBlock(const float* kv, int64_t stride, int32_t n, int32_t dim, float scale,
              HeadScratch& scratch) {
  float scores[kHeads * kAttentionBlock];
  float correction[kHeads];
  Dots<kHeads>(scratch.q, kv, stride, n, dim, scores);
  for (int h = 0; h < kHeads; ++h) {
    correction[h] = SoftmaxBlock(scores + h * kAttentionBlock, n, scale, scratch.max[h],
                                 scratch.denominator[h]);
  }
  AddProducts<kHeads>(scores, correction, kv, stride, n, dim, scratch.sum);
}

void StartHeads(const bf16* q, int32_t heads, int32_t dim, HeadScratch& scratch) {
  const int64_t values = int64_t{heads} * dim;
  for (int64_t i = 0; i < values; ++i) scratch.q[i] = ToFloat(q[i]);
  std::fill_n(scratch.sum, values, 0.0f);
  std::fill_n(scratch.max, heads, -1e30f);
  std::fill_n(scratch.denominator, heads, 0.0f);
}

// out[t, head .. head + kHeads, :].
template <int kHeads>
void AttendHeads(const SparseAttentionParams& params, int32_t t, int32_t head,
                 const DecodedSlots& decoded, HeadScratch& scratch) {
  const int32_t dim = params.head_dim;
  const int64_t first = (int64_t{t} * params.num_heads + head) * dim;
  StartHeads(params.q + first, kHeads, dim, scratch);
  for (int32_t block = 0; block < decoded.num_blocks(); ++block) {
    const int32_t n = decoded.sizes[block];
    if (n == 0) continue;
    AddBlock<kHeads>(decoded.kv + block * kAttentionBlock * decoded.stride, decoded.stride, n, dim,
                     params.scale, scratch);
  }
  for (int32_t h = 0; h < kHeads; ++h) {
    const float denominator =
        scratch.denominator[h] + std::exp(params.sink[head + h] - scratch.max[h]);
    const float* sum = scratch.sum + int64_t{h} * dim;
    bf16* out = params.out + first + int64_t{h} * dim;
    for (int32_t c = 0; c < dim; ++c) out[c] = ToBf16(sum[c] / denominator);
  }
}

// Groups [begin, end) of kHeadsAbreast heads of row t; the last may be smaller.
void AttendGroups(const SparseAttentionParams& params, int32_t t, int64_t begin, int64_t end,
                  const DecodedSlots& decoded, HeadScratch& scratch) {
  const auto first = static_cast<int32_t>(begin) * kHeadsAbreast;
  const int32_t last = std::min(params.num_heads, static_cast<int32_t>(end) * kHeadsAbreast);
  int32_t head = first;
  for (; head + 4 <= last; head += 4) AttendHeads<4>(params, t, head, decoded, scratch);
  for (; head + 2 <= last; head += 2) AttendHeads<2>(params, t, head, decoded, scratch);
  for (; head < last; ++head) AttendHeads<1>(params, t, head, decoded, scratch);
}

const AttentionSegment& SegmentOf(const SparseAttentionParams& params, int32_t t) {
  const AttentionSegment* segment = params.segments;
  while (t >= segment->row_end) ++segment;
  return *segment;
}

}  // namespace

void SparseAttentionCpu(const Backend& backend, const SparseAttentionParams& params) {
  const int32_t num_threads = backend.threads == nullptr ? 1 : backend.threads->num_threads();
  const int32_t groups = (params.num_heads + kHeadsAbreast - 1) / kHeadsAbreast;
  const int32_t most_slots = MostSlots(params);
  if (params.num_tokens >= 2 * num_threads) {
    backend.ParallelFor(params.num_tokens, 1, [&](int64_t begin, int64_t end) {
      ScratchFrame frame;
      DecodedSlots decoded(frame, most_slots, params.head_dim);
      HeadScratch heads(frame, params.head_dim);
      for (auto t = static_cast<int32_t>(begin); t < end; ++t) {
        ListSlots(params, SegmentOf(params, t), t, decoded);
        for (int32_t b = 0; b < decoded.num_blocks(); ++b) DecodeBlock(params.head_dim, b, decoded);
        AttendGroups(params, t, 0, groups, decoded, heads);
      }
    });
    return;
  }
  ScratchFrame frame;
  DecodedSlots decoded(frame, most_slots, params.head_dim);
  for (int32_t t = 0; t < params.num_tokens; ++t) {
    ListSlots(params, SegmentOf(params, t), t, decoded);
    backend.ParallelFor(decoded.num_blocks(), 1, [&](int64_t begin, int64_t end) {
      for (auto b = static_cast<int32_t>(begin); b < end; ++b) {
        DecodeBlock(params.head_dim, b, decoded);
      }
    });
    backend.ParallelFor(groups, 1, [&](int64_t begin, int64_t end) {
      ScratchFrame piece_frame;
      HeadScratch heads(piece_frame, params.head_dim);
      AttendGroups(params, t, begin, end, decoded, heads);
    });
  }
}

ScratchBytes SparseAttentionScratchBytes(const SparseAttentionParams& params, int32_t num_slots) {
  ScratchMeter meter;
  DecodedSlots(meter, num_slots, params.head_dim);
  HeadScratch(meter, params.head_dim);
  return OnAllThreads(meter.bytes());
}

}  // namespace deepinfer
