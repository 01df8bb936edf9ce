#include "model/logprobs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "base/check.h"

namespace deepinfer {
namespace {

// An exponent of ones is infinity or NaN. No branches, so that the compiler makes it vectors.
bool AllFinite(std::span<const float> values) {
  constexpr uint32_t kExponent = 0x7f800000u;
  uint32_t is_bad = 0;
  for (const float value : values) {
    is_bad |= (std::bit_cast<uint32_t>(value) & kExponent) == kExponent ? 1 : 0;
  }
  return is_bad == 0;
}

}  // namespace

Status CheckFinite(std::span<const float> logits) {
  if (AllFinite(logits)) return OkStatus();
  for (size_t id = 0; id < logits.size(); ++id) {
    if (!std::isfinite(logits[id])) {
      return DataLoss("logits: token ", id, " has the value ", logits[id],
                      ", expected a finite number; check the weights with `deepinfer inspect`");
    }
  }
  return OkStatus();
}

PositionLogprobs RawLogprobs(std::span<const float> logits, int32_t token, int32_t num_top) {
  CHECK_LT(static_cast<size_t>(token), logits.size());
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  const double log_sum = largest + std::log(sum);

  const auto value = [&](int32_t id) { return logits[static_cast<size_t>(id)] - log_sum; };
  PositionLogprobs result{.token = {token, value(token)}};
  if (num_top == 0) return result;
  std::vector<int32_t> ids(logits.size());
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
  const auto count = std::min(static_cast<size_t>(num_top), ids.size());
  std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count), ids.end(),
                    [&](int32_t a, int32_t b) {
                      const float x = logits[static_cast<size_t>(a)];
                      const float y = logits[static_cast<size_t>(b)];
                      return x != y ? x > y : a < b;
                    });
  for (size_t i = 0; i < count; ++i) result.top.push_back({ids[i], value(ids[i])});
  return result;
}

}  // namespace deepinfer
