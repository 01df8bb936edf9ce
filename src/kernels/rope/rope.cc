#include "kernels/rope/rope.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <numbers>

#include "kernels/fault.h"

namespace deepinfer {

void RopeRef(const Backend& backend, const RopeParams& params);
void RopeCpu(const Backend& backend, const RopeParams& params);

namespace {

// The pairs between which YaRN blends, as fractional pair indices rounded outwards.
struct BlendRange {
  float low = 0;
  float width = 0;
};

BlendRange YarnBlendRange(int32_t rope_dim, double base, const RopeScaling& scaling) {
  const auto pair_of_turns = [&](double turns) {
    return rope_dim * std::log(scaling.original_positions / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(base));
  };
  const double last = rope_dim - 1;
  const double low = std::clamp(std::floor(pair_of_turns(scaling.beta_fast)), 0.0, last);
  const double high = std::clamp(std::ceil(pair_of_turns(scaling.beta_slow)), 0.0, last);
  // An empty range becomes a step; the official code widens it by the same 0.001.
  const double width = high > low ? high - low : 0.001;
  return {static_cast<float>(low), static_cast<float>(width)};
}

float YarnFrequency(float frequency, int32_t pair, const BlendRange& range, float factor) {
  const float ramp = std::clamp((static_cast<float>(pair) - range.low) / range.width, 0.0f, 1.0f);
  const float keep = 1.0f - ramp;
  const float scaled_part = frequency / factor * (1.0f - keep);
  const float kept_part = frequency * keep;
  return scaled_part + kept_part;
}

}  // namespace

std::vector<float> RopeFrequencies(int32_t rope_dim, double base, const RopeScaling* scaling) {
  CHECK(rope_dim > 0 && rope_dim % 2 == 0);
  CHECK_GT(base, 1);
  // powl errs by at most one unit of its 64-bit significand, so rounding it to 24 bits is the
  // correct rounding of the true power unless that lies within 2^-63 (relative) of the middle
  // between two floats. Computed to 60 digits for bases 10000 and 160000 and rope_dim 16, 32, 64,
  // 128, none comes nearer than 2^-31; powers that are floats themselves (100, 8000, ...) are safe
  // either way.
  static_assert(LDBL_MANT_DIG >= 64);
  const bool yarn = scaling != nullptr && scaling->factor != 1;
  const BlendRange range = yarn ? YarnBlendRange(rope_dim, base, *scaling) : BlendRange{};
  std::vector<float> frequencies(static_cast<size_t>(rope_dim / 2));
  for (int32_t i = 0; i < rope_dim / 2; ++i) {
    const long double exponent = 2.0L * i / rope_dim;
    const float power = static_cast<float>(std::pow(static_cast<long double>(base), exponent));
    float frequency = 1.0f / power;
    if (yarn) frequency = YarnFrequency(frequency, i, range, static_cast<float>(scaling->factor));
    frequencies[static_cast<size_t>(i)] = frequency;
  }
  return frequencies;
}

void RopeCosSin(const std::vector<float>& freqs, const int32_t* positions, int64_t num_positions,
                float* cos, float* sin) {
  for (int64_t t = 0; t < num_positions; ++t) {
    const int32_t position = positions[t] + (DI_FAULT("shifted_rope_position") ? 1 : 0);
    for (const float frequency : freqs) {
      const float angle = static_cast<float>(position) * frequency;
      *cos++ = static_cast<float>(std::cos(static_cast<double>(angle)));
      *sin++ = static_cast<float>(std::sin(static_cast<double>(angle)));
    }
  }
}

namespace {

void Check(const RopeParams& params) {
  CHECK_GE(params.num_tokens, 0);
  CHECK_GE(params.num_heads, 1);
  CHECK(params.rope_dim > 0 && params.rope_dim % 2 == 0);
  CHECK_LE(params.rope_dim, params.head_dim);
  CHECK(params.num_tokens == 0 || (params.cos && params.sin && params.x));
}

}  // namespace

Op<RopeParams>& RopeOp() {
  static Op<RopeParams> table(RopeRef, RopeCpu, Check);
  return table;
}

}  // namespace deepinfer
