// kernels/rope/rope.h: rotary position embedding: one host-made F32 table for every backend, and
// its use.
//
// Adjacent pairs (2i, 2i+1) of the LAST rope_dim dims rotate by the angle fl32(fl32(p) * f_i).
// Source: model.md 3.3 (the bit-exact recipe of f_i stands there).
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/backend.h"
#include "kernels/formats/number_formats.h"

namespace deepinfer {

struct RopeScaling {  // YaRN; factor 1 = none
  double factor = 1;
  double beta_fast = 32;
  double beta_slow = 1;
  double original_positions = 0;
};

// f_i, i < rope_dim/2, rounded exactly as model.md 3.3 says, with or without YaRN.
std::vector<float> RopeFrequencies(int32_t rope_dim, double base, const RopeScaling* scaling);

// cos/sin of the F32 angles, computed in F64 with exact range reduction, rounded once.
// cos, sin: [num_positions, freqs.size()].
void RopeCosSin(const std::vector<float>& freqs, const int32_t* positions, int64_t num_positions,
                float* cos, float* sin);

// Rotates in place, F32 arithmetic, written back as BF16. `inverse` negates the angle.
struct RopeParams {
  int32_t num_tokens = 0;  // T
  int32_t num_heads = 0;   // rows of head_dim per token
  int32_t head_dim = 0;
  int32_t rope_dim = 0;        // the last dims of each head
  const float* cos = nullptr;  // [T, rope_dim/2]
  const float* sin = nullptr;  // [T, rope_dim/2]
  bool inverse = false;
  bf16* x = nullptr;  // [T, num_heads, head_dim], contiguous
};

Op<RopeParams>& RopeOp();
inline void Rope(const Backend& backend, const RopeParams& params) {
  RopeOp().Run(backend, params);
}

}  // namespace deepinfer
