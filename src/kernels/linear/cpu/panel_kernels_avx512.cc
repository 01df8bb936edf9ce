// AVX-512 BF16: pairs of columns by VDPBF16PS over exactly decoded codes, 16 rows a vector.

#include <immintrin.h>

#include "kernels/cpu/dot_avx512.h"
#include "kernels/cpu/simd_avx512.h"
#include "kernels/linear/cpu/decoder_avx512.h"
#include "kernels/linear/cpu/panel_kernels.h"

namespace deepinfer {
namespace {

template <WeightFormat kFormat, int kPanels, int kRows>
void StreamRows(const uint8_t* panels, int32_t num_groups, PanelRows rows, float* totals) {
  constexpr int kVectors = Avx512Decoder<kFormat>::kVectors;
  constexpr int64_t kBytes = PanelGroupBytes(kFormat);
  constexpr int64_t kAhead = 4096;  // bytes; into the next panel at the end
  // What four panels have ahead would not stay in the L1 cache. Measured on a Zen 4: FP4 reads at
  // 0.84 instead of 0.71 of plain reads; one stream of FP8 is faster into L1.
  constexpr auto kHint = kFormat == WeightFormat::kFp4 ? _MM_HINT_T1 : _MM_HINT_T0;
  const Avx512Decoder<kFormat> decoder;
  const int64_t panel_bytes = PanelBytes(kFormat, num_groups * kGroupCols);
  const uint8_t* const scales = panels + num_groups * kBytes;
  const uint16_t* x[kRows];
  __m512 total[kRows][kPanels];
  for (int t = 0; t < kRows; ++t) {
    x[t] = rows.Row<uint16_t>(t);
    for (int p = 0; p < kPanels; ++p) total[t][p] = _mm512_setzero_ps();
  }
  for (int64_t g = 0; g < num_groups; ++g) {
    __m512 sum[kRows][kPanels];
    for (int t = 0; t < kRows; ++t) {
      for (int p = 0; p < kPanels; ++p) sum[t][p] = _mm512_setzero_ps();
    }
#pragma GCC unroll 16
    for (int b = 0; b < kPairs / kVectors; ++b) {
      for (int p = 0; p < kPanels; ++p) {
        const uint8_t* const codes = panels + p * panel_bytes + g * kBytes + b * 64;
        _mm_prefetch(reinterpret_cast<const char*>(codes + kAhead), kHint);
        __m512i weights[kVectors];
        decoder.Block(codes, weights);
        for (int i = 0; i < kVectors; ++i) {
          for (int t = 0; t < kRows; ++t) {
            sum[t][p] =
                DotPairs(sum[t][p], weights[i], BroadcastPair(x[t], g * kPairs + b * kVectors + i));
          }
        }
      }
    }
    for (int p = 0; p < kPanels; ++p) {
      const __m512 scale = Avx512Decoder<kFormat>::Scale(scales + p * panel_bytes, g);
      for (int t = 0; t < kRows; ++t) {
        total[t][p] = _mm512_fmadd_ps(sum[t][p], scale, total[t][p]);
      }
    }
  }
  for (int t = 0; t < kRows; ++t) {
    for (int p = 0; p < kPanels; ++p) {
      _mm512_storeu_ps(totals + (t * kPanels + p) * kPanelRows, total[t][p]);
    }
  }
}

// Measured on a Zen 4: FP4 is bound by its decoding and gains by more chains, wider codes by one
// unbroken stream of memory.
constexpr int32_t StreamPanels(WeightFormat format, int32_t num_rows) {
  if (format == WeightFormat::kFp4 && num_rows <= 2) return 4;
  return format != WeightFormat::kBf16 && num_rows > 2 && num_rows <= 4 ? 2 : 1;
}

template <WeightFormat kFormat, int kRows>
void StreamAbreast(const uint8_t* panels, int32_t num_panels, int32_t num_groups, PanelRows x,
                   float* totals) {
  if (num_panels == 1) return StreamRows<kFormat, 1, kRows>(panels, num_groups, x, totals);
  StreamRows<kFormat, StreamPanels(kFormat, kRows), kRows>(panels, num_groups, x, totals);
}

template <WeightFormat kFormat>
void StreamFormat(const uint8_t* panels, int32_t num_panels, int32_t num_groups, PanelRows x,
                  int32_t num_rows, float* totals) {
  switch (num_rows) {
    case 1:
      return StreamAbreast<kFormat, 1>(panels, num_panels, num_groups, x, totals);
    case 2:
      return StreamAbreast<kFormat, 2>(panels, num_panels, num_groups, x, totals);
    case 3:
      return StreamAbreast<kFormat, 3>(panels, num_panels, num_groups, x, totals);
    case 4:
      return StreamAbreast<kFormat, 4>(panels, num_panels, num_groups, x, totals);
    case 5:
      return StreamAbreast<kFormat, 5>(panels, num_panels, num_groups, x, totals);
    case 6:
      return StreamAbreast<kFormat, 6>(panels, num_panels, num_groups, x, totals);
    case 7:
      return StreamAbreast<kFormat, 7>(panels, num_panels, num_groups, x, totals);
    default:
      return StreamAbreast<kFormat, 8>(panels, num_panels, num_groups, x, totals);
  }
}

void Stream(WeightFormat format, const uint8_t* panels, int32_t num_panels, int32_t num_groups,
            PanelRows x, int32_t num_rows, float* totals) {
  switch (format) {
    case WeightFormat::kFp4:
      return StreamFormat<WeightFormat::kFp4>(panels, num_panels, num_groups, x, num_rows, totals);
    case WeightFormat::kFp8:
      return StreamFormat<WeightFormat::kFp8>(panels, num_panels, num_groups, x, num_rows, totals);
    default:
      return StreamFormat<WeightFormat::kBf16>(panels, num_panels, num_groups, x, num_rows, totals);
  }
}

template <WeightFormat kFormat>
void DecodeFormat(const uint8_t* panel, int32_t num_groups, int32_t begin, int32_t index,
                  const DecodedPanels& out) {
  constexpr int kVectors = Avx512Decoder<kFormat>::kVectors;
  constexpr int64_t kBytes = PanelGroupBytes(kFormat);
  const Avx512Decoder<kFormat> decoder;
  const int64_t first = int64_t{index} * out.num_groups;
  auto* weights = static_cast<uint8_t*>(out.weights) + first * kPairs * 64;
  float* scales = out.scales + first * kPanelRows;
  for (int64_t g = begin; g < begin + out.num_groups; ++g, scales += kPanelRows) {
    for (int b = 0; b < kPairs / kVectors; ++b, weights += kVectors * 64) {
      const uint8_t* const codes = panel + g * kBytes + b * 64;
      _mm_prefetch(reinterpret_cast<const char*>(codes + 2048), _MM_HINT_T0);
      __m512i vectors[kVectors];
      decoder.Block(codes, vectors);
      for (int i = 0; i < kVectors; ++i) _mm512_store_si512(weights + i * 64, vectors[i]);
    }
    _mm512_storeu_ps(scales, Avx512Decoder<kFormat>::Scale(panel + num_groups * kBytes, g));
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

template <int kPanels, int kRows>
void TileRows(const DecodedPanels& w, PanelRows rows, float* totals, int64_t row_stride) {
  const auto* const weights = static_cast<const uint8_t*>(w.weights);
  const int64_t panel_bytes = int64_t{w.num_groups} * kPairs * 64;
  for (int64_t g = 0; g < w.num_groups; ++g) {
    __m512 sum[kRows][kPanels];
    for (int t = 0; t < kRows; ++t) {
      for (int p = 0; p < kPanels; ++p) sum[t][p] = _mm512_setzero_ps();
    }
#pragma GCC unroll 4
    for (int64_t i = g * kPairs; i < (g + 1) * kPairs; ++i) {
      __m512i pair[kPanels];
      for (int p = 0; p < kPanels; ++p) {
        pair[p] = _mm512_load_si512(weights + p * panel_bytes + i * 64);
      }
      for (int t = 0; t < kRows; ++t) {
        const __m512i xt = BroadcastPair(rows.Row<uint16_t>(t), i);
        for (int p = 0; p < kPanels; ++p) sum[t][p] = DotPairs(sum[t][p], pair[p], xt);
      }
    }
    for (int p = 0; p < kPanels; ++p) {
      const __m512 scale = _mm512_loadu_ps(w.scales + (int64_t{p} * w.num_groups + g) * kPanelRows);
      for (int t = 0; t < kRows; ++t) {
        float* const total = totals + t * row_stride + p * kPanelRows;
        _mm512_storeu_ps(total, _mm512_fmadd_ps(sum[t][p], scale, _mm512_loadu_ps(total)));
      }
    }
  }
}

template <int kPanels>
void TilePanels(const DecodedPanels& w, PanelRows x, int32_t num_rows, float* totals,
                int64_t row_stride) {
  switch (num_rows) {
    case 1:
      return TileRows<kPanels, 1>(w, x, totals, row_stride);
    case 2:
      return TileRows<kPanels, 2>(w, x, totals, row_stride);
    case 3:
      return TileRows<kPanels, 3>(w, x, totals, row_stride);
    case 4:
      return TileRows<kPanels, 4>(w, x, totals, row_stride);
    case 5:
      return TileRows<kPanels, 5>(w, x, totals, row_stride);
    default:
      return TileRows<kPanels, 6>(w, x, totals, row_stride);
  }
}

void Tile(const DecodedPanels& w, int32_t num_panels, PanelRows x, int32_t num_rows, float* totals,
          int64_t row_stride) {
  if (num_panels == 1) return TilePanels<1>(w, x, num_rows, totals, row_stride);
  TilePanels<4>(w, x, num_rows, totals, row_stride);
}

}  // namespace

void RoundRowsAvx512(const float* values, int64_t stride, int64_t num_rows, int64_t count,
                     bf16* out, int64_t out_stride) {
  for (int64_t t = 0; t < num_rows; ++t, values += stride, out += out_stride) {
    for (int64_t i = 0; i < count; i += kPanelRows) {
      const auto here = static_cast<__mmask16>(simd::FirstOf32(count - i));
      const __m512i bits = simd::Bf16InUpperHalves(_mm512_maskz_loadu_ps(here, values + i));
      _mm512_mask_cvtepi32_storeu_epi16(out + i, here, _mm512_srli_epi32(bits, 16));
    }
  }
}

const PanelKernels kAvx512Panels = {.x_group_bytes = 2 * kGroupCols,
                                    .prepare = nullptr,
                                    .fallback = nullptr,
                                    .stream_rows = 8,
                                    .stream_panels = StreamPanels,
                                    .tile_panels = 4,
                                    .tile_rows = 6,
                                    .tile_groups = 16,
                                    .weight_bytes = 2,
                                    .stream = Stream,
                                    .decode = Decode,
                                    .round = RoundRowsAvx512,
                                    .tile = Tile};

}  // namespace deepinfer
