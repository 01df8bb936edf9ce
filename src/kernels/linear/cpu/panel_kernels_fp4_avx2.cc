// AVX2 for FP4 weights and rows on the FP8 grid: exact sums of a group in integers.
//
// Twice an e2m1 code is an integer of at most 12. A group of x is n[k] * 2^u with |n| < 2^19, which
// holds whatever went through the FP8 quantiser; n = d0 + 128 d1 + 16384 d2 with digits of seven
// bits and a sign. VPMADDUBSW multiplies codes, made unsigned by adding 12, with digits: 32
// products an instruction, whose sums over the group stay below 16 * 24 * 64 in 16 bits. So a
// group's sum is exact and rounded to F32 once; rows that no such n describes go to the F32 set.

#include <immintrin.h>

#include <cstring>

#include "kernels/linear/cpu/panel_kernels.h"

namespace deepinfer {
namespace {

constexpr int kHalves = 2;  // vectors of eight rows of a panel
constexpr int kDigits = 3;
constexpr int kBlocks = kGroupCols / 8;  // of 64 bytes of codes
constexpr int64_t kBytes = PanelGroupBytes(WeightFormat::kFp4);

// A group of a row of x. In a block of eight columns 0 4 1 5 come first, then 2 6 3 7: as the lower
// and the upper nibbles of the codes' bytes.
struct Group {
  int8_t digits[kDigits][2][kBlocks][4];
  int32_t bias;  // 12 sum(n)
  float scale;   // half of 2^u
};
static_assert(sizeof(Group) == 104);

__m256i Load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }

// Four columns of a digit in every row's lane.
__m256i Digits(const Group& x, int digit, int upper, int block) {
  int32_t four;
  std::memcpy(&four, x.digits[digit][upper][block], sizeof four);
  return _mm256_set1_epi32(four);
}

// sum += the products of pairs of columns. The empty statement keeps g++ 12 from starting all
// products before the first sum, for which there are not enough registers.
inline void AddPairs(__m256i weights, __m256i digits, __m256i& sum) {
  sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(weights, digits));
  asm volatile("" : "+x"(sum));
}

// 64 bytes of codes, one half of the rows -> twice the codes plus 12, of two times four columns.
struct Decoder {
  const __m256i table = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
  const __m256i nibble = _mm256_set1_epi8(15);

  void Half(const uint8_t* codes, __m256i out[2]) const {
    const __m256i v = Load(codes);
    out[0] = _mm256_shuffle_epi8(table, _mm256_and_si256(v, nibble));
    out[1] = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(v, 4), nibble));
  }
};

__m256 WeightScale(const uint8_t* scales, int64_t group, int half) {
  const auto* bytes = reinterpret_cast<const __m128i*>(scales + group * kPanelRows + half * 8);
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu8_epi32(_mm_loadl_epi64(bytes)), 23));
}

// total += the group's sum times both scales.
inline void AddGroup(const __m256i sums[kDigits], const Group& x, __m256 weight_scale,
                     float* total) {
  const __m256i low = _mm256_madd_epi16(sums[0], _mm256_set1_epi16(1));
  const __m256i middle = _mm256_madd_epi16(sums[1], _mm256_set1_epi16(128));
  const __m256i high = _mm256_madd_epi16(sums[2], _mm256_set1_epi16(16384));
  const __m256i biased = _mm256_add_epi32(_mm256_add_epi32(low, middle), high);
  const __m256i exact = _mm256_sub_epi32(biased, _mm256_set1_epi32(x.bias));
  const __m256 sum = _mm256_mul_ps(_mm256_cvtepi32_ps(exact), _mm256_set1_ps(x.scale));
  _mm256_storeu_ps(total, _mm256_fmadd_ps(sum, weight_scale, _mm256_loadu_ps(total)));
}

// kHalvesAbreast halves of a panel, from `half` on, with kRows rows: their sums fill the registers.
template <int kRows, int kHalvesAbreast>
inline __attribute__((always_inline)) void StreamGroup(const Decoder& decoder, const uint8_t* codes,
                                                       const uint8_t* scales, int64_t group,
                                                       int half, PanelRows rows, float* totals) {
  __m256i sums[kRows][kHalvesAbreast][kDigits] = {};
#pragma GCC unroll 4
  for (int b = 0; b < kBlocks; ++b) {
    __m256i w[kHalvesAbreast][2];
    for (int h = 0; h < kHalvesAbreast; ++h) decoder.Half(codes + b * 64 + (half + h) * 32, w[h]);
    for (int t = 0; t < kRows; ++t) {
      const Group& x = rows.Row<Group>(t)[group];
      for (int upper = 0; upper < 2; ++upper) {
        for (int d = 0; d < kDigits; ++d) {
          const __m256i digits = Digits(x, d, upper, b);
          for (int h = 0; h < kHalvesAbreast; ++h) {
            AddPairs(w[h][upper], digits, sums[t][h][d]);
          }
        }
      }
    }
  }
  for (int h = 0; h < kHalvesAbreast; ++h) {
    const __m256 scale = WeightScale(scales, group, half + h);
    for (int t = 0; t < kRows; ++t) {
      AddGroup(sums[t][h], rows.Row<Group>(t)[group], scale,
               totals + t * kPanelRows + (half + h) * 8);
    }
  }
}

template <int kRows>
void StreamRows(const uint8_t* panel, int32_t num_groups, PanelRows rows, float* totals) {
  constexpr int64_t kAhead = 4096;  // bytes; into the next panel at the end
  constexpr int kHalvesAbreast = kRows <= 2 ? 2 : 1;
  const Decoder decoder;
  const uint8_t* const scales = panel + num_groups * kBytes;
  for (int i = 0; i < kRows * kHalves; ++i) _mm256_storeu_ps(totals + 8 * i, _mm256_setzero_ps());
  for (int64_t g = 0; g < num_groups; ++g) {
    const uint8_t* const codes = panel + g * kBytes;
    for (int b = 0; b < kBlocks; ++b) {
      _mm_prefetch(reinterpret_cast<const char*>(codes + b * 64 + kAhead), _MM_HINT_T0);
    }
    for (int half = 0; half < kHalves; half += kHalvesAbreast) {
      StreamGroup<kRows, kHalvesAbreast>(decoder, codes, scales, g, half, rows, totals);
    }
  }
}

int32_t StreamPanels(WeightFormat /*format*/, int32_t /*num_rows*/) { return 1; }

void Stream(WeightFormat /*format: FP4*/, const uint8_t* panel, int32_t /*num_panels: one*/,
            int32_t num_groups, PanelRows x, int32_t num_rows, float* totals) {
  switch (num_rows) {
    case 1:
      return StreamRows<1>(panel, num_groups, x, totals);
    case 2:
      return StreamRows<2>(panel, num_groups, x, totals);
    case 3:
      return StreamRows<3>(panel, num_groups, x, totals);
    default:
      return StreamRows<4>(panel, num_groups, x, totals);
  }
}

// Decoded: [panel][group][block][2][16 rows][4 columns], bytes.
void Decode(WeightFormat /*format: FP4*/, const uint8_t* panel, int32_t num_groups, int32_t begin,
            int32_t index, const DecodedPanels& out) {
  const Decoder decoder;
  const int64_t first = int64_t{index} * out.num_groups;
  auto* weights = static_cast<uint8_t*>(out.weights) + first * kGroupCols * kPanelRows;
  float* scales = out.scales + first * kPanelRows;
  for (int64_t g = begin; g < begin + out.num_groups; ++g, scales += kPanelRows) {
    for (int b = 0; b < kBlocks; ++b, weights += 8 * kPanelRows) {
      const uint8_t* const codes = panel + g * kBytes + b * 64;
      _mm_prefetch(reinterpret_cast<const char*>(codes + 2048), _MM_HINT_T0);
      for (int h = 0; h < kHalves; ++h) {
        __m256i w[2];
        decoder.Half(codes + h * 32, w);
        for (int upper = 0; upper < 2; ++upper) {
          _mm256_storeu_si256(reinterpret_cast<__m256i*>(weights + (upper * kHalves + h) * 32),
                              w[upper]);
        }
      }
    }
    for (int h = 0; h < kHalves; ++h) {
      _mm256_storeu_ps(scales + 8 * h, WeightScale(panel + num_groups * kBytes, g, h));
    }
  }
}

template <int kRows>
void TileRows(const DecodedPanels& w, PanelRows rows, float* totals, int64_t row_stride) {
  const auto* weights = static_cast<const uint8_t*>(w.weights);
  for (int64_t g = 0; g < w.num_groups; ++g) {
    __m256i sums[kRows][kHalves][kDigits] = {};
#pragma GCC unroll 8
    for (int quad = 0; quad < 2 * kBlocks; ++quad, weights += 4 * kPanelRows) {
      const __m256i w0 = Load(weights), w1 = Load(weights + 32);
      for (int t = 0; t < kRows; ++t) {
        const Group& x = rows.Row<Group>(t)[g];
        for (int d = 0; d < kDigits; ++d) {
          const __m256i digits = Digits(x, d, quad % 2, quad / 2);
          AddPairs(w0, digits, sums[t][0][d]);
          AddPairs(w1, digits, sums[t][1][d]);
        }
      }
    }
    for (int h = 0; h < kHalves; ++h) {
      const __m256 scale = _mm256_loadu_ps(w.scales + g * kPanelRows + 8 * h);
      for (int t = 0; t < kRows; ++t) {
        AddGroup(sums[t][h], rows.Row<Group>(t)[g], scale, totals + t * row_stride + 8 * h);
      }
    }
  }
}

void Tile(const DecodedPanels& w, int32_t /*num_panels: one*/, PanelRows x, int32_t num_rows,
          float* totals, int64_t row_stride) {
  if (num_rows == 1) return TileRows<1>(w, x, totals, row_stride);
  TileRows<2>(w, x, totals, row_stride);
}

// Digit of the lowest seven bits, -64..63, of eight numbers, which lose it.
__m256i TakeDigit(__m256i& n) {
  const __m256i half = _mm256_set1_epi32(64);
  const __m256i digit =
      _mm256_sub_epi32(_mm256_and_si256(_mm256_add_epi32(n, half), _mm256_set1_epi32(127)), half);
  n = _mm256_srai_epi32(_mm256_sub_epi32(n, digit), 7);
  return digit;
}

float LargestLane(__m256 v) {
  __m128 m = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  m = _mm_max_ps(m, _mm_movehl_ps(m, m));
  return _mm_cvtss_f32(_mm_max_ss(m, _mm_shuffle_ps(m, m, 1)));
}

int32_t SumOfLanes(__m256i v) {
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

__m256 PowerOfTwo(int32_t exponent) {
  return _mm256_castsi256_ps(_mm256_set1_epi32((exponent + 127) << 23));
}

bool PrepareGroup(const bf16* x, Group& out) {
  constexpr int kBits = 19, kMostExponent = 60;  // products with usual weight scales stay in range
  __m256 values[kBlocks], largest = _mm256_setzero_ps();
  for (int b = 0; b < kBlocks; ++b) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + b * 8));
    values[b] = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
    // A NaN as the first operand gives the second; what is not finite shows below.
    largest = _mm256_max_ps(_mm256_andnot_ps(_mm256_set1_ps(-0.0f), values[b]), largest);
  }
  const float amax = LargestLane(largest);
  int32_t bits;
  std::memcpy(&bits, &amax, sizeof bits);
  const int32_t unit = amax == 0 ? 0 : (bits >> 23) - 127 - (kBits - 1);
  if (unit < -kMostExponent || unit > kMostExponent) return false;

  __m256i numbers[kBlocks], sum = _mm256_setzero_si256();
  int exact = 0xff;
  for (int b = 0; b < kBlocks; ++b) {
    const __m256 scaled = _mm256_mul_ps(values[b], PowerOfTwo(-unit));
    numbers[b] = _mm256_cvtps_epi32(scaled);
    exact &= _mm256_movemask_ps(_mm256_cmp_ps(_mm256_cvtepi32_ps(numbers[b]), scaled, _CMP_EQ_OQ));
    sum = _mm256_add_epi32(sum, numbers[b]);
  }
  if (exact != 0xff) return false;
  for (int d = 0; d < kDigits; ++d) {
    __m256i digits[kBlocks];
    for (int b = 0; b < kBlocks; ++b) {
      digits[b] = _mm256_permutevar8x32_epi32(TakeDigit(numbers[b]),
                                              _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    }
    const __m256i packed = _mm256_packs_epi16(_mm256_packs_epi32(digits[0], digits[1]),
                                              _mm256_packs_epi32(digits[2], digits[3]));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out.digits[d]), packed);
  }
  out.bias = 12 * SumOfLanes(sum);
  out.scale = 0.5f * _mm256_cvtss_f32(PowerOfTwo(unit));
  return true;
}

bool Prepare(const bf16* x, int32_t cols, uint8_t* out) {
  auto* const groups = reinterpret_cast<Group*>(out);
  for (int32_t g = 0; g < cols / kGroupCols; ++g) {
    if (!PrepareGroup(x + g * kGroupCols, groups[g])) return false;
  }
  return true;
}

}  // namespace

const PanelKernels kAvx2Fp4Panels = {.x_group_bytes = sizeof(Group),
                                     .prepare = Prepare,
                                     .fallback = &kAvx2Panels,
                                     .stream_rows = 4,
                                     .stream_panels = StreamPanels,
                                     .tile_panels = 1,
                                     .tile_rows = 2,
                                     .tile_groups = 16,
                                     .weight_bytes = 1,
                                     .stream = Stream,
                                     .decode = Decode,
                                     .round = RoundRowsAvx2,
                                     .tile = Tile};

}  // namespace deepinfer
