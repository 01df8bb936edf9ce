// AVX2 + FMA: sums in F32 over records in BF16, which holds their values exactly.
//
// A decoded block is [slots, stride] dwords. Dword 8 i + lane of a slot holds dims 16 i + lane, in
// its lower half, and 16 i + 8 + lane: a shift and a mask give two vectors of dims in a row.
#include <immintrin.h>

#include "kernels/cpu/simd.h"
#include "kernels/kv_records/cpu/kv_codes.h"
#include "kernels/linear/cpu/decode_rows.h"
#include "kernels/sparse_attention/cpu/attention_kernels.h"
#include "kernels/sparse_attention/sparse_attention.h"

namespace deepinfer {
namespace {

constexpr int32_t kHeadsAbreast = 4;

// Slots a power of two apart would put a column of all of them into a few sets of the cache.
int64_t Stride(int32_t dim) { return dim / 2 + 16; }
int64_t BlockBytes(int32_t dim) {
  return kAttentionBlock * Stride(dim) * static_cast<int64_t>(sizeof(uint32_t));
}
int64_t WorkBytes(int32_t dim) {
  return int64_t{kHeadsAbreast} * dim * static_cast<int64_t>(sizeof(float));
}

// Dims 16 i + 0..7 and 8..15 of a slot.
void StoreDims(uint32_t* out, __m256 first, __m256 second) {
  const __m256i low = _mm256_srli_epi32(_mm256_castps_si256(first), 16);
  _mm256_store_si256(reinterpret_cast<__m256i*>(out),
                     _mm256_blend_epi16(low, _mm256_castps_si256(second), 0xaa));
}
__m256 FirstDims(__m256i pairs) { return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)); }
__m256 SecondDims(__m256i pairs) {
  return _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32(~0xffff)));
}
__m256i LoadPairs(const uint32_t* pairs) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(pairs));
}

void DecodeSwa(const uint8_t* record, int32_t dim, uint32_t* out) {
  for (int32_t i = 0; i < dim; i += 16) {
    const __m256 scale = _mm256_set1_ps(kv_codes::E8m0OrNan(record[dim + i / 32]));
    StoreDims(out + i / 2, _mm256_mul_ps(simd::E4m3Values(record + i), scale),
              _mm256_mul_ps(simd::E4m3Values(record + i + 8), scale));
  }
}

// Groups of 16 e2m1 codes in 8 bytes, with an e4m3 scale.
void DecodeGlobal(const uint8_t* record, int32_t dim, uint32_t* out) {
  for (int32_t g = 0; g < dim / 16; ++g) {
    const auto [first, second] =
        simd::DecodeE2m1Half(record + g * 8, kv_codes::E4m3Table()[record[dim / 2 + g]]);
    StoreDims(out + g * 8, first, second);
  }
}

void DecodeBlock(const AttentionSlot* slots, int32_t n, int32_t dim, void* block, void*) {
  auto* kv = static_cast<uint32_t*>(block);
  for (int32_t s = 0; s < n; ++s, kv += Stride(dim)) {
    if (slots[s].global) {
      DecodeGlobal(slots[s].record, dim, kv);
    } else {
      DecodeSwa(slots[s].record, dim, kv);
    }
  }
}

// scores[h][s] = q[h] . kv[s] for kHeads heads and kSlots slots, which lie `stride` apart.
template <int kHeads, int kSlots>
void DotTile(const float* q, const uint32_t* kv, int64_t stride, int32_t dim, float* scores) {
  __m256 acc[kHeads][kSlots] = {};
  const auto add = [&](const __m256 (&k)[kSlots], int32_t c) {
    for (int h = 0; h < kHeads; ++h) {
      const __m256 qv = _mm256_loadu_ps(q + h * dim + c);
      for (int s = 0; s < kSlots; ++s) acc[h][s] = _mm256_fmadd_ps(qv, k[s], acc[h][s]);
    }
  };
  for (int32_t c = 0; c < dim; c += 16) {
    __m256 k[kSlots];
    for (int s = 0; s < kSlots; ++s) k[s] = FirstDims(LoadPairs(kv + s * stride + c / 2));
    add(k, c);
    for (int s = 0; s < kSlots; ++s) k[s] = SecondDims(LoadPairs(kv + s * stride + c / 2));
    add(k, c + 8);
  }
  for (int h = 0; h < kHeads; ++h) {
    for (int s = 0; s < kSlots; ++s) scores[h * kAttentionBlock + s] = simd::ReduceLanes(acc[h][s]);
  }
}

// Three slots abreast: twelve sums of four heads. Never one alone, whose few sums would wait for
// each other.
template <int kHeads>
void Dots(const float* q, const uint32_t* kv, int32_t n, int32_t dim, float* scores) {
  const int64_t stride = Stride(dim);
  int32_t s = 0;
  for (; n - s == 3 || n - s > 4; s += 3) {
    DotTile<kHeads, 3>(q, kv + s * stride, stride, dim, scores + s);
  }
  for (; n - s >= 2; s += 2) {
    DotTile<kHeads, 2>(q, kv + s * stride, stride, dim, scores + s);
  }
  if (s < n) DotTile<kHeads, 1>(q, kv + s * stride, stride, dim, scores + s);
}

// e^x for x <= 0; NaN stays NaN. What would be no normal number is 0: beside the 1 of the likeliest
// slot no sum can tell, and processors multiply such numbers a hundred times as slowly.
__m256 Probability(__m256 x) {
  const __m256 least = _mm256_set1_ps(-87.0f);
  const __m256 is_tiny = _mm256_cmp_ps(x, least, _CMP_LT_OQ);
  return _mm256_andnot_ps(is_tiny, simd::Exp(_mm256_max_ps(least, x)));  // x where that is NaN
}

// Scores -> BF16-rounded probabilities in place; updates the head's maximum and denominator.
// Returns the factor by which older sums shrink. scores: [kAttentionBlock], its end unspecified.
float SoftmaxBlock(float* scores, int32_t n, float scale, float& max, float& denominator) {
  for (int32_t s = n; s % 8 != 0; ++s) scores[s] = -kv_codes::kInfinity;
  __m256 largest = _mm256_set1_ps(max);
  for (int32_t s = 0; s < n; s += 8) {
    const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(scores + s), _mm256_set1_ps(scale));
    _mm256_storeu_ps(scores + s, scaled);
    largest = _mm256_max_ps(scaled, largest);  // NaN leaves it alone
  }
  float lanes[8];
  _mm256_storeu_ps(lanes, largest);
  float new_max = max;
  for (const float lane : lanes) new_max = lane > new_max ? lane : new_max;
  __m256 total = _mm256_setzero_ps();
  for (int32_t s = 0; s < n; s += 8) {
    const __m256 p =
        Probability(_mm256_sub_ps(_mm256_loadu_ps(scores + s), _mm256_set1_ps(new_max)));
    total = _mm256_add_ps(total, p);
    const __m256i wide = _mm256_cvtepu16_epi32(simd::RoundToBf16(p));
    _mm256_storeu_ps(scores + s, _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16)));
  }
  const float correction = _mm256_cvtss_f32(Probability(_mm256_set1_ps(max - new_max)));
  max = new_max;
  denominator = denominator * correction + simd::ReduceLanes(total);
  return correction;
}

// sum[h] = sum[h] * correction[h] + sum_s p[h][s] * kv[s].
template <int kHeads>
void AddProducts(const float* p, const float* correction, const uint32_t* kv, int32_t n,
                 int32_t dim, float* sum) {
  const int64_t stride = Stride(dim);
  for (int32_t c = 0; c < dim; c += 16) {
    __m256 acc[kHeads][2];
    for (int h = 0; h < kHeads; ++h) {
      const __m256 factor = _mm256_set1_ps(correction[h]);
      acc[h][0] = _mm256_mul_ps(_mm256_loadu_ps(sum + h * dim + c), factor);
      acc[h][1] = _mm256_mul_ps(_mm256_loadu_ps(sum + h * dim + c + 8), factor);
    }
    for (int32_t s = 0; s < n; ++s) {
      const __m256i pairs = LoadPairs(kv + s * stride + c / 2);
      const __m256 first = FirstDims(pairs), second = SecondDims(pairs);
      for (int h = 0; h < kHeads; ++h) {
        const __m256 weight = _mm256_broadcast_ss(p + h * kAttentionBlock + s);
        acc[h][0] = _mm256_fmadd_ps(weight, first, acc[h][0]);
        acc[h][1] = _mm256_fmadd_ps(weight, second, acc[h][1]);
      }
    }
    for (int h = 0; h < kHeads; ++h) {
      _mm256_storeu_ps(sum + h * dim + c, acc[h][0]);
      _mm256_storeu_ps(sum + h * dim + c + 8, acc[h][1]);
    }
  }
}

// q: [kHeads, d] F32.
template <int kHeads>
void AddBlock(const AttentionHeads& heads, const uint32_t* kv, int32_t n, int32_t dim, float scale,
              float* q) {
  for (int64_t i = 0; i < int64_t{kHeads} * dim; i += 8) {
    _mm256_storeu_ps(q + i, simd::Load(heads.q + i));
  }
  float scores[kHeads * kAttentionBlock];
  float correction[kHeads];
  Dots<kHeads>(q, kv, n, dim, scores);
  for (int h = 0; h < kHeads; ++h) {
    correction[h] =
        SoftmaxBlock(scores + h * kAttentionBlock, n, scale, heads.max[h], heads.denominator[h]);
  }
  AddProducts<kHeads>(scores, correction, kv, n, dim, heads.sum);
}

void Add(const AttentionHeads& heads, int32_t num_heads, const void* block, int32_t n, int32_t dim,
         float scale, void* work) {
  const auto* const kv = static_cast<const uint32_t*>(block);
  auto* const q = static_cast<float*>(work);
  for (int32_t h = 0; h < num_heads;) {
    const AttentionHeads left = heads.From(h, dim);
    if (num_heads - h >= 4) {
      AddBlock<4>(left, kv, n, dim, scale, q);
      h += 4;
    } else if (num_heads - h >= 2) {
      AddBlock<2>(left, kv, n, dim, scale, q);
      h += 2;
    } else {
      AddBlock<1>(left, kv, n, dim, scale, q);
      h += 1;
    }
  }
}

}  // namespace

const AttentionKernels kAvx2Attention = {.heads_abreast = kHeadsAbreast,
                                         .block_bytes = BlockBytes,
                                         .work_bytes = WorkBytes,
                                         .decode = DecodeBlock,
                                         .add = Add};

}  // namespace deepinfer
