// Fake-quantised index queries back to the integers that they stand for.
#include <algorithm>
#include <limits>

#include "base/check.h"
#include "kernels/cpu/simd.h"
#include "kernels/indexer/cpu/index_group.h"
#include "kernels/indexer/cpu/score_keys.h"

namespace deepinfer::index_scores {
namespace {

// Eight values in units of `half`. Requires: they lie on the FP4 grid, so that nothing is rounded.
inline __m256i WholeUnits(const bf16* x, float half, float inverse) {
  const __m256 value = simd::Load(x);
  const __m256i units = _mm256_cvtps_epi32(_mm256_mul_ps(value, _mm256_set1_ps(inverse)));
  const __m256 again = _mm256_mul_ps(_mm256_cvtepi32_ps(units), _mm256_set1_ps(half));
  CHECK_EQ(_mm256_movemask_ps(_mm256_cmp_ps(value, again, _CMP_NEQ_UQ)), 0);
  return units;
}

// Sixteen values as bytes, in the order of four chunks.
inline __m128i FourChunks(const bf16* x, float half, float inverse) {
  const __m256i both =
      _mm256_packs_epi32(WholeUnits(x, half, inverse), WholeUnits(x + 8, half, inverse));
  const __m256i words = _mm256_permute4x64_epi64(both, 0xd8);  // packs works inside 128 bits
  const __m128i bytes =
      _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  const __m128i order = _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
  return _mm_shuffle_epi8(bytes, order);
}

int32_t SumOfBytes(__m128i bytes) {
  __m128i sums = _mm_maddubs_epi16(_mm_set1_epi8(1), bytes);
  sums = _mm_madd_epi16(sums, _mm_set1_epi16(1));
  sums = _mm_add_epi32(sums, _mm_unpackhi_epi64(sums, sums));
  return _mm_cvtsi128_si32(sums) + _mm_extract_epi32(sums, 1);
}

// The group's own largest magnitude gives the scale, or half of it (largest code 3); twice a code
// is an integer of at most 12 with either.
void EncodeGroup(const bf16* x, int32_t head, QueryGroup& out) {
  const uint8_t scale = index_group::Scale(x);
  if (scale == kE8m0Nan) {
    out.scales[head] = std::numeric_limits<double>::quiet_NaN();
    return;
  }
  const float half = E8m0ToFloat(static_cast<uint8_t>(scale - 1));
  const float inverse = E8m0ToFloat(static_cast<uint8_t>(255 - scale));
  out.scales[head] = half;
  for (int i = 0; i < 2; ++i) {
    const __m128i bytes = FourChunks(x + 16 * i, half, inverse);
    out.raise[head] -= kRaise * SumOfBytes(bytes);
    alignas(16) int32_t chunks[4];
    _mm_store_si128(reinterpret_cast<__m128i*>(chunks), bytes);
    for (int c = 0; c < 4; ++c) out.chunks[4 * i + c][head] = chunks[c];
  }
}

}  // namespace

void EncodeQueries(const bf16* q, int32_t num_heads, int32_t num_groups, QueryGroup* out) {
  std::fill_n(out, int64_t{NumQuads(num_heads)} * num_groups, QueryGroup{});
  for (int32_t head = 0; head < num_heads; ++head) {
    QueryGroup* const groups = out + int64_t{head / kHeads} * num_groups;
    for (int32_t g = 0; g < num_groups; ++g) {
      EncodeGroup(q + (int64_t{head} * num_groups + g) * kGroup, head % kHeads, groups[g]);
    }
  }
}

}  // namespace deepinfer::index_scores
