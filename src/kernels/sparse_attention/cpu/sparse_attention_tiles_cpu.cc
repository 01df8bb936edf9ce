// SparseAttentionOp on the tiles of panel_kernels.h: VDPBF16PS for both products.
//
// KV values and queries are BF16 and so are the probabilities, so all products are exact. A block
// of up to 64 filled slots is decoded once for a group of heads, in two orders: 16 slots a panel
// with columns = dims (scores), and 16 dims a panel with columns = slots (the weighted sum). Sums
// of one (row, head) have the order of its slots, whatever is computed beside it.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/exp.h"
#include "kernels/cpu/scratch.h"
#include "kernels/linear/cpu/decode_rows.h"
#include "kernels/linear/cpu/panel_kernels.h"
#include "kernels/sparse_attention/cpu/slots.h"

namespace deepinfer {
namespace {

constexpr int32_t kBlock = kAttentionBlock;

// Memory of one (row, head group); kept per thread.
struct Scratch {
  std::vector<AttentionSlot> slots;
  AlignedScratch rows;                  // [kBlock, d] BF16: decoded slots
  AlignedScratch keys, values;          // the same as panels of slots, and of dims
  AlignedScratch ones;                  // [max groups, 16] scales of the panels
  AlignedScratch scores;                // [heads, kBlock]
  AlignedScratch probabilities;         // [heads, kBlock] BF16
  AlignedScratch sums;                  // [heads, d]
  std::vector<float> max, denominator;  // [heads]
};

// Upper halves of eight floats whose lower halves are zero (NaN stays NaN).
void StoreExact(__m256 x, bf16* out) {
  const __m256i upper = _mm256_srli_epi32(_mm256_castps_si256(x), 16);
  _mm_storeu_si128(
      reinterpret_cast<__m128i*>(out),
      _mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256(upper, 1)));
}

void DecodeSwa(const uint8_t* record, int32_t dim, bf16* out) {
  for (int32_t i = 0; i < dim; i += 32) {
    const uint8_t e = record[dim + i / 32];
    const __m256 factor = _mm256_set1_ps(e == kE8m0Nan ? NAN : E8m0ToFloat(e) * 256.0f);
    for (int32_t j = i; j < i + 32; j += 8)
      StoreExact(simd::DecodeE4m3(record + j, factor), out + j);
  }
}

void DecodeGlobal(const uint8_t* record, int32_t dim, bf16* out) {
  for (int32_t i = 0; i < dim; i += 16) {
    float values[16];
    simd::DecodeE2m1Half(record + i / 2, E4m3ToFloat(record[dim / 2 + i / 16]), values);
    for (int32_t j = 0; j < 16; j += 8) StoreExact(_mm256_loadu_ps(values + j), out + i + j);
  }
}

// Decodes the filled slots of [begin, end), packed; returns how many there are. Rows up to the next
// multiple of 16 become zeros.
int32_t DecodeBlock(const std::vector<AttentionSlot>& slots, size_t begin, size_t end, int32_t dim,
                    bf16* rows) {
  int32_t n = 0;
  for (size_t s = begin; s < end; ++s) {
    if (slots[s].record == nullptr) continue;
    bf16* const out = rows + int64_t{n++} * dim;
    if (slots[s].global) {
      DecodeGlobal(slots[s].record, dim, out);
    } else {
      DecodeSwa(slots[s].record, dim, out);
    }
  }
  std::fill(rows + int64_t{n} * dim, rows + int64_t{kBlock} * dim, bf16{0});
  return n;
}

// rows [kBlock, d] -> panels of 16 slots, columns = dims.
void MakeKeyPanels(const bf16* rows, int32_t dim, uint32_t* keys) {
  for (int32_t s = 0; s < kBlock; ++s) {
    uint32_t* const panel = keys + int64_t{s / kPanelRows} * dim / 2 * kPanelRows + s % kPanelRows;
    const bf16* const row = rows + int64_t{s} * dim;
    for (int32_t pair = 0; pair < dim / 2; ++pair) {
      panel[pair * kPanelRows] = row[2 * pair].bits | uint32_t{row[2 * pair + 1].bits} << 16;
    }
  }
}

// rows [kBlock, d] -> panels of 16 dims, columns = slots.
void MakeValuePanels(const bf16* rows, int32_t dim, uint32_t* values) {
  for (int32_t d = 0; d < dim; d += kPanelRows) {
    for (int32_t pair = 0; pair < kBlock / 2; ++pair, values += kPanelRows) {
      const bf16* const even = rows + int64_t{2 * pair} * dim + d;
      for (int32_t i = 0; i < kPanelRows; ++i) {
        values[i] = even[i].bits | uint32_t{even[dim + i].bits} << 16;
      }
    }
  }
}

// out[h][panel][16] += x[h] . panels for all heads, six at a time and four panels at a time.
void Multiply(const PanelKernels& kernels, DecodedPanels w, int32_t num_panels, const bf16* x,
              int64_t x_stride, int32_t heads, float* out, int64_t out_stride) {
  const int64_t panel_bytes = int64_t{w.num_groups} * kGroupCols * kPanelRows * 2;
  for (int32_t p = 0; p < num_panels;) {
    const int32_t count = num_panels - p >= kernels.tile_panels ? kernels.tile_panels : 1;
    DecodedPanels part = w;
    part.weights = static_cast<uint8_t*>(w.weights) + p * panel_bytes;
    for (int32_t h = 0; h < heads;) {
      const int32_t rows = std::min(heads - h, kernels.tile_rows);
      kernels.tile(part, count, {x + h * x_stride, x_stride}, rows,
                   out + h * out_stride + int64_t{p} * kPanelRows, out_stride);
      h += rows;
    }
    p += count;
  }
}

// Scores of one head -> BF16 probabilities, zeros behind them; updates its maximum and denominator.
// Returns the factor by which older sums shrink.
float SoftmaxBlock(float* scores, int32_t n, float scale, float& max, float& denominator,
                   bf16* probabilities) {
  float new_max = max;
  for (int32_t s = 0; s < n; ++s) {
    scores[s] *= scale;
    new_max = std::max(new_max, scores[s]);
  }
  std::fill(scores + n, scores + kBlock, -INFINITY);
  __m256 total = _mm256_setzero_ps();
  for (int32_t s = 0; s < kBlock; s += 8) {
    const __m256 p =
        simd::ExpOfNegative(_mm256_sub_ps(_mm256_loadu_ps(scores + s), _mm256_set1_ps(new_max)));
    total = _mm256_add_ps(total, p);
    simd::Store(probabilities + s, p);
  }
  const float correction = std::exp(max - new_max);
  max = new_max;
  denominator = denominator * correction + simd::ReduceLanes(total);
  return correction;
}

class RowGroup {
 public:
  RowGroup(const PanelKernels& kernels, const SparseAttentionParams& params, int32_t t,
           int32_t head_begin, int32_t heads, Scratch& scratch)
      : kernels_(kernels),
        params_(params),
        dim_(params.head_dim),
        head_begin_(head_begin),
        heads_(heads),
        first_((int64_t{t} * params.num_heads + head_begin) * params.head_dim),
        scratch_(scratch),
        sums_(scratch.sums.Get<float>(int64_t{heads} * dim_)),
        ones_(scratch.ones.Get<float>(int64_t{4} * (dim_ / kGroupCols + 2) * kPanelRows)) {
    ListSlots(params, SegmentOf(params, t), t, scratch.slots);
    std::fill_n(ones_, int64_t{4} * (dim_ / kGroupCols + 2) * kPanelRows, 1.0f);
    std::fill_n(sums_, int64_t{heads} * dim_, 0.0f);
    scratch.max.assign(static_cast<size_t>(heads), -1e30f);
    scratch.denominator.assign(static_cast<size_t>(heads), 0.0f);
  }

  void Attend() {
    const std::vector<AttentionSlot>& slots = scratch_.slots;
    bf16* const rows = scratch_.rows.Get<bf16>(int64_t{kBlock} * dim_);
    for (size_t begin = 0; begin < slots.size(); begin += kBlock) {
      const size_t end = std::min(slots.size(), begin + kBlock);
      const int32_t n = DecodeBlock(slots, begin, end, dim_, rows);
      if (n > 0) AddBlock(rows, n);
    }
    for (int32_t h = 0; h < heads_; ++h) {
      const auto head = static_cast<size_t>(h);
      const float denominator =
          scratch_.denominator[head] + std::exp(params_.sink[head_begin_ + h] - scratch_.max[head]);
      const float* const sum = sums_ + int64_t{h} * dim_;
      bf16* const out = params_.out + first_ + int64_t{h} * dim_;
      for (int32_t c = 0; c < dim_; ++c) out[c] = ToBf16(sum[c] / denominator);
    }
  }

 private:
  void AddBlock(const bf16* rows, int32_t n) {
    const int64_t pairs = int64_t{kBlock} * dim_ / 2;
    uint32_t* const keys = scratch_.keys.Get<uint32_t>(pairs);
    uint32_t* const values = scratch_.values.Get<uint32_t>(pairs);
    float* const scores = scratch_.scores.Get<float>(int64_t{heads_} * kBlock);
    bf16* const p = scratch_.probabilities.Get<bf16>(int64_t{heads_} * kBlock);
    MakeKeyPanels(rows, dim_, keys);
    std::fill_n(scores, int64_t{heads_} * kBlock, 0.0f);
    Multiply(kernels_, {keys, ones_, dim_ / kGroupCols}, (n + kPanelRows - 1) / kPanelRows,
             params_.q + first_, dim_, heads_, scores, kBlock);
    for (int32_t h = 0; h < heads_; ++h) {
      const auto head = static_cast<size_t>(h);
      const float correction =
          SoftmaxBlock(scores + h * kBlock, n, params_.scale, scratch_.max[head],
                       scratch_.denominator[head], p + h * kBlock);
      if (correction == 1.0f) continue;
      for (int32_t c = 0; c < dim_; ++c) sums_[int64_t{h} * dim_ + c] *= correction;
    }
    MakeValuePanels(rows, dim_, values);
    Multiply(kernels_, {values, ones_, kBlock / kGroupCols}, dim_ / kPanelRows, p, kBlock, heads_,
             sums_, dim_);
  }

  const PanelKernels& kernels_;
  const SparseAttentionParams& params_;
  const int32_t dim_, head_begin_, heads_;
  const int64_t first_;  // element of q and out
  Scratch& scratch_;
  float* const sums_;
  float* const ones_;
};

}  // namespace

void SparseAttentionAvx512(const Backend& backend, const SparseAttentionParams& params) {
  // Few rows: the threads share a row's heads, and each decodes the slots for itself.
  const int32_t num_threads = backend.threads == nullptr ? 1 : backend.threads->num_threads();
  const int32_t least = 2 * kAvx512Panels.tile_rows;
  const int32_t shared = std::max(least, (params.num_heads + num_threads - 1) / num_threads);
  const bool few_rows = params.num_tokens < 2 * num_threads;
  const int32_t group = few_rows ? std::min(params.num_heads, shared) : params.num_heads;
  const int32_t groups = (params.num_heads + group - 1) / group;
  backend.ParallelFor(int64_t{params.num_tokens} * groups, 1, [&](int64_t begin, int64_t end) {
    static thread_local Scratch scratch;
    for (int64_t item = begin; item < end; ++item) {
      const auto t = static_cast<int32_t>(item / groups);
      const auto head = static_cast<int32_t>(item % groups) * group;
      RowGroup(kAvx512Panels, params, t, head, std::min(group, params.num_heads - head), scratch)
          .Attend();
    }
  });
}

}  // namespace deepinfer
