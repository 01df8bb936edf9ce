// Eight keys in the lanes of a vector, four products a lane by VPMADDUBSW: a group's pairs stay
// below 8 * 2 * 24 * 12 = 4,608 in int16. The sixteen keys are two halves.
#include <immintrin.h>

#include "kernels/indexer/cpu/score_keys.h"

namespace deepinfer::index_scores {
namespace {

constexpr int kLanes = 8;

inline __m128i Load16(const uint8_t* bytes) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
}
inline __m256i LoadLanes(const uint8_t (&chunk)[kKeys][4], int half) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(chunk[half * kLanes]));
}
inline void StoreLanes(__m256i lanes, int half, uint8_t (&chunk)[kKeys][4]) {
  _mm256_store_si256(reinterpret_cast<__m256i*>(chunk[half * kLanes]), lanes);
}

// dwords[i]: bytes 4i to 4i + 3 of every key's part of the group.
inline void LoadTransposed(const KeyPlaces& keys, int half, int32_t group, __m256i (&dwords)[4]) {
  __m256i rows[4];  // keys j and j + 4
  for (int j = 0; j < 4; ++j) {
    const uint8_t* const* const codes = keys.codes + half * kLanes + j;
    rows[j] = _mm256_inserti128_si256(_mm256_castsi128_si256(Load16(codes[0] + group * 16)),
                                      Load16(codes[4] + group * 16), 1);
  }
  const __m256i low01 = _mm256_unpacklo_epi32(rows[0], rows[1]);
  const __m256i low23 = _mm256_unpacklo_epi32(rows[2], rows[3]);
  const __m256i high01 = _mm256_unpackhi_epi32(rows[0], rows[1]);
  const __m256i high23 = _mm256_unpackhi_epi32(rows[2], rows[3]);
  dwords[0] = _mm256_unpacklo_epi64(low01, low23);
  dwords[1] = _mm256_unpackhi_epi64(low01, low23);
  dwords[2] = _mm256_unpacklo_epi64(high01, high23);
  dwords[3] = _mm256_unpackhi_epi64(high01, high23);
}

inline void UnpackHalf(const KeyPlaces& keys, int half, int32_t group, KeyGroup& out) {
  const __m256i table = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
  const __m256i nibble = _mm256_set1_epi8(15);
  __m256i dwords[4];
  LoadTransposed(keys, half, group, dwords);
  for (int i = 0; i < 4; ++i) {
    const __m256i low = _mm256_and_si256(dwords[i], nibble);
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(dwords[i], 4), nibble);
    StoreLanes(_mm256_shuffle_epi8(table, low), half, out.chunks[2 * i]);
    StoreLanes(_mm256_shuffle_epi8(table, high), half, out.chunks[2 * i + 1]);
  }
}

inline void Unpack(const KeyPlaces& keys, int32_t group, KeyGroup& out) {
  UnpackHalf(keys, 0, group, out);
  UnpackHalf(keys, 1, group, out);
  for (int j = 0; j < kKeys; ++j) {
    const uint64_t bits = HalfScaleBits(keys.scales[j][group]);
    __builtin_memcpy(&out.scales[j], &bits, sizeof bits);
  }
}

// Dots of one head with half of the keys: four in each.
struct HeadDots {
  __m256d low, high;
};

// raise + products of a group with every chunk.
inline void GroupSums(const QueryGroup& queries, const KeyGroup& keys, int half,
                      __m256i (&sums)[kHeads]) {
  __m256i pairs[kHeads];
  for (__m256i& head : pairs) head = _mm256_setzero_si256();
#pragma GCC unroll 2
  for (int c = 0; c < kChunks; ++c) {
    const __m256i key = LoadLanes(keys.chunks[c], half);
#pragma GCC unroll 4
    for (int h = 0; h < kHeads; ++h) {
      const __m256i query = _mm256_set1_epi32(queries.chunks[c][h]);
      pairs[h] = _mm256_add_epi16(pairs[h], _mm256_maddubs_epi16(key, query));
    }
  }
#pragma GCC unroll 4
  for (int h = 0; h < kHeads; ++h) {
    sums[h] = _mm256_add_epi32(_mm256_madd_epi16(pairs[h], _mm256_set1_epi16(1)),
                               _mm256_set1_epi32(queries.raise[h]));
  }
}

inline void Dot(const QueryGroup* queries, const KeyGroup* keys, int half, int32_t num_groups,
                HeadDots (&dots)[kHeads]) {
  for (HeadDots& head : dots) head.low = head.high = _mm256_setzero_pd();
  for (int32_t g = 0; g < num_groups; ++g) {
    __m256i sums[kHeads];
    GroupSums(queries[g], keys[g], half, sums);
    const double* const scales = keys[g].scales + half * kLanes;
    const __m256d low = _mm256_load_pd(scales), high = _mm256_load_pd(scales + 4);
#pragma GCC unroll 4
    for (int h = 0; h < kHeads; ++h) {
      const __m256d scale = _mm256_set1_pd(queries[g].scales[h]);
      dots[h].low = _mm256_fmadd_pd(_mm256_cvtepi32_pd(_mm256_castsi256_si128(sums[h])),
                                    _mm256_mul_pd(low, scale), dots[h].low);
      dots[h].high = _mm256_fmadd_pd(_mm256_cvtepi32_pd(_mm256_extracti128_si256(sums[h], 1)),
                                     _mm256_mul_pd(high, scale), dots[h].high);
    }
  }
}

inline __m256 ToFloats(const HeadDots& dots) {
  return _mm256_set_m128(_mm256_cvtpd_ps(dots.high), _mm256_cvtpd_ps(dots.low));
}

// To the nearest BF16. NaN stays NaN if its lower 16 bits are 0, as those of every NaN here are.
inline __m256 RoundToBf16(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i lsb = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), lsb);
  return _mm256_castsi256_ps(_mm256_and_si256(sum, _mm256_set1_epi32(-0x10000)));
}

// Sums of the two forms of scores. A maximum's second operand is taken where one is NaN.
struct OfficialSum {
  void Add(const HeadDots& dots, float weight) {
    const __m256 relu = RoundToBf16(_mm256_max_ps(_mm256_setzero_ps(), ToFloats(dots)));
    sum = _mm256_add_ps(sum, RoundToBf16(_mm256_mul_ps(relu, _mm256_set1_ps(weight))));
  }
  __m256 Score() const { return RoundToBf16(sum); }

  __m256 sum = _mm256_setzero_ps();
};

struct ExactSum {
  void Add(const HeadDots& dots, float weight) {
    const __m256d w = _mm256_set1_pd(weight), zero = _mm256_setzero_pd();
    sum.low = _mm256_add_pd(sum.low, _mm256_mul_pd(_mm256_max_pd(zero, dots.low), w));
    sum.high = _mm256_add_pd(sum.high, _mm256_mul_pd(_mm256_max_pd(zero, dots.high), w));
  }
  __m256 Score() const { return ToFloats(sum); }

  HeadDots sum{_mm256_setzero_pd(), _mm256_setzero_pd()};
};

template <typename Sum>
inline void ScoreHalf(const Queries& queries, const KeyGroup* keys, int half, float* scores) {
  Sum sum;
  for (int32_t quad = 0; quad < queries.num_quads; ++quad) {
    HeadDots dots[kHeads];
    Dot(queries.groups + int64_t{quad} * queries.num_groups, keys, half, queries.num_groups, dots);
#pragma GCC unroll 4
    for (int h = 0; h < kHeads; ++h) sum.Add(dots[h], queries.weights[quad * kHeads + h]);
  }
  const __m256 score = sum.Score();
  const __m256 is_nan = _mm256_cmp_ps(score, score, _CMP_UNORD_Q);
  const __m256 minus_infinity = _mm256_set1_ps(-__builtin_inff());
  _mm256_storeu_ps(scores + half * kLanes, _mm256_blendv_ps(score, minus_infinity, is_nan));
}

template <typename Sum>
void Score(const Queries& queries, const KeyPlaces& keys, KeyGroup* unpacked, float* scores) {
  for (int32_t g = 0; g < queries.num_groups; ++g) Unpack(keys, g, unpacked[g]);
  for (int half = 0; half < 2; ++half) ScoreHalf<Sum>(queries, unpacked, half, scores);
}

}  // namespace

const ScoreKeys kAvx2Scores = {Score<OfficialSum>, Score<ExactSum>};

}  // namespace deepinfer::index_scores
