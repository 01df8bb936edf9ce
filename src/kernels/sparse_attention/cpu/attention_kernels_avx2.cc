// AVX2 + FMA, F32. A decoded block is [slots, stride] F32.
#include <immintrin.h>

#include "kernels/cpu/simd.h"
#include "kernels/kv_records/cpu/kv_codes.h"
#include "kernels/linear/cpu/decode_rows.h"
#include "kernels/sparse_attention/cpu/attention_kernels.h"
#include "kernels/sparse_attention/sparse_attention.h"

namespace deepinfer {
namespace {

constexpr int32_t kHeadsAbreast = AttentionKernels::kHeadsAbreast;

// Slots a power of two apart would put a column of all of them into a few sets of the cache.
int64_t Stride(int32_t dim) { return dim + 16; }
int64_t BlockBytes(int32_t dim) {
  return kAttentionBlock * Stride(dim) * static_cast<int64_t>(sizeof(float));
}
int64_t WorkBytes(int32_t dim) {
  return int64_t{kHeadsAbreast} * dim * static_cast<int64_t>(sizeof(float));
}

void DecodeSwa(const uint8_t* record, int32_t dim, float* out) {
  for (int32_t g = 0; g < dim / 32; ++g) {
    const __m256 scale = _mm256_set1_ps(kv_codes::E8m0OrNan(record[dim + g]));
    for (int32_t i = g * 32; i < (g + 1) * 32; i += 8) {
      _mm256_storeu_ps(out + i, _mm256_mul_ps(simd::E4m3Values(record + i), scale));
    }
  }
}

// Groups of 16 e2m1 codes in 8 bytes, with an e4m3 scale.
void DecodeGlobal(const uint8_t* record, int32_t dim, float* out) {
  for (int32_t g = 0; g < dim / 16; ++g) {
    simd::DecodeE2m1Half(record + g * 8, kv_codes::E4m3Table()[record[dim / 2 + g]], out + g * 16);
  }
}

void DecodeBlock(const AttentionSlot* slots, int32_t n, int32_t dim, void* block, void*) {
  auto* kv = static_cast<float*>(block);
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
void Dots(const float* q, const float* kv, int32_t n, int32_t dim, float* scores) {
  constexpr int kSlots = kHeads == 4 ? 2 : 4;  // eight sums, or four
  const int64_t stride = Stride(dim);
  int32_t s = 0;
  for (; s + kSlots <= n; s += kSlots) {
    DotTile<kHeads, kSlots>(q, kv + s * stride, stride, dim, scores + s);
  }
  for (; s < n; ++s) DotTile<kHeads, 1>(q, kv + s * stride, stride, dim, scores + s);
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
    const __m256 p = simd::Exp(_mm256_sub_ps(_mm256_loadu_ps(scores + s), _mm256_set1_ps(new_max)));
    total = _mm256_add_ps(total, p);
    const __m256i wide = _mm256_cvtepu16_epi32(simd::RoundToBf16(p));
    _mm256_storeu_ps(scores + s, _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16)));
  }
  const float correction = _mm256_cvtss_f32(simd::Exp(_mm256_set1_ps(max - new_max)));
  max = new_max;
  denominator = denominator * correction + simd::ReduceLanes(total);
  return correction;
}

// sum[h] = sum[h] * correction[h] + sum_s p[h][s] * kv[s].
template <int kHeads>
void AddProducts(const float* p, const float* correction, const float* kv, int32_t n, int32_t dim,
                 float* sum) {
  constexpr int kVectors = kHeads == 4 ? 2 : 4;
  const int64_t stride = Stride(dim);
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

// q: [kHeads, d] F32.
template <int kHeads>
void AddBlock(const AttentionHeads& heads, const float* kv, int32_t n, int32_t dim, float scale,
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
  const auto* const kv = static_cast<const float*>(block);
  auto* const q = static_cast<float*>(work);
  switch (num_heads) {
    case 1:
      return AddBlock<1>(heads, kv, n, dim, scale, q);
    case 2:
      return AddBlock<2>(heads, kv, n, dim, scale, q);
    default:
      return AddBlock<4>(heads, kv, n, dim, scale, q);
  }
}

}  // namespace

const AttentionKernels kAvx2Attention = {
    .block_bytes = BlockBytes, .work_bytes = WorkBytes, .decode = DecodeBlock, .add = Add};

}  // namespace deepinfer
