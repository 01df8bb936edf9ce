// kernels/linear/cpu/f32_tiles.h: the inner loop of products with F32 weights, one form per
// instruction set, all with the same bits.
#pragma once

#include <cstdint>

namespace deepinfer {

inline constexpr int kF32TileWeights = 4;  // rows of W in a tile

struct F32Tiles {
  int64_t most_tokens;  // rows of x in a tile
  // sums [num_tokens, 4, 8] += the sums of w[n] * x[t] over `count` columns (a multiple of 8), lane
  // k % 8 in order of k. w [4, w_stride], x [num_tokens, x_stride]; 1 <= num_tokens <= most_tokens.
  void (*accumulate)(const float* w, int64_t w_stride, const float* x, int64_t x_stride,
                     int64_t count, int64_t num_tokens, float* sums);
};

extern const F32Tiles kAvx2F32Tiles;
extern const F32Tiles kAvx512F32Tiles;

}  // namespace deepinfer
