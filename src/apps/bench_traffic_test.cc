#include "apps/bench_traffic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace deepinfer {
namespace {

TEST(Percentile, IsTheNearestRank) {
  std::vector<double> values(100);
  std::iota(values.rbegin(), values.rend(), 1.0);
  EXPECT_EQ(Percentile(values, 0.5), 50);
  EXPECT_EQ(Percentile(values, 0.9), 90);
  EXPECT_EQ(Percentile(values, 0.99), 99);
  EXPECT_EQ(Percentile(values, 1), 100);
  EXPECT_EQ(Percentile({7}, 0.01), 7);
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 3, 2}), 2);
}

// Times between events of a Poisson process are exponential: mean and deviation are 1 / rate, and
// 1 / e of them exceed it.
TEST(PoissonArrivals, HaveExponentialGaps) {
  constexpr int32_t kCount = 100'000;
  constexpr double kRate = 5;
  SeededRng rng(3);
  const std::vector<double> arrivals = PoissonArrivals(kCount, kRate, rng);
  ASSERT_EQ(std::ssize(arrivals), kCount);
  double last = 0, squares = 0;
  int32_t long_ones = 0;
  for (const double arrival : arrivals) {
    const double gap = (arrival - last) * kRate;
    ASSERT_GE(gap, 0);
    squares += (gap - 1) * (gap - 1);
    long_ones += gap > 1;
    last = arrival;
  }
  EXPECT_NEAR(last * kRate / kCount, 1, 0.02);
  EXPECT_NEAR(squares / kCount, 1, 0.05);
  EXPECT_NEAR(long_ones / double{kCount}, 0.3679, 0.01);
}

TEST(PoissonArrivals, OfNoRateAreAllAtTheStart) {
  SeededRng rng(1);
  EXPECT_EQ(PoissonArrivals(3, 0, rng), std::vector<double>(3, 0.0));
}

TrafficOptions Options(int32_t max_tokens = 8192) {
  return {.num_requests = 40,
          .requests_per_s = 2,
          .vocab_size = 100,
          .max_tokens = max_tokens,
          .seed = 5};
}

TEST(MakeTraffic, FollowsTheSeed) {
  const TrafficMix mix = FindTrafficMix("chat").value();
  TrafficOptions options = Options();
  const auto one = MakeTraffic(mix, options), same = MakeTraffic(mix, options);
  options.seed = 6;
  const auto other = MakeTraffic(mix, options);
  ASSERT_EQ(std::ssize(one), 40);
  EXPECT_EQ(one[7].arrival_s, same[7].arrival_s);
  EXPECT_EQ(one[7].request.prompt_ids, same[7].request.prompt_ids);
  EXPECT_NE(one[7].arrival_s, other[7].arrival_s);
  EXPECT_NE(one[7].request.prompt_ids, other[7].request.prompt_ids);
}

// The rate moves arrivals and nothing else, so that rates can be compared.
TEST(MakeTraffic, AsksTheSameAtAnyRate) {
  const TrafficMix mix = FindTrafficMix("agent").value();
  TrafficOptions options = Options();
  const auto slow = MakeTraffic(mix, options);
  options.requests_per_s = 20;
  const auto fast = MakeTraffic(mix, options);
  for (size_t i = 0; i < slow.size(); ++i) {
    EXPECT_EQ(slow[i].request.prompt_ids, fast[i].request.prompt_ids);
    EXPECT_EQ(slow[i].request.max_tokens, fast[i].request.max_tokens);
    EXPECT_NEAR(slow[i].arrival_s, 10 * fast[i].arrival_s, 1e-9);
  }
}

TEST(MakeTraffic, StaysInsideTheMixesLengths) {
  for (const std::string& name : TrafficMixNames()) {
    const TrafficMix mix = FindTrafficMix(name).value();
    for (const TimedRequest& timed : MakeTraffic(mix, Options())) {
      const Request& request = timed.request;
      EXPECT_GE(std::ssize(request.prompt_ids), mix.shared_prefix + mix.prompt_min);
      if (mix.num_sessions == 0) {
        EXPECT_LE(std::ssize(request.prompt_ids), mix.prompt_max);
      }
      EXPECT_GE(*request.max_tokens, mix.output_min);
      EXPECT_LE(*request.max_tokens, mix.output_max);
      EXPECT_TRUE(request.sampling.ignore_eos);
      for (const int32_t id : request.prompt_ids) {
        ASSERT_GE(id, 3);
        ASSERT_LT(id, 99);
      }
    }
  }
  EXPECT_EQ(FindTrafficMix("nothing"), std::nullopt);
}

TEST(MakeTraffic, FitsAShortModel) {
  for (const std::string& name : TrafficMixNames()) {
    for (const int32_t longest : {64, 300, 4096}) {
      for (const TimedRequest& t : MakeTraffic(FindTrafficMix(name).value(), Options(longest))) {
        EXPECT_LE(std::ssize(t.request.prompt_ids) + *t.request.max_tokens, longest) << name;
        EXPECT_GE(*t.request.max_tokens, 1);
      }
    }
  }
}

// A conversation's turn begins with all its turns before; all conversations share a prefix.
TEST(MakeTraffic, AgentsGrowBehindOnePrefix) {
  const TrafficMix mix = FindTrafficMix("agent").value();
  const auto traffic = MakeTraffic(mix, Options());
  const auto starts_with = [](const std::vector<int32_t>& whole, std::span<const int32_t> part) {
    return whole.size() > part.size() && std::equal(part.begin(), part.end(), whole.begin());
  };
  const std::span<const int32_t> prefix(traffic[0].request.prompt_ids.data(),
                                        static_cast<size_t>(mix.shared_prefix));
  int32_t num_grown = 0;
  for (size_t i = 0; i < traffic.size(); ++i) {
    const std::vector<int32_t>& prompt = traffic[i].request.prompt_ids;
    EXPECT_TRUE(starts_with(prompt, prefix));
    if (i < static_cast<size_t>(mix.num_sessions)) continue;
    const size_t before = i - static_cast<size_t>(mix.num_sessions);
    num_grown += starts_with(prompt, traffic[before].request.prompt_ids);
  }
  EXPECT_GE(num_grown, 28);  // 36, but for where a conversation begins anew
}

}  // namespace
}  // namespace deepinfer
