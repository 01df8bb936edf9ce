// Sixteen keys in the lanes of a vector, four products a lane by VPDPBUSD.
#include <immintrin.h>

#include "kernels/indexer/cpu/score_keys.h"

namespace deepinfer::index_scores {
namespace {

inline __m128i Load16(const uint8_t* bytes) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
}

// dwords[i]: bytes 4i to 4i + 3 of every key's part of the group.
inline void LoadTransposed(const KeyPlaces& keys, int32_t group, __m512i (&dwords)[4]) {
  __m512i rows[4];  // keys j, j + 4, j + 8, j + 12
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const uint8_t* const* const codes = keys.codes + j;
    rows[j] = _mm512_castsi128_si512(Load16(codes[0] + group * 16));
    rows[j] = _mm512_inserti32x4(rows[j], Load16(codes[4] + group * 16), 1);
    rows[j] = _mm512_inserti32x4(rows[j], Load16(codes[8] + group * 16), 2);
    rows[j] = _mm512_inserti32x4(rows[j], Load16(codes[12] + group * 16), 3);
  }
  const __m512i low01 = _mm512_unpacklo_epi32(rows[0], rows[1]);
  const __m512i low23 = _mm512_unpacklo_epi32(rows[2], rows[3]);
  const __m512i high01 = _mm512_unpackhi_epi32(rows[0], rows[1]);
  const __m512i high23 = _mm512_unpackhi_epi32(rows[2], rows[3]);
  dwords[0] = _mm512_unpacklo_epi64(low01, low23);
  dwords[1] = _mm512_unpackhi_epi64(low01, low23);
  dwords[2] = _mm512_unpacklo_epi64(high01, high23);
  dwords[3] = _mm512_unpackhi_epi64(high01, high23);
}

inline void Unpack(const KeyPlaces& keys, int32_t group, KeyGroup& out) {
  // VPERMB looks at six bits of a byte; the table repeats, so that four of them count.
  const __m512i table = _mm512_broadcast_i32x4(
      _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
  __m512i dwords[4];
  LoadTransposed(keys, group, dwords);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    _mm512_store_si512(out.chunks[2 * i], _mm512_permutexvar_epi8(dwords[i], table));
    _mm512_store_si512(out.chunks[2 * i + 1],
                       _mm512_permutexvar_epi8(_mm512_srli_epi16(dwords[i], 4), table));
  }
  for (int j = 0; j < kKeys; ++j) {
    const uint64_t bits = HalfScaleBits(keys.scales[j][group]);
    __builtin_memcpy(&out.scales[j], &bits, sizeof bits);
  }
}

// Dots of one head with the keys: eight in each.
struct HeadDots {
  __m512d low, high;
};

inline void Dot(const QueryGroup* queries, const KeyGroup* keys, int32_t num_groups,
                HeadDots (&dots)[kHeads]) {
  for (HeadDots& head : dots) head.low = head.high = _mm512_setzero_pd();
  for (int32_t g = 0; g < num_groups; ++g) {
    __m512i sums[kHeads];
#pragma GCC unroll 4
    for (int h = 0; h < kHeads; ++h) sums[h] = _mm512_set1_epi32(queries[g].raise[h]);
#pragma GCC unroll 8
    for (int c = 0; c < kChunks; ++c) {
      const __m512i key = _mm512_load_si512(keys[g].chunks[c]);
#pragma GCC unroll 4
      for (int h = 0; h < kHeads; ++h) {
        sums[h] = _mm512_dpbusd_epi32(sums[h], key, _mm512_set1_epi32(queries[g].chunks[c][h]));
      }
    }
    const __m512d low = _mm512_load_pd(keys[g].scales), high = _mm512_load_pd(keys[g].scales + 8);
#pragma GCC unroll 4
    for (int h = 0; h < kHeads; ++h) {
      const __m512d scale = _mm512_set1_pd(queries[g].scales[h]);
      dots[h].low = _mm512_fmadd_pd(_mm512_cvtepi32_pd(_mm512_castsi512_si256(sums[h])),
                                    _mm512_mul_pd(low, scale), dots[h].low);
      dots[h].high = _mm512_fmadd_pd(_mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(sums[h], 1)),
                                     _mm512_mul_pd(high, scale), dots[h].high);
    }
  }
}

inline __m512 ToFloats(const HeadDots& dots) {
  return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(dots.low)),
                            _mm512_cvtpd_ps(dots.high), 1);
}

// To the nearest BF16. NaN stays NaN if its lower 16 bits are 0, as those of every NaN here are.
inline __m512 RoundToBf16(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i lsb = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i sum = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), lsb);
  return _mm512_castsi512_ps(_mm512_and_si512(sum, _mm512_set1_epi32(-0x10000)));
}

// Sums of the two forms of scores. A maximum's second operand is taken where one is NaN.
struct OfficialSum {
  void Add(const HeadDots& dots, float weight) {
    const __m512 relu = RoundToBf16(_mm512_max_ps(_mm512_setzero_ps(), ToFloats(dots)));
    sum = _mm512_add_ps(sum, RoundToBf16(_mm512_mul_ps(relu, _mm512_set1_ps(weight))));
  }
  __m512 Score() const { return RoundToBf16(sum); }

  __m512 sum = _mm512_setzero_ps();
};

struct ExactSum {
  void Add(const HeadDots& dots, float weight) {
    const __m512d w = _mm512_set1_pd(weight), zero = _mm512_setzero_pd();
    sum.low = _mm512_add_pd(sum.low, _mm512_mul_pd(_mm512_max_pd(zero, dots.low), w));
    sum.high = _mm512_add_pd(sum.high, _mm512_mul_pd(_mm512_max_pd(zero, dots.high), w));
  }
  __m512 Score() const { return ToFloats(sum); }

  HeadDots sum{_mm512_setzero_pd(), _mm512_setzero_pd()};
};

template <typename Sum>
void Score(const Queries& queries, const KeyPlaces& keys, KeyGroup* unpacked, float* scores) {
  for (int32_t g = 0; g < queries.num_groups; ++g) Unpack(keys, g, unpacked[g]);
  Sum sum;
  for (int32_t quad = 0; quad < queries.num_quads; ++quad) {
    HeadDots dots[kHeads];
    Dot(queries.groups + int64_t{quad} * queries.num_groups, unpacked, queries.num_groups, dots);
#pragma GCC unroll 4
    for (int h = 0; h < kHeads; ++h) sum.Add(dots[h], queries.weights[quad * kHeads + h]);
  }
  const __m512 score = sum.Score();
  const __mmask16 is_nan = _mm512_cmp_ps_mask(score, score, _CMP_UNORD_Q);
  const __m512 minus_infinity = _mm512_set1_ps(-__builtin_inff());
  _mm512_storeu_ps(scores, _mm512_mask_mov_ps(score, is_nan, minus_infinity));
}

}  // namespace

const ScoreKeys kAvx512Scores = {Score<OfficialSum>, Score<ExactSum>};

}  // namespace deepinfer::index_scores
