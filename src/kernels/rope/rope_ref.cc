// Oracle of RopeOp: one complex product a pair, each F32 operation rounded on its own.
#include "kernels/fault.h"
#include "kernels/rope/rope.h"

namespace deepinfer {

void RopeRef(const Backend&, const RopeParams& params) {
  const int32_t pairs = params.rope_dim / 2;
  const bool half_split = DI_FAULT("half_split_rope");
  for (int32_t t = 0; t < params.num_tokens; ++t) {
    for (int32_t h = 0; h < params.num_heads; ++h) {
      const int64_t row = int64_t{t} * params.num_heads + h;
      bf16* x = params.x + (row + 1) * params.head_dim - params.rope_dim;
      for (int32_t i = 0; i < pairs; ++i) {
        const float cos = params.cos[int64_t{t} * pairs + i];
        const float sin = params.sin[int64_t{t} * pairs + i] * (params.inverse ? -1.0f : 1.0f);
        bf16& first = half_split ? x[i] : x[2 * i];
        bf16& second = half_split ? x[i + pairs] : x[2 * i + 1];
        const float re = ToFloat(first), im = ToFloat(second);
        first = ToBf16(re * cos - im * sin);
        second = ToBf16(re * sin + im * cos);
      }
    }
  }
}

}  // namespace deepinfer
