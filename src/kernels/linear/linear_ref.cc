#include <vector>

#include "kernels/fault.h"
#include "kernels/linear/linear.h"

namespace deepinfer {
namespace {

double ScaleAt(const Matrix& w, int64_t row, int64_t col) {
  if (w.scale == nullptr) return 1;
  const int64_t scale_row = w.format == WeightFormat::kFp8 ? row / 32 : row;
  const double scale = E8m0ToFloat(w.scale[scale_row * (w.cols / 32) + col / 32]);
  return DI_FAULT("wrong_block_scale") && row < 32 && col < 32 ? 2 * scale : scale;
}

double WeightAt(const Matrix& w, int64_t row, int64_t col) {
  const int64_t index = row * w.cols + col;
  switch (w.format) {
    case WeightFormat::kFp8:
      return E4m3ToFloat(w.bytes()[index]) * ScaleAt(w, row, col);
    case WeightFormat::kFp4: {
      const bool high = (col % 2 != 0) != DI_FAULT("swapped_nibbles");
      const uint8_t pair = w.bytes()[index / 2];
      return E2m1ToFloat(high ? pair >> 4 : pair & 15) * ScaleAt(w, row, col);
    }
    case WeightFormat::kBf16:
      return ToFloat(w.bf16_data()[index]);
    case WeightFormat::kF32:
      return w.f32_data()[index];
    case WeightFormat::kNone:
      break;
  }
  CHECK(false);
}

}  // namespace

void LinearRef(const Backend&, const LinearParams& p) {
  const Matrix& w = p.weight;
  std::vector<double> row(static_cast<size_t>(w.cols));
  for (int64_t n = 0; n < w.rows; ++n) {
    for (int64_t k = 0; k < w.cols; ++k) row[k] = WeightAt(w, n, k);
    for (int64_t t = 0; t < p.num_tokens; ++t) {
      double sum = 0;
      for (int64_t k = 0; k < w.cols; ++k) sum += ToFloat(p.x[t * p.x_stride + k]) * row[k];
      if (p.out != nullptr) p.out[t * p.out_stride + n] = ToBf16(sum);
      if (p.out_f32 != nullptr) p.out_f32[t * p.out_stride + n] = static_cast<float>(sum);
    }
  }
}

}  // namespace deepinfer
