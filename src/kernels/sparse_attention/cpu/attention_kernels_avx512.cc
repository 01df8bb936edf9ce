// AVX-512 BF16: every record value is exact in BF16 and probabilities are rounded to it, so both
// products run by VDPBF16PS.
#include <immintrin.h>

#include <cstring>

#include "kernels/cpu/dot_avx512.h"
#include "kernels/linear/cpu/decoder_avx512.h"
#include "kernels/sparse_attention/cpu/attention_avx512.h"

namespace deepinfer {
namespace attention_avx512 {
namespace {

// F32 of the 256 e4m3 codes.
struct E4m3Floats {
  float values[256];
  constexpr E4m3Floats() : values() {
    for (int code = 0; code < 256; ++code) {
      const int exponent = code >> 3 & 15, mantissa = code & 7;
      float value = exponent == 0 ? static_cast<float>(mantissa) : static_cast<float>(8 + mantissa);
      for (int e = exponent == 0 ? 1 : exponent; e < 10; ++e) value /= 2;  // 2^(e-7) / 8
      for (int e = exponent; e > 10; --e) value *= 2;
      if ((code & 127) == 127) value = __builtin_nanf("");
      values[code] = code < 128 ? value : -value;
    }
  }
};
constexpr E4m3Floats kE4m3Floats;

// The upper halves of 32 F32 values, in order.
__m512i UpperHalves(__m512 first, __m512 second) {
  alignas(64) static constexpr uint16_t kOdd[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21,
                                                    23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43,
                                                    45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
  return _mm512_permutex2var_epi16(_mm512_castps_si512(first), _mm512_load_si512(kOdd),
                                   _mm512_castps_si512(second));
}

using Fp8Decoder = Avx512Decoder<WeightFormat::kFp8>;

// Scales that no finite BF16 row has, and NaN, take the way through F32.
bool IsUsualScale(uint8_t e) { return e >= 40 && e <= 240; }

// 32 e4m3 codes of one group, whatever they are.
__m512i DecodeSwaGroup(const uint8_t* codes, uint8_t e) {
  alignas(64) float values[32];
  const float scale =
      e == 255 ? __builtin_nanf("")
               : _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(e == 0 ? 0x00400000 : e << 23)));
  for (int i = 0; i < 32; ++i) values[i] = kE4m3Floats.values[codes[i]] * scale;
  return UpperHalves(_mm512_load_ps(values), _mm512_load_ps(values + kLanes));
}

// Times a power of two: added to the exponent. Zero stays. Requires: a usual scale, no NaN.
__m512i TimesScale(__m512i value, uint8_t e) {
  const __mmask32 moves = _mm512_test_epi16_mask(value, _mm512_set1_epi16(0x7fff));
  return _mm512_mask_add_epi16(value, moves, value,
                               _mm512_set1_epi16(static_cast<int16_t>((e - 127) * 128)));
}

// Two groups, or one and nothing: kGroups * 32 codes.
template <int kGroups>
void DecodeSwaGroups(const uint8_t* codes, const uint8_t* scales, const Fp8Decoder& d,
                     uint16_t* out) {
  const __m512i v =
      kGroups == 2 ? _mm512_loadu_si512(codes)
                   : _mm512_zextsi256_si512(
                         _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes)));
  const __m512i most = _mm512_set1_epi8(0x7f);
  const bool has_nan = _mm512_cmpeq_epi8_mask(_mm512_and_si512(v, most), most) != 0;
  if (has_nan || !IsUsualScale(scales[0]) || !IsUsualScale(scales[kGroups - 1])) [[unlikely]] {
    for (int g = 0; g < kGroups; ++g) {
      _mm512_store_si512(out + g * 32, DecodeSwaGroup(codes + g * 32, scales[g]));
    }
    return;
  }
  // In each 128-bit lane eight codes of the first group, above them eight of the second.
  const __m512i spread = _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7), v);
  const __m512i low = _mm512_permutex2var_epi8(d.low0, spread, d.low1);
  const __m512i magnitude = _mm512_permutex2var_epi8(d.high0, spread, d.high1);
  const __m512i high = _mm512_ternarylogic_epi32(magnitude, spread, d.sign, 0xf8);
  _mm512_store_si512(out, TimesScale(_mm512_unpacklo_epi8(low, high), scales[0]));
  if constexpr (kGroups == 2) {
    _mm512_store_si512(out + 32, TimesScale(_mm512_unpackhi_epi8(low, high), scales[1]));
  }
}

void DecodeSwa(const uint8_t* record, int32_t dim, uint16_t* out) {
  const Fp8Decoder decoder;
  int32_t c = 0;
  for (; c + 64 <= dim; c += 64) {
    DecodeSwaGroups<2>(record + c, record + dim + c / 32, decoder, out + c);
  }
  if (c < dim) DecodeSwaGroups<1>(record + c, record + dim + c / 32, decoder, out + c);
}

// 16 e2m1 codes in 8 bytes, times their e4m3 scale: six significant bits.
__m512 DecodeGlobalGroup(const uint8_t* codes, uint8_t scale, __m512 table) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes));
  // Only the lower four bits of an index count.
  const __m128i nibbles = _mm_unpacklo_epi8(bytes, _mm_srli_epi16(bytes, 4));
  return _mm512_mul_ps(_mm512_permutexvar_ps(_mm512_cvtepu8_epi32(nibbles), table),
                       _mm512_set1_ps(kE4m3Floats.values[scale]));
}

void DecodeGlobal(const uint8_t* record, int32_t dim, uint16_t* out) {
  const __m512 table = _mm512_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f, -0.0f, -0.5f,
                                      -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f);
  const uint8_t* const scales = record + dim / 2;
  for (int32_t g = 0; g < dim / 16; g += 2) {
    _mm512_store_si512(out + g * 16,
                       UpperHalves(DecodeGlobalGroup(record + g * 8, scales[g], table),
                                   DecodeGlobalGroup(record + g * 8 + 8, scales[g + 1], table)));
  }
}

// Rows become columns: 16 x 16 dwords.
void Transpose(__m512i* r) {
  __m512i t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
  }
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
    r[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
    r[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
  }
}

// rows: [16 slots, dim] -> their 16 columns of `keys` [dim / 2, 64 slots].
void StoreKeys(const uint16_t* rows, int32_t dim, uint32_t* keys) {
  for (int32_t i = 0; i < dim / 2; i += kLanes) {
    __m512i r[16];
    for (int s = 0; s < 16; ++s) r[s] = _mm512_load_si512(rows + int64_t{s} * dim + 2 * i);
    Transpose(r);
    for (int k = 0; k < 16; ++k) _mm512_store_si512(keys + int64_t{i + k} * kSlots, r[k]);
  }
}

// Two slots [dim] each -> [dim][2], dims in the order of unpacking.
void StorePair(const uint16_t* first, const uint16_t* second, int32_t dim, uint32_t* pairs) {
  for (int32_t c = 0; c < dim; c += 32) {
    const __m512i a = _mm512_load_si512(first + c), b = _mm512_load_si512(second + c);
    _mm512_store_si512(pairs + c, _mm512_unpacklo_epi16(a, b));
    _mm512_store_si512(pairs + c + 16, _mm512_unpackhi_epi16(a, b));
  }
}

}  // namespace

void DecodeBlock(const AttentionSlot* slots, int32_t n, int32_t dim, void* block, void* work) {
  uint32_t *const keys = Keys(block), *const pairs = Pairs(block, dim);
  auto* const rows = static_cast<uint16_t*>(work);
  for (int32_t first = 0; first < n; first += kLanes) {
    for (int32_t s = 0; s < kLanes; ++s) {
      uint16_t* const row = rows + s * dim;
      if (first + s >= n) {
        std::memset(row, 0, static_cast<size_t>(dim) * sizeof *row);
      } else if (slots[first + s].global) {
        DecodeGlobal(slots[first + s].record, dim, row);
      } else {
        DecodeSwa(slots[first + s].record, dim, row);
      }
    }
    StoreKeys(rows, dim, keys + first);
    for (int32_t s = 0; s < kLanes && first + s < n; s += 2) {
      StorePair(rows + s * dim, rows + (s + 1) * dim, dim,
                pairs + (first + s) / 2 * PairStride(dim));
    }
  }
}

namespace {

// scores[h][v]: q[h] . key of slot 16 v + lane.
template <int kHeads, int kVectors>
void Dots(const AttentionHeads& heads, const uint32_t* keys, int32_t dim,
          __m512 (*scores)[kVectors]) {
  for (int h = 0; h < kHeads; ++h) {
    for (int v = 0; v < kVectors; ++v) scores[h][v] = _mm512_setzero_ps();
  }
  for (int32_t begin = 0; begin < dim; begin += kChain) {
    const int32_t end = begin + kChain < dim ? begin + kChain : dim;
    __m512 sum[kHeads][kVectors];
    for (int h = 0; h < kHeads; ++h) {
      for (int v = 0; v < kVectors; ++v) sum[h][v] = _mm512_setzero_ps();
    }
    for (int32_t i = begin / 2; i < end / 2; ++i) {
      __m512i key[kVectors];
      for (int v = 0; v < kVectors; ++v) {
        key[v] = _mm512_load_si512(keys + int64_t{i} * kSlots + v * kLanes);
      }
      for (int h = 0; h < kHeads; ++h) {
        const __m512i q = BroadcastPair(heads.q + int64_t{h} * dim, i);
        for (int v = 0; v < kVectors; ++v) sum[h][v] = DotPairs(sum[h][v], q, key[v]);
      }
    }
    for (int h = 0; h < kHeads; ++h) {
      for (int v = 0; v < kVectors; ++v) scores[h][v] = _mm512_add_ps(scores[h][v], sum[h][v]);
    }
  }
}

// sum[h] = sum[h] * correction[h] + sum over slots of p[h] * kv, kVectors * 16 dims from `c` on.
template <int kHeads, int kVectors>
void AddProducts(const AttentionHeads& heads, const uint32_t* pairs, int32_t num_pairs, int32_t dim,
                 int32_t c, const uint16_t (*p)[kSlots], const float* correction) {
  __m512 acc[kHeads][kVectors];
  for (int h = 0; h < kHeads; ++h) {
    for (int v = 0; v < kVectors; ++v) acc[h][v] = _mm512_setzero_ps();
  }
  for (int32_t s = 0; s < num_pairs; ++s) {
    __m512i kv[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      kv[v] = _mm512_load_si512(pairs + s * PairStride(dim) + c + v * kLanes);
    }
    for (int h = 0; h < kHeads; ++h) {
      const __m512i weight = BroadcastPair(p[h], s);
      for (int v = 0; v < kVectors; ++v) acc[h][v] = DotPairs(acc[h][v], weight, kv[v]);
    }
  }
  for (int h = 0; h < kHeads; ++h) {
    for (int v = 0; v < kVectors; v += 2) InOrder(acc[h][v], acc[h][v + 1]);
    for (int v = 0; v < kVectors; ++v) {
      float* const sum = heads.sum + int64_t{h} * dim + c + v * kLanes;
      const __m512 shrunk = _mm512_mul_ps(_mm512_loadu_ps(sum), _mm512_set1_ps(correction[h]));
      _mm512_storeu_ps(sum, _mm512_add_ps(shrunk, acc[h][v]));
    }
  }
}

template <int kHeads, int kVectors>
void AddBlock(const AttentionHeads& heads, const void* block, int32_t n, int32_t dim, float scale) {
  const uint32_t *const keys = Keys(block), *const pairs = Pairs(block, dim);
  __m512 scores[kHeads][kVectors];
  Dots<kHeads, kVectors>(heads, keys, dim, scores);
  alignas(64) uint16_t p[kHeads][kSlots];
  float correction[kHeads];
  for (int h = 0; h < kHeads; ++h) {
    correction[h] =
        SoftmaxBlock<kVectors>(scores[h], n, scale, heads.max[h], heads.denominator[h], p[h]);
  }
  const int32_t num_pairs = (n + 1) / 2;
  int32_t c = 0;
  for (; c + 64 <= dim; c += 64) {
    AddProducts<kHeads, 4>(heads, pairs, num_pairs, dim, c, p, correction);
  }
  if (c < dim) AddProducts<kHeads, 2>(heads, pairs, num_pairs, dim, c, p, correction);
}

template <int kHeads>
void AddToHeads(const AttentionHeads& heads, const void* block, int32_t n, int32_t dim,
                float scale) {
  switch ((n + kLanes - 1) / kLanes) {
    case 1:
      return AddBlock<kHeads, 1>(heads, block, n, dim, scale);
    case 2:
      return AddBlock<kHeads, 2>(heads, block, n, dim, scale);
    case 3:
      return AddBlock<kHeads, 3>(heads, block, n, dim, scale);
    default:
      return AddBlock<kHeads, 4>(heads, block, n, dim, scale);
  }
}

void Add(const AttentionHeads& heads, int32_t num_heads, const void* block, int32_t n, int32_t dim,
         float scale, void*) {
  for (int32_t h = 0; h < num_heads;) {
    const AttentionHeads left = heads.From(h, dim);
    if (num_heads - h >= 4) {
      AddToHeads<4>(left, block, n, dim, scale);
      h += 4;
    } else if (num_heads - h >= 2) {
      AddToHeads<2>(left, block, n, dim, scale);
      h += 2;
    } else {
      AddToHeads<1>(left, block, n, dim, scale);
      h += 1;
    }
  }
}

}  // namespace
}  // namespace attention_avx512

const AttentionKernels kAvx512Attention = {.heads_abreast = 4,
                                           .block_bytes = attention_avx512::BlockBytes,
                                           .work_bytes = attention_avx512::WorkBytes,
                                           .decode = attention_avx512::DecodeBlock,
                                           .add = attention_avx512::Add};

}  // namespace deepinfer
