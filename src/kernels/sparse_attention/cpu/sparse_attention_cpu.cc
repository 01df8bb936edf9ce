// CPU forms of SparseAttentionOp: which slots a row sees, and how threads share the work; the inner
// loops are attention_kernels.h's.
//
// All heads pass over one block of slots before the next is looked at, so that a block stays in the
// cache. Many rows: a thread decodes and attends for its rows. Few rows: the threads share the
// blocks of a row, then its heads.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/scratch_sizes.h"
#include "kernels/cpu/simd.h"
#include "kernels/sparse_attention/cpu/attention_kernels.h"

namespace deepinfer {
namespace {

constexpr int32_t kHeadsAbreast = AttentionKernels::kHeadsAbreast;

int32_t NumBlocks(int32_t num_slots) { return (num_slots + kAttentionBlock - 1) / kAttentionBlock; }

// A row's slots, block by block: block b has sizes[b] filled ones, packed from slot b *
// kAttentionBlock on.
struct RowSlots {
  template <typename Memory>
  RowSlots(Memory& memory, int32_t most_slots)
      : slots(memory.template Get<AttentionSlot>(most_slots)),
        sizes(memory.template Get<int32_t>(NumBlocks(most_slots))) {}

  void Clear() { num_slots = 0; }
  void Add(const AttentionSlot& slot) {
    const int32_t block = num_slots / kAttentionBlock;
    if (num_slots % kAttentionBlock == 0) sizes[block] = 0;
    if (slot.record != nullptr) slots[block * kAttentionBlock + sizes[block]++] = slot;
    ++num_slots;
  }
  int32_t num_blocks() const { return NumBlocks(num_slots); }
  const AttentionSlot* Block(int32_t b) const { return slots + int64_t{b} * kAttentionBlock; }

  AttentionSlot* slots;
  int32_t* sizes;         // [blocks]
  int32_t num_slots = 0;  // empty ones too
};

// Blocks of decoded slots.
struct DecodedBlocks {
  template <typename Memory>
  DecodedBlocks(Memory& memory, const AttentionKernels& kernels, int32_t num_blocks, int32_t dim)
      : block_bytes((kernels.block_bytes(dim) + 63) / 64 * 64),
        bytes(memory.template Get<uint8_t>(num_blocks * block_bytes)) {}

  void* Block(int32_t b) const { return bytes + b * block_bytes; }

  int64_t block_bytes;
  uint8_t* bytes;
};

// Of the heads that pass over a row's blocks, and what the kernels need meanwhile.
struct HeadScratch {
  template <typename Memory>
  HeadScratch(Memory& memory, const AttentionKernels& kernels, int32_t num_heads, int32_t dim)
      : sum(memory.template Get<float>(int64_t{num_heads} * dim)),
        max(memory.template Get<float>(num_heads)),
        denominator(memory.template Get<float>(num_heads)),
        work(memory.template Get<uint8_t>(kernels.work_bytes(dim))) {}

  float* sum;  // [heads, d]
  float *max, *denominator;
  uint8_t* work;
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
               RowSlots& out) {
  const int32_t dim = params.head_dim;
  const int32_t end = segment.bidirectional ? segment.first_position
                                            : segment.first_position + (t - segment.row_begin) + 1;
  out.Clear();
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
    out.Add(entry < 0 ? AttentionSlot{}
                      : AttentionSlot{segment.global.GlobalRecord(entry, dim), true});
  }
}

// The heads [begin, end) of row t.
struct HeadRange {
  int32_t t, begin, end;
};

void StartHeads(int32_t num_heads, int32_t dim, const HeadScratch& scratch) {
  std::fill_n(scratch.sum, int64_t{num_heads} * dim, 0.0f);
  std::fill_n(scratch.max, num_heads, -1e30f);
  std::fill_n(scratch.denominator, num_heads, 0.0f);
}

void AddBlock(const AttentionKernels& kernels, const SparseAttentionParams& params,
              const HeadRange& range, const void* block, int32_t n, const HeadScratch& scratch) {
  const int32_t dim = params.head_dim;
  for (int32_t head = range.begin; head < range.end;) {
    const int32_t left = range.end - head;
    const int32_t abreast = left >= kHeadsAbreast ? kHeadsAbreast : left >= 2 ? 2 : 1;
    const int32_t h = head - range.begin;
    kernels.add({.q = params.q + (int64_t{range.t} * params.num_heads + head) * dim,
                 .sum = scratch.sum + int64_t{h} * dim,
                 .max = scratch.max + h,
                 .denominator = scratch.denominator + h},
                abreast, block, n, dim, params.scale, scratch.work);
    head += abreast;
  }
}

void FinishHeads(const SparseAttentionParams& params, const HeadRange& range,
                 const HeadScratch& scratch) {
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

// A thread does all of a row: one block at a time is enough.
void AttendRows(const AttentionKernels& kernels, const Backend& backend,
                const SparseAttentionParams& params, int32_t most_slots) {
  backend.ParallelFor(params.num_tokens, 1, [&](int64_t begin, int64_t end) {
    ScratchFrame frame;
    RowSlots slots(frame, most_slots);
    const DecodedBlocks decoded(frame, kernels, 1, params.head_dim);
    const HeadScratch heads(frame, kernels, params.num_heads, params.head_dim);
    for (auto t = static_cast<int32_t>(begin); t < end; ++t) {
      ListSlots(params, SegmentOf(params, t), t, slots);
      const HeadRange all = {t, 0, params.num_heads};
      StartHeads(params.num_heads, params.head_dim, heads);
      for (int32_t b = 0; b < slots.num_blocks(); ++b) {
        const int32_t n = slots.sizes[b];
        if (n == 0) continue;
        kernels.decode(slots.Block(b), 0, n, params.head_dim, decoded.Block(0), heads.work);
        AddBlock(kernels, params, all, decoded.Block(0), n, heads);
      }
      FinishHeads(params, all, heads);
    }
  });
}

// The threads share a row: its blocks, then its heads.
void AttendRow(const AttentionKernels& kernels, const Backend& backend,
               const SparseAttentionParams& params, int32_t t, RowSlots& slots,
               const DecodedBlocks& decoded) {
  const int32_t dim = params.head_dim;
  const int64_t num_threads = backend.threads == nullptr ? 1 : backend.threads->num_threads();
  ListSlots(params, SegmentOf(params, t), t, slots);
  constexpr int32_t kAbreast = AttentionKernels::kDecodeAbreast;
  constexpr int32_t kParts = kAttentionBlock / kAbreast;
  backend.ParallelFor(slots.num_blocks() * kParts, 1, [&](int64_t begin, int64_t end) {
    ScratchFrame frame;
    auto* const work = frame.Get<uint8_t>(kernels.work_bytes(dim));
    for (auto part = static_cast<int32_t>(begin); part < end; ++part) {
      const int32_t b = part / kParts, first = part % kParts * kAbreast;
      const int32_t last = std::min(slots.sizes[b], first + kAbreast);
      if (first < last) kernels.decode(slots.Block(b), first, last, dim, decoded.Block(b), work);
    }
  });
  const int64_t groups = (params.num_heads + kHeadsAbreast - 1) / kHeadsAbreast;
  backend.ParallelFor(groups, (groups + num_threads - 1) / num_threads,
                      [&](int64_t begin, int64_t end) {
                        const HeadRange range = {
                            t, static_cast<int32_t>(begin) * kHeadsAbreast,
                            std::min(params.num_heads, static_cast<int32_t>(end) * kHeadsAbreast)};
                        const int32_t num_heads = range.end - range.begin;
                        ScratchFrame frame;
                        const HeadScratch heads(frame, kernels, num_heads, dim);
                        StartHeads(num_heads, dim, heads);
                        for (int32_t b = 0; b < slots.num_blocks(); ++b) {
                          if (slots.sizes[b] == 0) continue;
                          AddBlock(kernels, params, range, decoded.Block(b), slots.sizes[b], heads);
                        }
                        FinishHeads(params, range, heads);
                      });
}

void Attend(const AttentionKernels& kernels, const Backend& backend,
            const SparseAttentionParams& params) {
  const int32_t num_threads = backend.threads == nullptr ? 1 : backend.threads->num_threads();
  const int32_t most_slots = MostSlots(params);
  if (params.num_tokens >= 2 * num_threads) {
    return AttendRows(kernels, backend, params, most_slots);
  }
  ScratchFrame frame;
  RowSlots slots(frame, most_slots);
  const DecodedBlocks decoded(frame, kernels, NumBlocks(most_slots), params.head_dim);
  for (int32_t t = 0; t < params.num_tokens; ++t) {
    AttendRow(kernels, backend, params, t, slots, decoded);
  }
}

}  // namespace

void SparseAttentionAvx2(const Backend& backend, const SparseAttentionParams& params) {
  Attend(kAvx2Attention, backend, params);
}

void SparseAttentionAvx512(const Backend& backend, const SparseAttentionParams& params) {
  Attend(kAvx512Attention, backend, params);
}

ScratchBytes SparseAttentionScratchBytes(VariantId variant, const SparseAttentionParams& params,
                                         int32_t num_slots) {
  const AttentionKernels& kernels = variant >= kAvx512Variant ? kAvx512Attention : kAvx2Attention;
  ScratchMeter heads, row, shared;
  HeadScratch(heads, kernels, params.num_heads, params.head_dim);
  RowSlots(row, num_slots);
  DecodedBlocks(row, kernels, 1, params.head_dim);
  RowSlots(shared, num_slots);
  DecodedBlocks(shared, kernels, NumBlocks(num_slots), params.head_dim);
  ScratchBytes bytes = OnAllThreads(heads.bytes()).Under(shared.bytes());
  bytes.Include(OnAllThreads(row.bytes() + heads.bytes()));
  return bytes;
}

}  // namespace deepinfer
