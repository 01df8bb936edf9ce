#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/cpu/scratch_sizes.h"
#include "kernels/cpu/simd.h"

namespace deepinfer {
namespace {

// An expert in the order of choice: larger biased score first, lower id among equals, NaN last.
// Integers, because comparing them takes no branches. No biased score is -0: scores begin at 0.
using Choice = uint64_t;

Choice ChoiceOf(float biased, int32_t expert) {
  const auto bits = std::bit_cast<uint32_t>(biased);
  const uint32_t falling = (bits >> 31) != 0 ? bits : ~bits & 0x7fffffff;
  const uint32_t rank = std::isnan(biased) ? ~uint32_t{0} : falling;
  return uint64_t{rank} << 32 | static_cast<uint32_t>(expert);
}

int32_t ExpertOf(Choice choice) { return static_cast<int32_t>(choice); }

// e^x to F64's precision, 0 for what is far below F32. Requires: x <= 0.
__m256d Exp(__m256d x) {
  x = _mm256_max_pd(_mm256_set1_pd(-700), x);
  // x = n ln 2 + r, |r| <= ln 2 / 2; ln 2 in two parts, so that n times the first is exact.
  const __m256d n = _mm256_round_pd(_mm256_mul_pd(x, _mm256_set1_pd(1.4426950408889634)),
                                    _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256d r = _mm256_fnmadd_pd(n, _mm256_set1_pd(0x1.62e42fefap-1), x);
  r = _mm256_fnmadd_pd(n, _mm256_set1_pd(0x1.cf79abc9e3b3ap-40), r);
  double factorial = 479001600;  // 12!
  __m256d sum = _mm256_set1_pd(1 / factorial);
  for (int k = 12; k > 0; --k) {
    factorial /= k;
    sum = _mm256_fmadd_pd(sum, r, _mm256_set1_pd(1 / factorial));
  }
  const __m256i exponent = _mm256_cvtepi32_epi64(_mm256_cvtpd_epi32(n));
  const __m256i bits = _mm256_slli_epi64(_mm256_add_epi64(exponent, _mm256_set1_epi64x(1023)), 52);
  return _mm256_mul_pd(sum, _mm256_castsi256_pd(bits));
}

// log(1 + e^x) = max(x, 0) + log(1 + t), t = e^-|x|; log(1 + t) = 2 artanh(t / (2 + t)).
__m256d Softplus(__m256d x) {
  const __m256d t = Exp(_mm256_or_pd(x, _mm256_set1_pd(-0.0)));
  const __m256d z = _mm256_div_pd(t, _mm256_add_pd(t, _mm256_set1_pd(2)));
  const __m256d squared = _mm256_mul_pd(z, z);  // <= 1/9
  __m256d sum = _mm256_set1_pd(1.0 / 31);
  for (int k = 29; k > 0; k -= 2) {
    sum = _mm256_fmadd_pd(sum, squared, _mm256_set1_pd(1.0 / k));
  }
  // The second operand is returned where it is NaN.
  const __m256d positive = _mm256_max_pd(_mm256_setzero_pd(), x);
  return _mm256_fmadd_pd(_mm256_add_pd(z, z), sum, positive);
}

// sqrt(softplus), rounded to F32 in between.
__m256 Scores(__m256 logits) {
  const __m128 low = _mm256_cvtpd_ps(Softplus(_mm256_cvtps_pd(_mm256_castps256_ps128(logits))));
  const __m128 high = _mm256_cvtpd_ps(Softplus(_mm256_cvtps_pd(_mm256_extractf128_ps(logits, 1))));
  return _mm256_sqrt_ps(_mm256_set_m128(high, low));
}

struct RouterScratch {
  template <typename Memory>
  RouterScratch(Memory& memory, const RouterParams& p)
      : score(memory.template Get<float>(p.num_experts)),
        order(memory.template Get<Choice>(p.num_experts)) {}

  float* score;   // [E]
  Choice* order;  // [E]
};

void RouteToken(const RouterParams& p, int64_t t, const RouterScratch& scratch) {
  float* const score = scratch.score;
  Choice* const order = scratch.order;
  const float* bias = p.is_image != nullptr && p.is_image[t] != 0 ? p.bias_vl : p.bias;
  const float* logits = p.logits + t * p.num_experts;
  simd::ByEights(p.num_experts, [&](int64_t e, auto count) {
    float scores[8];
    _mm256_storeu_ps(scores, Scores(simd::Load(logits + e, count)));
    std::copy_n(scores, int64_t{count}, score + e);
  });
  for (int32_t e = 0; e < p.num_experts; ++e) order[e] = ChoiceOf(score[e] + bias[e], e);

  const int32_t num_sorted = std::min(p.topk + 1, p.num_experts);
  std::partial_sort(order, order + num_sorted, order + p.num_experts);
  const auto biased = [&](int32_t place) {
    return score[ExpertOf(order[place])] + bias[ExpertOf(order[place])];
  };
  if (p.gap != nullptr) {
    p.gap[t] = p.topk == p.num_experts ? std::numeric_limits<float>::infinity()
                                       : biased(p.topk - 1) - biased(p.topk);
  }

  float sum = 0;
  for (int32_t i = 0; i < p.topk; ++i) sum += score[ExpertOf(order[i])];
  const float divisor = p.normalise && p.topk > 1 ? sum + 1e-20f : 1.0f;
  std::sort(order, order + p.topk, [](Choice a, Choice b) { return ExpertOf(a) < ExpertOf(b); });
  for (int32_t i = 0; i < p.topk; ++i) {
    const int32_t expert = ExpertOf(order[i]);
    p.experts[t * p.topk + i] = expert;
    p.weights[t * p.topk + i] = score[expert] / divisor * p.route_scale;
  }
}

}  // namespace

void RouterCpu(const Backend& backend, const RouterParams& p) {
  backend.ParallelFor(p.num_tokens, 4, [&](int64_t begin, int64_t end) {
    ScratchFrame frame;
    const RouterScratch scratch(frame, p);
    for (int64_t t = begin; t < end; ++t) RouteToken(p, t, scratch);
  });
}

ScratchBytes RouterScratchBytes(const RouterParams& p) {
  ScratchMeter meter;
  RouterScratch(meter, p);
  return OnAllThreads(meter.bytes());
}

}  // namespace deepinfer
