// AMX-BF16: a group of a decoded panel is one tile of 16 column pairs, multiplied with up to 16
// rows of x by TDPBF16PS. Scales are powers of two, so they go into the weights, exactly: e4m3 and
// e2m1 have exponents from -9 to 8, usual scales from -63 to 63, and BF16 from -126 to 127.

#include <immintrin.h>

#include <algorithm>

#include "kernels/cpu/tiles_amx.h"
#include "kernels/linear/cpu/decoder_avx512.h"
#include "kernels/linear/cpu/panel_kernels.h"

namespace deepinfer {
namespace {

constexpr int kTileRows = 16;
constexpr int64_t kTileBytes = 1024;

// Tiles 0..3 are sums [block of rows][panel], 4 and 5 the blocks of x, 6 and 7 the panels.
// By the rows of x.
struct ShapesOfRows {
  TileShapes shapes[2 * kTileRows + 1];
  constexpr ShapesOfRows() {
    for (int rows = 1; rows <= 2 * kTileRows; ++rows) {
      for (int block = 0; block < 2; ++block) {
        const int in_block = std::clamp(rows - block * kTileRows, 0, kTileRows);
        for (const int tile : {2 * block, 2 * block + 1, 4 + block}) {
          shapes[rows].Set(tile, in_block);
        }
        shapes[rows].Set(6 + block, kTileRows);
      }
    }
  }
};
constexpr ShapesOfRows kShapes;

// A group's scales, on their way into BF16 weights: (scale byte - 127) is added to exponents.
template <WeightFormat kFormat>
struct Scaling;

template <>
struct Scaling<WeightFormat::kFp8> {
  static Avx512Decoder<WeightFormat::kFp8> MakeDecoder() { return {}; }
  Scaling(const uint8_t* scales, int64_t group)
      : more(_mm512_set1_epi16(static_cast<short>((scales[group] - 127) * 128))) {}
  __m512i Apply(__m512i weights) const {
    const __mmask32 not_zero = _mm512_test_epi16_mask(weights, _mm512_set1_epi16(0x7fff));
    return _mm512_mask_add_epi16(weights, not_zero, weights, more);
  }
  const __m512i more;
};

// Weights come with the largest usual scale; less is a subtraction that leaves zeros alone because
// it saturates. There is no -0 for it to spoil.
template <>
struct Scaling<WeightFormat::kFp4> {
  static constexpr int kLargest = 190;
  static Avx512Decoder<WeightFormat::kFp4> MakeDecoder() {
    const __m512i values = Fp4Table(), largest = _mm512_set1_epi16((kLargest - 127) * 128);
    const __mmask32 not_zero = _mm512_test_epi16_mask(values, _mm512_set1_epi16(0x7fff));
    return {.table = _mm512_maskz_add_epi16(not_zero, values, largest)};
  }
  Scaling(const uint8_t* scales, int64_t group) : less(Less(scales + group * kPanelRows)) {}
  __m512i Apply(__m512i weights) const { return _mm512_subs_epu16(weights, less); }
  static __m512i Less(const uint8_t* scales) {
    const __m128i bytes = _mm_load_si128(reinterpret_cast<const __m128i*>(scales));
    const __m512i steps =
        _mm512_sub_epi32(_mm512_set1_epi32(kLargest), _mm512_cvtepu8_epi32(bytes));
    return _mm512_or_si512(_mm512_slli_epi32(steps, 7), _mm512_slli_epi32(steps, 23));
  }
  const __m512i less;
};

template <>
struct Scaling<WeightFormat::kBf16> {
  static Avx512Decoder<WeightFormat::kBf16> MakeDecoder() { return {}; }
  Scaling(const uint8_t*, int64_t) {}
  __m512i Apply(__m512i weights) const { return weights; }
};

template <WeightFormat kFormat>
void DecodeFormat(const uint8_t* panel, int32_t num_groups, int32_t begin, int32_t index,
                  const DecodedPanels& out) {
  constexpr int kVectors = Avx512Decoder<kFormat>::kVectors;
  constexpr int64_t kBytes = PanelGroupBytes(kFormat);
  const auto decoder = Scaling<kFormat>::MakeDecoder();
  auto* weights = static_cast<uint8_t*>(out.weights) + index * out.num_groups * kTileBytes;
  for (int64_t g = begin; g < begin + out.num_groups; ++g) {
    const Scaling<kFormat> scaling(panel + num_groups * kBytes, g);
    for (int b = 0; b < kPairs / kVectors; ++b, weights += kVectors * 64) {
      const uint8_t* const codes = panel + g * kBytes + b * 64;
      _mm_prefetch(reinterpret_cast<const char*>(codes + 2048), _MM_HINT_T0);
      __m512i vectors[kVectors];
      decoder.Block(codes, vectors);
      for (int i = 0; i < kVectors; ++i) {
        _mm512_store_si512(weights + i * 64, scaling.Apply(vectors[i]));
      }
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

template <int kPanels, int kBlocks>
void MultiplyTiles(const DecodedPanels& w, PanelRows rows, float* totals, int64_t row_stride) {
  const int64_t x_bytes = rows.stride, total_bytes = row_stride * 4;
  const auto* const x = rows.Row<uint16_t>(0);
  const auto* const second_x = rows.Row<uint16_t>(kTileRows);
  float* const second_totals = totals + kTileRows * row_stride;
  const auto* const weights = static_cast<const uint8_t*>(w.weights);
  const uint8_t* const second_weights = weights + w.num_groups * kTileBytes;
  _tile_loadd(0, totals, total_bytes);
  if constexpr (kPanels == 2) _tile_loadd(1, totals + kPanelRows, total_bytes);
  if constexpr (kBlocks == 2) _tile_loadd(2, second_totals, total_bytes);
  if constexpr (kPanels * kBlocks == 4) _tile_loadd(3, second_totals + kPanelRows, total_bytes);
  for (int64_t g = 0; g < w.num_groups; ++g) {
    _tile_loadd(4, x + g * kGroupCols, x_bytes);
    _tile_loadd(6, weights + g * kTileBytes, 64);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kPanels == 2) {
      _tile_loadd(7, second_weights + g * kTileBytes, 64);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (kBlocks == 2) {
      _tile_loadd(5, second_x + g * kGroupCols, x_bytes);
      _tile_dpbf16ps(2, 5, 6);
    }
    if constexpr (kPanels * kBlocks == 4) _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, totals, total_bytes);
  if constexpr (kPanels == 2) _tile_stored(1, totals + kPanelRows, total_bytes);
  if constexpr (kBlocks == 2) _tile_stored(2, second_totals, total_bytes);
  if constexpr (kPanels * kBlocks == 4) _tile_stored(3, second_totals + kPanelRows, total_bytes);
}

// Tiles are given back after every call: a thread that waits with tiles in use keeps its core from
// sleeping deeply.
void Tile(const DecodedPanels& w, int32_t num_panels, PanelRows x, int32_t num_rows, float* totals,
          int64_t row_stride) {
  ReadsMemory();
  _tile_loadconfig(&kShapes.shapes[num_rows]);
  if (num_rows > kTileRows) {
    num_panels == 2 ? MultiplyTiles<2, 2>(w, x, totals, row_stride)
                    : MultiplyTiles<1, 2>(w, x, totals, row_stride);
  } else {
    num_panels == 2 ? MultiplyTiles<2, 1>(w, x, totals, row_stride)
                    : MultiplyTiles<1, 1>(w, x, totals, row_stride);
  }
  _tile_release();
}

}  // namespace

const PanelKernels kAmxPanels = {.x_group_bytes = 2 * kGroupCols,
                                 .prepare = nullptr,
                                 .fallback = nullptr,
                                 .stream_rows = 0,
                                 .stream_panels = nullptr,
                                 .tile_panels = 2,
                                 .tile_rows = 2 * kTileRows,
                                 .tile_groups = 16,
                                 .weight_bytes = 2,
                                 .stream = nullptr,
                                 .decode = Decode,
                                 .round = RoundRowsAvx512,
                                 .tile = Tile};

}  // namespace deepinfer
