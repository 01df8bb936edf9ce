// CPU forms of SparseAttentionOp: which slots a row sees, and how threads share the work; the inner
// loops are attention_kernels.h's.
//
// All heads pass over one block of slots before the next is looked at, so that a block stays in the
// cache. Many rows: a thread attends for its rows. Few rows: the threads share the heads of a row,
// and each decodes the row's slots for itself: to hand decoded blocks from core to core takes
// longer.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/scratch_sizes.h"
#include "kernels/cpu/simd.h"
#include "kernels/sparse_attention/cpu/attention_kernels.h"

namespace deepinfer {
namespace {

constexpr int32_t kHeadsPerUnit = 4;  // of work that threads share

int32_t NumBlocks(int32_t num_slots) { return (num_slots + kAttentionBlock - 1) / kAttentionBlock; }

// A row's slots, block by block: block b has sizes[b] filled ones, packed from slot b *
// kAttentionBlock on.
struct RowSlots {
  template <typename Memory>
  RowSlots(Memory& memory, int32_t most_slots)
      : slots(memory.template Get<AttentionSlot>(most_slots)),
        sizes(memory.template Get<int32_t>(NumBlocks(most_slots))) {}

  void Clear() { num_slots = 0; }
  // A record of num_bytes is fetched meanwhile.
  void Add(const AttentionSlot& slot, int64_t num_bytes) {
    for (int64_t i = 0; i < num_bytes; i += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(slot.record + i), _MM_HINT_T0);
    }
    const int32_t block = num_slots / kAttentionBlock;
    if (num_slots % kAttentionBlock == 0) sizes[block] = 0;
    slots[block * kAttentionBlock + sizes[block]++] = slot;
    ++num_slots;
  }
  void AddEmpty() {
    if (num_slots % kAttentionBlock == 0) sizes[num_slots / kAttentionBlock] = 0;
    ++num_slots;
  }
  int32_t num_blocks() const { return NumBlocks(num_slots); }
  const AttentionSlot* Block(int32_t b) const { return slots + int64_t{b} * kAttentionBlock; }

  AttentionSlot* slots;
  int32_t* sizes;         // [blocks]
  int32_t num_slots = 0;  // empty ones too
};

// What a thread has for itself: the slots of its row, a decoded block of them, and what the heads
// that pass over it carry along.
struct RowScratch {
  template <typename Memory>
  RowScratch(Memory& memory, const AttentionKernels& kernels, int32_t most_slots, int32_t num_heads,
             int32_t dim)
      : slots(memory, most_slots),
        block(memory.template Get<uint8_t>(kernels.block_bytes(dim))),
        work(memory.template Get<uint8_t>(kernels.work_bytes(dim))),
        sum(memory.template Get<float>(int64_t{num_heads} * dim)),
        max(memory.template Get<float>(num_heads)),
        denominator(memory.template Get<float>(num_heads)) {}

  RowSlots slots;
  uint8_t *block, *work;
  float* sum;  // [heads, d]
  float *max, *denominator;
};

int32_t MostSlots(const SparseAttentionParams& params) {
  int32_t block_rows = 0;
  for (int32_t i = 0; i < params.num_segments; ++i) {
    const AttentionSegment& segment = params.segments[i];
    if (segment.bidirectional)
      block_rows = std::max(block_rows, segment.row_end - segment.row_begin);
  }
  return params.window + block_rows + (params.selection == nullptr ? 0 : params.topk);
}

// The window's rows at positions [begin, end).
void ListWindow(const AttentionSegment& segment, int32_t begin, int32_t end, int32_t dim,
                RowSlots& out) {
  const int64_t bytes = SwaRecordBytes(dim);
  int32_t p = begin;
  int32_t row = p < segment.first_position ? p % segment.ring_rows : 0;
  for (; p < std::min(end, segment.first_position); ++p) {
    out.Add({segment.ring + row * bytes}, bytes);
    if (++row == segment.ring_rows) row = 0;
  }
  for (; p < end; ++p) out.Add({segment.fresh + (p - segment.first_position) * bytes}, bytes);
}

void ListSlots(const SparseAttentionParams& params, const AttentionSegment& segment, int32_t t,
               RowSlots& out) {
  const int32_t dim = params.head_dim, first = segment.first_position;
  const int32_t num_fresh = segment.row_end - segment.row_begin;
  const int32_t end = segment.bidirectional ? first : first + (t - segment.row_begin) + 1;
  out.Clear();
  ListWindow(segment, std::max({params.window_begin[t], end - params.window, 0}), end, dim, out);
  while (out.num_slots < params.window) out.AddEmpty();
  if (segment.bidirectional) ListWindow(segment, first, first + num_fresh, dim, out);
  if (params.selection == nullptr) return;
  for (int32_t k = 0; k < params.topk; ++k) {
    const int32_t entry = params.selection[int64_t{t} * params.topk + k];
    if (entry < 0) {
      out.AddEmpty();
    } else {
      out.Add({segment.global.GlobalRecord(entry, dim), true}, GlobalRecordBytes(dim));
    }
  }
}

// The heads [begin, end) of row t.
struct HeadRange {
  int32_t t, begin, end;
};

void StartHeads(int32_t num_heads, int32_t dim, const RowScratch& scratch) {
  std::fill_n(scratch.sum, int64_t{num_heads} * dim, 0.0f);
  std::fill_n(scratch.max, num_heads, -1e30f);
  std::fill_n(scratch.denominator, num_heads, 0.0f);
}

// The decoded block of n slots.
void AddBlock(const AttentionKernels& kernels, const SparseAttentionParams& params,
              const HeadRange& range, int32_t n, const RowScratch& scratch) {
  const int32_t dim = params.head_dim;
  for (int32_t head = range.begin; head < range.end;) {
    const int32_t abreast = std::min(range.end - head, kernels.heads_abreast);
    const int32_t h = head - range.begin;
    kernels.add({.q = params.q + (int64_t{range.t} * params.num_heads + head) * dim,
                 .sum = scratch.sum + int64_t{h} * dim,
                 .max = scratch.max + h,
                 .denominator = scratch.denominator + h},
                abreast, scratch.block, n, dim, params.scale, scratch.work);
    head += abreast;
  }
}

void FinishHeads(const SparseAttentionParams& params, const HeadRange& range,
                 const RowScratch& scratch) {
  const int32_t dim = params.head_dim;
  for (int32_t head = range.begin; head < range.end; ++head) {
    const int32_t h = head - range.begin;
    const float denominator = scratch.denominator[h] + std::exp(params.sink[head] - scratch.max[h]);
    const float* sum = scratch.sum + int64_t{h} * dim;
    bf16* out = params.out + (int64_t{range.t} * params.num_heads + head) * dim;
    for (int32_t c = 0; c < dim; c += 8) {
      simd::Store(out + c, _mm256_div_ps(_mm256_loadu_ps(sum + c), _mm256_set1_ps(denominator)));
    }
  }
}

const AttentionSegment& SegmentOf(const SparseAttentionParams& params, int32_t t) {
  const AttentionSegment* segment = params.segments;
  while (t >= segment->row_end) ++segment;
  return *segment;
}

void AttendHeads(const AttentionKernels& kernels, const SparseAttentionParams& params,
                 const HeadRange& range, RowScratch& scratch) {
  const int32_t dim = params.head_dim;
  RowSlots& slots = scratch.slots;
  ListSlots(params, SegmentOf(params, range.t), range.t, slots);
  StartHeads(range.end - range.begin, dim, scratch);
  for (int32_t b = 0; b < slots.num_blocks(); ++b) {
    const int32_t n = slots.sizes[b];
    if (n == 0) continue;
    kernels.decode(slots.Block(b), n, dim, scratch.block, scratch.work);
    AddBlock(kernels, params, range, n, scratch);
  }
  FinishHeads(params, range, scratch);
}

// In units of kHeadsPerUnit heads of a row. Few rows: one stretch of them a thread, so that few
// rows are decoded by more than one.
void Attend(const AttentionKernels& kernels, const Backend& backend,
            const SparseAttentionParams& params) {
  const int64_t num_threads = backend.threads == nullptr ? 1 : backend.threads->num_threads();
  const int64_t row_units = (params.num_heads + kHeadsPerUnit - 1) / kHeadsPerUnit;
  const int64_t step = params.num_tokens >= 2 * num_threads ? row_units : 1;
  const int64_t num_steps = params.num_tokens * row_units / step;
  const int64_t least = step == 1 ? (num_steps + num_threads - 1) / num_threads : 1;
  backend.ParallelFor(num_steps, least, [&](int64_t begin, int64_t end) {
    ScratchFrame frame;
    RowScratch scratch(frame, kernels, MostSlots(params), params.num_heads, params.head_dim);
    for (int64_t unit = begin * step; unit < end * step;) {
      const int64_t t = unit / row_units, first = unit % row_units;
      const int64_t last = std::min(row_units, first + end * step - unit);
      AttendHeads(kernels, params,
                  {.t = static_cast<int32_t>(t),
                   .begin = static_cast<int32_t>(first) * kHeadsPerUnit,
                   .end = std::min(params.num_heads, static_cast<int32_t>(last) * kHeadsPerUnit)},
                  scratch);
      unit += last - first;
    }
  });
}

}  // namespace

void SparseAttentionAvx2(const Backend& backend, const SparseAttentionParams& params) {
  Attend(kAvx2Attention, backend, params);
}

void SparseAttentionAvx512(const Backend& backend, const SparseAttentionParams& params) {
  Attend(kAvx512Attention, backend, params);
}

void SparseAttentionAmx(const Backend& backend, const SparseAttentionParams& params) {
  Attend(kAmxAttention, backend, params);
}

ScratchBytes SparseAttentionScratchBytes(VariantId variant, const SparseAttentionParams& params,
                                         int32_t num_slots) {
  const AttentionKernels& kernels = variant >= kAmxVariant      ? kAmxAttention
                                    : variant == kAvx512Variant ? kAvx512Attention
                                                                : kAvx2Attention;
  ScratchMeter row;
  RowScratch(row, kernels, num_slots, params.num_heads, params.head_dim);
  return OnAllThreads(row.bytes());
}

}  // namespace deepinfer
