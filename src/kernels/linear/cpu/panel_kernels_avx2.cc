// AVX2: codes become exact F32 values, products by FMA; a panel is two vectors of eight rows.

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "kernels/linear/cpu/decode_rows.h"
#include "kernels/linear/cpu/panel_kernels.h"

namespace deepinfer {
namespace {

constexpr int kHalves = 2;  // vectors of eight rows

// A block of 64 bytes -> kCols columns of [2][8] floats; column c by Column(). `Load` shares what
// the columns have in common. The values lack the factor kFactor.
template <WeightFormat kFormat>
struct Decoder;

template <>
struct Decoder<WeightFormat::kFp4> {
  static constexpr WeightFormat kFormat = WeightFormat::kFp4;
  static constexpr int kCols = 8;
  struct Block {
    __m256i codes[kHalves];
  };
  const __m256 magnitudes = _mm256_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f);
  const __m256i sign = _mm256_set1_epi32(static_cast<int>(0x80000000u));

  static Block Load(const uint8_t* codes) {
    return {{_mm256_load_si256(reinterpret_cast<const __m256i*>(codes)),
             _mm256_load_si256(reinterpret_cast<const __m256i*>(codes + 32))}};
  }
  // VPERMPS reads three index bits: the magnitude. Bit 3 of the nibble is the sign.
  template <int kCol>
  __m256 Column(const Block& block, int half) const {
    constexpr int kShift = kCol / 2 * 4 + kCol % 2 * 16;
    const __m256i v = block.codes[half];
    const __m256 magnitude = _mm256_permutevar8x32_ps(magnitudes, _mm256_srli_epi32(v, kShift));
    const __m256i negative = _mm256_and_si256(_mm256_slli_epi32(v, 28 - kShift), sign);
    return _mm256_xor_ps(magnitude, _mm256_castsi256_ps(negative));
  }
  static __m256 Scale(const uint8_t* scales, int64_t group, int half) {
    const auto* bytes = reinterpret_cast<const __m128i*>(scales + group * kPanelRows + half * 8);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu8_epi32(_mm_loadl_epi64(bytes)), 23));
  }
};

template <>
struct Decoder<WeightFormat::kFp8> {
  static constexpr WeightFormat kFormat = WeightFormat::kFp8;
  static constexpr int kCols = 4;
  struct Block {
    __m256i even[kHalves], odd[kHalves];  // F16 of 2^-8 of the codes: eight rows, then eight more
  };
  // e4m3 in the upper bits of an F16 keeps its mantissa; the exponent bias is larger by 8.
  static Block Load(const uint8_t* codes) {
    const __m256i keep = _mm256_set1_epi16(static_cast<short>(0xbf80));
    Block block;
    for (int half = 0; half < kHalves; ++half) {
      const __m256i v = _mm256_permute4x64_epi64(
          _mm256_load_si256(reinterpret_cast<const __m256i*>(codes + half * 32)), 0xd8);
      block.even[half] = _mm256_and_si256(_mm256_srai_epi16(_mm256_slli_epi16(v, 8), 1), keep);
      block.odd[half] = _mm256_and_si256(_mm256_srai_epi16(v, 1), keep);
    }
    return block;
  }
  template <int kCol>
  __m256 Column(const Block& block, int half) const {
    const __m256i pair = kCol % 2 == 0 ? block.even[half] : block.odd[half];
    return _mm256_cvtph_ps(kCol < 2 ? _mm256_castsi256_si128(pair)
                                    : _mm256_extracti128_si256(pair, 1));
  }
  static __m256 Scale(const uint8_t* scales, int64_t group, int) {  // times 2^8
    return _mm256_castsi256_ps(_mm256_set1_epi32((scales[group] + 8) << 23));
  }
};

// The same values times 2^-120: codes moved into the exponent and mantissa of an F32, in fewer
// steps than by way of F16. Codes below 2^-6 are subnormal there, so the rows of x come times 2^100
// (PrepareScaled): then no product is. Scaling by powers of two leaves every sum's bits as they
// are.
struct ShiftedFp8 {
  static constexpr WeightFormat kFormat = WeightFormat::kFp8;
  static constexpr int kCols = 4;
  struct Block {
    __m256i low[kHalves], high[kHalves];  // a row's columns 0 and 1, 2 and 3, above zeros
  };
  static Block Load(const uint8_t* codes) {
    Block block;
    for (int half = 0; half < kHalves; ++half) {
      const __m256i v = _mm256_load_si256(reinterpret_cast<const __m256i*>(codes + half * 32));
      block.low[half] = _mm256_unpacklo_epi16(_mm256_setzero_si256(), v);
      block.high[half] = _mm256_unpackhi_epi16(_mm256_setzero_si256(), v);
    }
    return block;
  }
  template <int kCol>
  __m256 Column(const Block& block, int half) const {
    const __m256i pair = kCol < 2 ? block.low[half] : block.high[half];
    const __m256i top = kCol % 2 == 0 ? _mm256_slli_epi32(pair, 8) : pair;
    const __m256i keep = _mm256_set1_epi32(static_cast<int>(0x87f00000u));
    return _mm256_castsi256_ps(_mm256_and_si256(_mm256_srai_epi32(top, 4), keep));
  }
  static __m256 Scale(const uint8_t* scales, int64_t group, int) {  // times 2^(120 - 100)
    return _mm256_castsi256_ps(_mm256_set1_epi32((scales[group] + 20) << 23));
  }
};

template <>
struct Decoder<WeightFormat::kBf16> {
  static constexpr WeightFormat kFormat = WeightFormat::kBf16;
  static constexpr int kCols = 2;
  struct Block {
    __m256i pairs[kHalves];
  };
  static Block Load(const uint8_t* codes) {
    return {{_mm256_load_si256(reinterpret_cast<const __m256i*>(codes)),
             _mm256_load_si256(reinterpret_cast<const __m256i*>(codes + 32))}};
  }
  template <int kCol>
  __m256 Column(const Block& block, int half) const {
    const __m256i v = block.pairs[half];
    const __m256i upper = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
    return _mm256_castsi256_ps(kCol == 0 ? _mm256_slli_epi32(v, 16) : _mm256_and_si256(v, upper));
  }
  static __m256 Scale(const uint8_t*, int64_t, int) { return _mm256_set1_ps(1.0f); }
};

// body.template operator()<c>() for c = 0 .. kCount-1.
template <int kCount, int kFirst = 0, typename Body>
inline __attribute__((always_inline)) void ForColumns(const Body& body) {
  if constexpr (kFirst < kCount) {
    body.template operator()<kFirst>();
    ForColumns<kCount, kFirst + 1>(body);
  }
}

template <typename D, int kPanels, int kRows>
void StreamRows(const uint8_t* panels, int32_t num_groups, PanelRows rows, float* totals) {
  constexpr int64_t kBytes = PanelGroupBytes(D::kFormat);
  constexpr int64_t kAhead = 4096;  // bytes; into the next panel at the end
  const D decoder;
  const int64_t panel_bytes = PanelBytes(D::kFormat, num_groups * kGroupCols);
  const uint8_t* const scales = panels + num_groups * kBytes;
  for (int i = 0; i < kRows * kPanels * kHalves; ++i) {
    _mm256_storeu_ps(totals + 8 * i, _mm256_setzero_ps());
  }
  for (int64_t g = 0; g < num_groups; ++g) {
    __m256 sum[kRows][kPanels][kHalves];
    for (int t = 0; t < kRows; ++t) {
      for (int p = 0; p < kPanels; ++p) sum[t][p][0] = sum[t][p][1] = _mm256_setzero_ps();
    }
    for (int b = 0; b < kGroupCols / D::kCols; ++b) {
      typename D::Block block[kPanels];
      for (int p = 0; p < kPanels; ++p) {
        const uint8_t* const codes = panels + p * panel_bytes + g * kBytes + b * 64;
        _mm_prefetch(reinterpret_cast<const char*>(codes + kAhead), _MM_HINT_T0);
        block[p] = D::Load(codes);
      }
      const int64_t first = g * kGroupCols + b * D::kCols;
      ForColumns<D::kCols>([&]<int kCol>() __attribute__((always_inline)) {
        __m256 w[kPanels][kHalves];
        for (int p = 0; p < kPanels; ++p) {
          for (int h = 0; h < kHalves; ++h) w[p][h] = decoder.template Column<kCol>(block[p], h);
        }
        for (int t = 0; t < kRows; ++t) {
          const __m256 xt = _mm256_broadcast_ss(rows.Row<float>(t) + first + kCol);
          for (int p = 0; p < kPanels; ++p) {
            for (int h = 0; h < kHalves; ++h) {
              sum[t][p][h] = _mm256_fmadd_ps(w[p][h], xt, sum[t][p][h]);
            }
          }
        }
      });
    }
    for (int p = 0; p < kPanels; ++p) {
      for (int h = 0; h < kHalves; ++h) {
        const __m256 scale = D::Scale(scales + p * panel_bytes, g, h);
        for (int t = 0; t < kRows; ++t) {
          float* const total = totals + (t * kPanels + p) * kPanelRows + 8 * h;
          _mm256_storeu_ps(total, _mm256_fmadd_ps(sum[t][p][h], scale, _mm256_loadu_ps(total)));
        }
      }
    }
  }
}

// A group's sum is a chain of 32 FMAs; one row of x needs two panels to fill the multipliers.
int32_t StreamPanels(WeightFormat /*format*/, int32_t num_rows) { return num_rows == 1 ? 2 : 1; }

template <typename D>
void StreamFormat(const uint8_t* panels, int32_t num_panels, int32_t num_groups, PanelRows x,
                  int32_t num_rows, float* totals) {
  switch (num_rows) {
    case 1:
      return num_panels == 2 ? StreamRows<D, 2, 1>(panels, num_groups, x, totals)
                             : StreamRows<D, 1, 1>(panels, num_groups, x, totals);
    case 2:
      return StreamRows<D, 1, 2>(panels, num_groups, x, totals);
    case 3:
      return StreamRows<D, 1, 3>(panels, num_groups, x, totals);
    default:
      return StreamRows<D, 1, 4>(panels, num_groups, x, totals);
  }
}

void Stream(WeightFormat format, const uint8_t* panels, int32_t num_panels, int32_t num_groups,
            PanelRows x, int32_t num_rows, float* totals) {
  switch (format) {
    case WeightFormat::kFp4:
      return StreamFormat<Decoder<WeightFormat::kFp4>>(panels, num_panels, num_groups, x, num_rows,
                                                       totals);
    case WeightFormat::kFp8:
      return StreamFormat<Decoder<WeightFormat::kFp8>>(panels, num_panels, num_groups, x, num_rows,
                                                       totals);
    default:
      return StreamFormat<Decoder<WeightFormat::kBf16>>(panels, num_panels, num_groups, x, num_rows,
                                                        totals);
  }
}

void StreamShifted(WeightFormat /*format: FP8*/, const uint8_t* panels, int32_t num_panels,
                   int32_t num_groups, PanelRows x, int32_t num_rows, float* totals) {
  StreamFormat<ShiftedFp8>(panels, num_panels, num_groups, x, num_rows, totals);
}

template <WeightFormat kFormat>
void DecodeFormat(const uint8_t* panel, int32_t num_groups, int32_t begin, int32_t index,
                  const DecodedPanels& out) {
  using D = Decoder<kFormat>;
  constexpr int64_t kBytes = PanelGroupBytes(kFormat);
  const D decoder;
  const int64_t first = int64_t{index} * out.num_groups;
  float* weights = static_cast<float*>(out.weights) + first * kGroupCols * kPanelRows;
  float* scales = out.scales + first * kPanelRows;
  for (int64_t g = begin; g < begin + out.num_groups; ++g, scales += kPanelRows) {
    for (int b = 0; b < kGroupCols / D::kCols; ++b, weights += D::kCols * kPanelRows) {
      const uint8_t* const codes = panel + g * kBytes + b * 64;
      _mm_prefetch(reinterpret_cast<const char*>(codes + 2048), _MM_HINT_T0);
      const auto block = D::Load(codes);
      ForColumns<D::kCols>([&]<int kCol>() __attribute__((always_inline)) {
        for (int h = 0; h < kHalves; ++h) {
          _mm256_storeu_ps(weights + kCol * kPanelRows + 8 * h,
                           decoder.template Column<kCol>(block, h));
        }
      });
    }
    for (int h = 0; h < kHalves; ++h) {
      _mm256_storeu_ps(scales + 8 * h, D::Scale(panel + num_groups * kBytes, g, h));
    }
  }
}

void Decode(WeightFormat format, const uint8_t* panel, int32_t num_groups, int32_t begin,
            int32_t index, const DecodedPanels& out) {
  switch (format) {
    case WeightFormat::kFp4:
      return DecodeFormat<WeightFormat::kFp4>(panel, num_groups, begin, index, out);
    case WeightFormat::kFp8:
      return DecodeFormat<WeightFormat::kFp8>(panel, num_groups, begin, index, out);
    default:
      return DecodeFormat<WeightFormat::kBf16>(panel, num_groups, begin, index, out);
  }
}

// A row of x as F32, then zeros up to whole groups.
bool Prepare(const bf16* x, int32_t cols, uint8_t* out) {
  auto* const row = reinterpret_cast<float*>(out);
  simd::DecodeBf16(x, cols, row);
  std::fill(row + cols, row + NumGroups(cols) * kGroupCols, 0.0f);
  return true;
}

// A row of x as F32, times 2^100. Refuses values so large or small that a sum might overflow or
// lose bits with this factor or without it. Requires: whole groups.
bool PrepareScaled(const bf16* x, int32_t cols, uint8_t* out) {
  auto* const row = reinterpret_cast<float*>(out);
  const __m256 sign = _mm256_set1_ps(-0.0f);
  __m256 fits = _mm256_castsi256_ps(_mm256_set1_epi32(-1));
  for (int32_t k = 0; k < cols; k += 8) {
    const __m256 value = simd::Load(x + k);
    const __m256 magnitude = _mm256_andnot_ps(sign, value);
    const __m256 is_zero = _mm256_cmp_ps(magnitude, _mm256_setzero_ps(), _CMP_EQ_OQ);
    const __m256 is_large = _mm256_cmp_ps(magnitude, _mm256_set1_ps(0x1p-60f), _CMP_GE_OQ);
    const __m256 is_small = _mm256_cmp_ps(magnitude, _mm256_set1_ps(0x1p20f), _CMP_LE_OQ);
    fits = _mm256_and_ps(fits, _mm256_or_ps(is_zero, _mm256_and_ps(is_large, is_small)));
    _mm256_storeu_ps(row + k, _mm256_mul_ps(value, _mm256_set1_ps(0x1p100f)));
  }
  return _mm256_movemask_ps(fits) == 0xff;
}

template <int kRows>
void TileRows(const DecodedPanels& w, PanelRows rows, float* totals, int64_t row_stride) {
  const auto* const weights = static_cast<const float*>(w.weights);
  for (int64_t g = 0; g < w.num_groups; ++g) {
    __m256 sum[kRows][kHalves];
    for (int t = 0; t < kRows; ++t) sum[t][0] = sum[t][1] = _mm256_setzero_ps();
#pragma GCC unroll 4
    for (int64_t k = g * kGroupCols; k < (g + 1) * kGroupCols; ++k) {
      const __m256 w0 = _mm256_loadu_ps(weights + k * kPanelRows);
      const __m256 w1 = _mm256_loadu_ps(weights + k * kPanelRows + 8);
      for (int t = 0; t < kRows; ++t) {
        const __m256 xt = _mm256_broadcast_ss(rows.Row<float>(t) + k);
        sum[t][0] = _mm256_fmadd_ps(w0, xt, sum[t][0]);
        sum[t][1] = _mm256_fmadd_ps(w1, xt, sum[t][1]);
      }
    }
    for (int h = 0; h < kHalves; ++h) {
      const __m256 scale = _mm256_loadu_ps(w.scales + g * kPanelRows + 8 * h);
      for (int t = 0; t < kRows; ++t) {
        float* const total = totals + t * row_stride + 8 * h;
        _mm256_storeu_ps(total, _mm256_fmadd_ps(sum[t][h], scale, _mm256_loadu_ps(total)));
      }
    }
  }
}

void Tile(const DecodedPanels& w, int32_t /*num_panels: one*/, PanelRows x, int32_t num_rows,
          float* totals, int64_t row_stride) {
  switch (num_rows) {
    case 1:
      return TileRows<1>(w, x, totals, row_stride);
    case 2:
      return TileRows<2>(w, x, totals, row_stride);
    case 3:
      return TileRows<3>(w, x, totals, row_stride);
    case 4:
      return TileRows<4>(w, x, totals, row_stride);
    case 5:
      return TileRows<5>(w, x, totals, row_stride);
    default:
      return TileRows<6>(w, x, totals, row_stride);
  }
}

}  // namespace

void RoundRowsAvx2(const float* values, int64_t stride, int64_t num_rows, int64_t count, bf16* out,
                   int64_t out_stride) {
  for (int64_t t = 0; t < num_rows; ++t, values += stride, out += out_stride) {
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) simd::Store(out + i, _mm256_loadu_ps(values + i));
    for (; i < count; ++i) out[i] = ToBf16(values[i]);
  }
}

const PanelKernels kAvx2Panels = {.x_group_bytes = 4 * kGroupCols,
                                  .prepare = Prepare,
                                  .fallback = nullptr,
                                  .stream_rows = kFewRows,
                                  .stream_panels = StreamPanels,
                                  .tile_panels = 1,
                                  .tile_rows = 6,
                                  .tile_groups = 8,
                                  .weight_bytes = 4,
                                  .stream = Stream,
                                  .decode = Decode,
                                  .round = RoundRowsAvx2,
                                  .tile = Tile};

const PanelKernels kAvx2FewRowsFp8Panels = {.x_group_bytes = 4 * kGroupCols,
                                            .prepare = PrepareScaled,
                                            .fallback = &kAvx2Panels,
                                            .stream_rows = kFewRows,
                                            .stream_panels = StreamPanels,
                                            .tile_panels = 1,
                                            .tile_rows = 6,
                                            .tile_groups = 8,
                                            .weight_bytes = 4,
                                            .stream = StreamShifted,
                                            .decode = nullptr,
                                            .round = RoundRowsAvx2,
                                            .tile = nullptr};

}  // namespace deepinfer
