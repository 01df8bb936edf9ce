// kernels/sparse_attention/cpu/attention_kernels.h: the inner loops of sparse attention, one set an
// instruction set.
//
// A row's slots are decoded a block of kAttentionBlock at a time, into whatever form its set likes;
// then groups of heads pass over the block. Sums of one score and of one output have an order of
// their own, which depends on the block's slots alone: neither the grouping of heads nor the
// threads change a bit.
#pragma once

#include <cstdint>

#include "kernels/formats/number_formats.h"

namespace deepinfer {

struct AttentionSlot {
  const uint8_t* record = nullptr;  // null = empty
  bool global = false;              // a compressed entry's record, else a window row's
};

// What the online softmax of some heads carries from block to block. Head h of a group is at
// q + h * dim, sum + h * dim, max[h], denominator[h].
struct AttentionHeads {
  const bf16* q = nullptr;
  float* sum = nullptr;  // of probability times kv
  float* max = nullptr;
  float* denominator = nullptr;

  AttentionHeads From(int32_t head, int32_t dim) const {
    return {q + int64_t{head} * dim, sum + int64_t{head} * dim, max + head, denominator + head};
  }
};

struct AttentionKernels {
  int32_t heads_abreast;  // most heads in a call
  // Of a decoded block, and of what a call needs for itself; both aligned to 64 bytes.
  int64_t (*block_bytes)(int32_t dim);
  int64_t (*work_bytes)(int32_t dim);
  // slots: n filled ones, 1 <= n <= kAttentionBlock.
  void (*decode)(const AttentionSlot* slots, int32_t n, int32_t dim, void* block, void* work);
  // One step of the online softmax for 1..heads_abreast heads; n as decoded.
  void (*add)(const AttentionHeads& heads, int32_t num_heads, const void* block, int32_t n,
              int32_t dim, float scale, void* work);
};

extern const AttentionKernels kAvx2Attention;
extern const AttentionKernels kAvx512Attention;
extern const AttentionKernels kAmxAttention;

}  // namespace deepinfer
