// Plain CPU form of RopeOp. Same operations as the oracle, eight pairs at a time.
#include <cstring>

#include "kernels/rope/rope.h"

namespace deepinfer {
namespace {

// A pair is one 32-bit word: the even dim in the low half, the odd one in the high half.
void RotateRow(bf16* x, const float* cos, const float* sin, float sign, int32_t pairs) {
  for (int32_t i = 0; i < pairs; ++i) {
    uint32_t word;
    std::memcpy(&word, x + 2 * i, sizeof(word));
    const float re = std::bit_cast<float>(word << 16);
    const float im = std::bit_cast<float>(word & 0xffff0000u);
    const float c = cos[i], s = sin[i] * sign;
    const uint32_t low = ToBf16(re * c - im * s).bits;
    const uint32_t high = ToBf16(re * s + im * c).bits;
    word = low | high << 16;
    std::memcpy(x + 2 * i, &word, sizeof(word));
  }
}

}  // namespace

void RopeCpu(const Backend& backend, const RopeParams& params) {
  const int32_t pairs = params.rope_dim / 2;
  const float sign = params.inverse ? -1.0f : 1.0f;
  const int64_t rows = int64_t{params.num_tokens} * params.num_heads;
  backend.ParallelFor(rows, 64, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t t = row / params.num_heads;
      RotateRow(params.x + (row + 1) * params.head_dim - params.rope_dim, params.cos + t * pairs,
                params.sin + t * pairs, sign, pairs);
    }
  });
}

}  // namespace deepinfer
