// Nothing here but inner loops: see linear/cpu/panel_kernels.h.
#include <immintrin.h>

#include "kernels/formats/panels_avx2.h"

namespace deepinfer {
namespace {

constexpr int kRows = 16;

__m256i Load(const uint8_t* at) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)); }

// v[i] dword j -> v[j] dword i.
void Transpose8x8(__m256i* v) {
  __m256i a[8], b[8];
  for (int i = 0; i < 8; i += 2) {
    a[i] = _mm256_unpacklo_epi32(v[i], v[i + 1]);
    a[i + 1] = _mm256_unpackhi_epi32(v[i], v[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    for (int half = 0; half < 2; ++half) {
      b[i + 2 * half] = _mm256_unpacklo_epi64(a[i + half], a[i + 2 + half]);
      b[i + 2 * half + 1] = _mm256_unpackhi_epi64(a[i + half], a[i + 2 + half]);
    }
  }
  for (int i = 0; i < 4; ++i) {
    v[i] = _mm256_permute2x128_si256(b[i], b[i + 4], 0x20);
    v[i + 4] = _mm256_permute2x128_si256(b[i], b[i + 4], 0x31);
  }
}

// Of 8 columns a dword: even columns' nibbles into its lower half, odd columns' into the upper.
struct SplitNibbles {
  __m256i operator()(__m256i x) const {
    const __m256i mask = _mm256_set1_epi8(0x0f), join = _mm256_set1_epi16(0x1001);
    const __m256i even = _mm256_maddubs_epi16(_mm256_and_si256(x, mask), join);
    const __m256i odd = _mm256_maddubs_epi16(_mm256_and_si256(_mm256_srli_epi16(x, 4), mask), join);
    const __m256i order = _mm256_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15,  //
                                           0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
    return _mm256_shuffle_epi8(_mm256_packus_epi16(even, odd), order);
  }
};
struct AsTheyAre {
  __m256i operator()(__m256i x) const { return x; }
};
// Of four rows' dwords (16 bytes): their first pairs, then their second pairs.
struct PairsOfFourRows {
  __m256i operator()(__m256i x) const {
    const __m256i order = _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15,  //
                                           0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    return _mm256_shuffle_epi8(x, order);
  }
};

// Dword k of row r to dword r of block k, in eights of k. `before` is applied to a row's dwords,
// `after` to a block's. Returns the bytes of each row that were done. Sixteen rows are too many
// short streams for the hardware to run ahead of, so the next panel is asked for here, from its
// front to its back.
template <typename Before, typename After>
int64_t PackDwords(const uint8_t* rows, int64_t row_bytes, uint8_t* panel, Before before,
                   After after) {
  int64_t at = 0;
  for (; at + 32 <= row_bytes; at += 32, panel += 8 * 64) {
    __m256i low[8], high[8];
    if (at % 64 == 0) {
      const uint8_t* const next = rows + kRows * (row_bytes + at);
      for (int line = 0; line < kRows; ++line) {
        _mm_prefetch(reinterpret_cast<const char*>(next + line * 64), _MM_HINT_T1);
      }
    }
    for (int r = 0; r < 8; ++r) {
      low[r] = before(Load(rows + r * row_bytes + at));
      high[r] = before(Load(rows + (r + 8) * row_bytes + at));
    }
    Transpose8x8(low);
    Transpose8x8(high);
    for (int k = 0; k < 8; ++k) {
      _mm256_store_si256(reinterpret_cast<__m256i*>(panel + k * 64), after(low[k]));
      _mm256_store_si256(reinterpret_cast<__m256i*>(panel + k * 64 + 32), after(high[k]));
    }
  }
  return at;
}

}  // namespace

int64_t PackPanelAvx2(WeightFormat format, const uint8_t* rows, int64_t row_bytes, uint8_t* panel) {
  switch (format) {
    case WeightFormat::kFp4:
      return PackDwords(rows, row_bytes, panel, SplitNibbles{}, AsTheyAre{});
    case WeightFormat::kFp8:
      return PackDwords(rows, row_bytes, panel, AsTheyAre{}, PairsOfFourRows{});
    case WeightFormat::kBf16:
      return PackDwords(rows, row_bytes, panel, AsTheyAre{}, AsTheyAre{});
    default:
      return 0;
  }
}

int32_t PackFp4ScalesAvx2(const uint8_t* scales, int32_t num_groups, uint8_t* out) {
  int32_t g = 0;
  for (; g + kRows <= num_groups; g += kRows) {
    __m128i v[kRows], w[kRows];
    for (int r = 0; r < kRows; ++r) {
      v[r] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(scales + r * num_groups + g));
    }
    // Four times rows i and i + 8 interleaved byte by byte: a transposition of 16 x 16.
    for (int pass = 0; pass < 4; ++pass) {
      for (int i = 0; i < kRows / 2; ++i) {
        w[2 * i] = _mm_unpacklo_epi8(v[i], v[i + kRows / 2]);
        w[2 * i + 1] = _mm_unpackhi_epi8(v[i], v[i + kRows / 2]);
      }
      for (int i = 0; i < kRows; ++i) v[i] = w[i];
    }
    for (int i = 0; i < kRows; ++i) {
      _mm_store_si128(reinterpret_cast<__m128i*>(out + (g + i) * kRows), v[i]);
    }
  }
  return g;
}

}  // namespace deepinfer
