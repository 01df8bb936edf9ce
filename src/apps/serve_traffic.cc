#include "apps/serve_traffic.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace deepinfer {
namespace {

// Ids of random traffic: prefixes count from 0, what follows them from here.
constexpr uint64_t kFirstOwnId = uint64_t{1} << 32;

// Standard normal, by Box and Muller.
double Normal(Rng& rng) {
  const double radius = std::sqrt(-2 * std::log(1 - rng.UniformDouble()));
  return radius * std::cos(2 * std::numbers::pi * rng.UniformDouble());
}

int32_t AtLeastOne(double length) {
  constexpr double kMost = std::numeric_limits<int32_t>::max();
  return static_cast<int32_t>(std::clamp(std::round(length), 1.0, kMost));
}

class RandomTraffic : public ServeTraffic {
 public:
  explicit RandomTraffic(const RandomTrafficOptions& options)
      : options_(options), rng_(options.seed) {}

  std::optional<PlannedRequest> Next() override {
    if (options_.num_requests > 0 && num_made_ == options_.num_requests) return std::nullopt;
    PlannedRequest request;
    request.due_s = due_s_ += Gap();
    if (options_.prefix_tokens > 0) {
      const auto num_prefixes = static_cast<uint64_t>(std::max(1, options_.num_prefixes));
      request.prompt.push_back({rng_.Uniform(num_prefixes), options_.prefix_tokens});
    }
    request.prompt.push_back(
        {kFirstOwnId + static_cast<uint64_t>(num_made_++), options_.prompt.Draw(rng_)});
    request.output_tokens = options_.output.Draw(rng_);
    return request;
  }

 private:
  double Gap() {
    if (options_.requests_per_s == 0) return 0;
    if (options_.constant_gaps) return num_made_ == 0 ? 0 : 1 / options_.requests_per_s;
    return -std::log(1 - rng_.UniformDouble()) / options_.requests_per_s;
  }

  const RandomTrafficOptions options_;
  SeededRng rng_;
  int64_t num_made_ = 0;
  double due_s_ = 0;
};

}  // namespace

int64_t PlannedRequest::PromptTokens() const {
  int64_t sum = 0;
  for (const PromptPart& part : prompt) sum += part.num_tokens;
  return sum;
}

int32_t LengthDraw::Draw(Rng& rng) const {
  if (spread == 0) return std::max(1, typical);
  if (shape == Shape::kLogNormal) return AtLeastOne(typical * std::exp(spread * Normal(rng)));
  const double least = std::ceil(typical * (1 - spread));
  const double most = std::floor(typical * (1 + spread));
  return AtLeastOne(least + std::floor(rng.UniformDouble() * (most - least + 1)));
}

std::unique_ptr<ServeTraffic> MakeRandomTraffic(const RandomTrafficOptions& options) {
  return std::make_unique<RandomTraffic>(options);
}

}  // namespace deepinfer
