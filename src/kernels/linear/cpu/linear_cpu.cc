// The plain CPU form: weights become F32 (those that are not) a chunk of K of four rows at a time,
// once for up to 64 rows of x, and the products accumulate by FMA.
//
// Order of the sum of one output, a function of K alone: columns in chunks of 512; inside a chunk
// lane k % 8 in order of k; chunk sums lane by lane in order; the eight lanes by ReduceLanes.

#include "kernels/linear/cpu/linear_cpu.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/simd.h"
#include "kernels/linear/cpu/decode_rows.h"

namespace deepinfer {
namespace {

constexpr int64_t kChunk = 512;  // columns; four decoded rows of it stay in the L1 cache
constexpr int kRows = kF32TileWeights;
constexpr int kTokens = 3;  // rows of x in a tile: 4 x 3 accumulators fill the registers
constexpr int64_t kTokenBlock = 64;

// Of a piece of rows of W, on every thread.
struct PieceScratch {
  template <typename Memory>
  explicit PieceScratch(Memory& memory)
      : weights(memory.template Get<float>(kRows * kChunk)),
        sums(memory.template Get<float>(kTokenBlock * kRows * 8)) {}

  float* weights;  // [kRows, kChunk]
  float* sums;     // [kTokenBlock, kRows, 8]
};

void StoreOutput(const LinearParams& p, int64_t t, int64_t n, float value) {
  if (p.out != nullptr) {
    p.out[t * p.out_stride + n] = ToBf16(value);
  } else {
    p.out_f32[t * p.out_stride + n] = value;
  }
}

template <int kNumTokens>
void AccumulateTile(const float* w, int64_t w_stride, const float* x, int64_t x_stride,
                    int64_t count, float* sums) {
  __m256 acc[kNumTokens][kRows] = {};
  for (int64_t k = 0; k < count; k += 8) {
    __m256 xs[kNumTokens];
    for (int t = 0; t < kNumTokens; ++t) xs[t] = _mm256_loadu_ps(x + t * x_stride + k);
    for (int n = 0; n < kRows; ++n) {
      const __m256 weight = _mm256_loadu_ps(w + n * w_stride + k);
      for (int t = 0; t < kNumTokens; ++t) acc[t][n] = _mm256_fmadd_ps(weight, xs[t], acc[t][n]);
    }
  }
  for (int t = 0; t < kNumTokens; ++t) {
    for (int n = 0; n < kRows; ++n) {
      float* sum = sums + (t * kRows + n) * 8;
      _mm256_storeu_ps(sum, _mm256_add_ps(_mm256_loadu_ps(sum), acc[t][n]));
    }
  }
}

void Accumulate(const float* w, int64_t w_stride, const float* x, int64_t x_stride, int64_t count,
                int64_t num_tokens, float* sums) {
  constexpr decltype(&AccumulateTile<1>) kForms[] = {AccumulateTile<1>, AccumulateTile<2>,
                                                     AccumulateTile<kTokens>};
  kForms[num_tokens - 1](w, w_stride, x, x_stride, count, sums);
}

struct WeightRows {
  const float* data;
  int64_t stride;
};

// Columns [begin, begin + count) of kRows rows, padded with zeros to a multiple of 8: in their
// place where they are F32 already, else in `decoded` [kRows, kChunk]. Rows past the last stay as
// they are there.
WeightRows DecodeRows(const Matrix& w, int64_t first_row, int64_t begin, int64_t count,
                      float* decoded) {
  const int64_t num_rows = std::min<int64_t>(kRows, w.rows - first_row);
  if (w.format == WeightFormat::kF32 && num_rows == kRows && count % 8 == 0) {
    return {w.f32_data() + first_row * w.cols + begin, w.cols};
  }
  for (int64_t n = 0; n < num_rows; ++n) {
    simd::DecodeRow(w, first_row + n, begin, count, decoded + n * kChunk);
  }
  return {decoded, kChunk};
}

// x: [num_tokens, x_stride] F32, padded with zeros to a multiple of 8 columns.
void FourRows(const F32Tiles& tiles, const LinearParams& p, int64_t first_token, int64_t num_tokens,
              const float* x, int64_t x_stride, int64_t first_row, const PieceScratch& scratch) {
  const Matrix& w = p.weight;
  const int64_t num_rows = std::min<int64_t>(kRows, w.rows - first_row);
  float* const sums = scratch.sums;
  std::fill_n(sums, num_tokens * kRows * 8, 0.0f);
  for (int64_t begin = 0; begin < w.cols; begin += kChunk) {
    const int64_t count = std::min(kChunk, w.cols - begin);
    const auto [weights, stride] = DecodeRows(w, first_row, begin, count, scratch.weights);
    const int64_t padded = (count + 7) / 8 * 8;
    for (int64_t t = 0; t < num_tokens; t += tiles.most_tokens) {
      tiles.accumulate(weights, stride, x + t * x_stride + begin, x_stride, padded,
                       std::min(tiles.most_tokens, num_tokens - t), sums + t * kRows * 8);
    }
  }
  for (int64_t t = 0; t < num_tokens; ++t) {
    for (int64_t n = 0; n < num_rows; ++n) {
      const __m256 lanes = _mm256_loadu_ps(sums + (t * kRows + n) * 8);
      StoreOutput(p, first_token + t, first_row + n, simd::ReduceLanes(lanes));
    }
  }
}

double DecodeExactly(const Matrix& w, int64_t row, int64_t col) {
  const int64_t index = row * w.cols + col;
  if (w.format == WeightFormat::kFp8) {
    const uint8_t e = w.scale[row / 32 * (w.cols / 32) + col / 32];
    return std::ldexp(double{E4m3ToFloat(w.bytes()[index])}, e - 127);
  }
  const uint8_t code = static_cast<uint8_t>(w.bytes()[index / 2] >> (4 * (col % 2)));
  return std::ldexp(double{E2m1ToFloat(code & 15)}, w.scale[index / 32] - 127);
}

// Scales near the ends of E8M0 leave the range of F32 once multiplied: F64, in order of k.
void RowsInDouble(const LinearParams& p, int64_t row_begin, int64_t row_end) {
  const Matrix& w = p.weight;
  ScratchFrame frame;
  double* const weights = frame.Get<double>(w.cols);
  for (int64_t n = row_begin; n < row_end; ++n) {
    for (int64_t k = 0; k < w.cols; ++k) weights[k] = DecodeExactly(w, n, k);
    for (int64_t t = 0; t < p.num_tokens; ++t) {
      double sum = 0;
      for (int64_t k = 0; k < w.cols; ++k) sum += ToFloat(p.x[t * p.x_stride + k]) * weights[k];
      StoreOutput(p, t, n, static_cast<float>(sum));
    }
  }
}

bool NeedsDouble(const Matrix& w) {
  return (w.format == WeightFormat::kFp8 || w.format == WeightFormat::kFp4) && !w.usual_scales;
}

int64_t PaddedCols(const Matrix& w) { return (int64_t{w.cols} + 7) / 8 * 8; }

// x [num_tokens, PaddedCols] F32 of the rows from `first` on.
void DecodeTokens(const Backend& backend, const LinearParams& p, int64_t first, int64_t num_tokens,
                  float* x) {
  constexpr int64_t kStretchesPerPiece = 8;  // half a microsecond
  const int64_t cols = p.weight.cols, stretches = (cols + kChunk - 1) / kChunk;
  backend.ParallelFor(num_tokens * stretches, kStretchesPerPiece, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t t = i / stretches, column = i % stretches * kChunk;
      simd::DecodeBf16(p.x + (first + t) * p.x_stride + column, std::min(kChunk, cols - column),
                       x + t * PaddedCols(p.weight) + column);
    }
  });
}

}  // namespace

const F32Tiles kAvx2F32Tiles = {.most_tokens = kTokens, .accumulate = Accumulate};

void LinearCpu(const Backend& backend, const LinearParams& p, const F32Tiles& tiles) {
  const Matrix& w = p.weight;
  if (NeedsDouble(w)) {
    backend.ParallelFor(w.rows, 1,
                        [&](int64_t begin, int64_t end) { RowsInDouble(p, begin, end); });
    return;
  }
  const int64_t x_stride = PaddedCols(w);
  ScratchFrame frame;
  float* const x = frame.Get<float>(std::min<int64_t>(kTokenBlock, p.num_tokens) * x_stride);
  for (int64_t first = 0; first < p.num_tokens; first += kTokenBlock) {
    const int64_t num_tokens = std::min(kTokenBlock, p.num_tokens - first);
    DecodeTokens(backend, p, first, num_tokens, x);
    const int64_t num_groups = (w.rows + kRows - 1) / kRows;
    backend.ParallelFor(num_groups, 1, [&](int64_t begin, int64_t end) {
      ScratchFrame piece_frame;
      const PieceScratch scratch(piece_frame);
      for (int64_t g = begin; g < end; ++g) {
        FourRows(tiles, p, first, num_tokens, x, x_stride, g * kRows, scratch);
      }
    });
  }
}

ScratchBytes LinearCpuScratchBytes(const LinearParams& p) {
  ScratchMeter piece, rows, in_double;
  PieceScratch{piece};
  rows.Get<float>(std::min<int64_t>(kTokenBlock, p.num_tokens) * PaddedCols(p.weight));
  in_double.Get<double>(p.weight.cols);
  ScratchBytes bytes = OnAllThreads(piece.bytes()).Under(rows.bytes());
  bytes.Include(OnAllThreads(in_double.bytes()));
  return bytes;
}

}  // namespace deepinfer
