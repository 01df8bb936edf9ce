// The sampler against distributions and filters computed the slow, obvious way.
#include "model/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "base/rng.h"
#include "base/testing/allocation_counter.h"
#include "model/logprobs.h"
#include "model/noise.h"

namespace deepinfer {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<float> RandomLogits(int32_t count, uint64_t seed, double spread = 2) {
  SeededRng rng(seed);
  std::vector<float> logits;
  for (int32_t i = 0; i < count; ++i) {
    // A coarse grid, so that there are ties.
    logits.push_back(
        static_cast<float>(std::round((rng.UniformDouble() - 0.5) * 64) / 16 * spread));
  }
  return logits;
}

SequenceSampling Sequence(const SamplingParams& params, uint64_t seed = 1,
                          std::vector<int32_t> end_ids = {}, std::vector<int32_t> prompt = {}) {
  return SequenceSampling(params, seed, std::move(end_ids), prompt);
}

int32_t SampleId(const SamplingParams& params, const std::vector<float>& logits, uint64_t seed,
                 int64_t position) {
  Sampler sampler;
  const auto token = sampler.Sample(Sequence(params, seed), logits, position);
  EXPECT_TRUE(token.ok()) << token.status();
  return token.ok() ? token->id : -1;
}

std::vector<double> Softmax(const std::vector<double>& scores) {
  const double largest = *std::max_element(scores.begin(), scores.end());
  std::vector<double> p;
  for (const double s : scores) p.push_back(std::exp(s - largest));
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= sum;
  return p;
}

// Ids by falling probability, lower ids first among equals.
std::vector<int32_t> Ranking(const std::vector<double>& p) {
  std::vector<int32_t> ids(p.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) {
    return p[static_cast<size_t>(a)] > p[static_cast<size_t>(b)];
  });
  return ids;
}

// What temperature, min_p, top_k and top_p leave of logits, by the words of sampling.h.
std::vector<double> FilteredByHand(const std::vector<float>& logits, const SamplingParams& params) {
  std::vector<double> scaled;
  for (const float l : logits) scaled.push_back(l / params.temperature);
  std::vector<double> p = Softmax(scaled);
  const auto renormalise = [&] {
    const double sum = std::accumulate(p.begin(), p.end(), 0.0);
    for (double& x : p) x /= sum;
  };
  const double likeliest = *std::max_element(p.begin(), p.end());
  for (double& x : p) x = x < params.min_p * likeliest * (1 - 1e-12) ? 0 : x;
  renormalise();
  std::vector<int32_t> ranking = Ranking(p);
  if (params.top_k > 0) {
    for (size_t r = static_cast<size_t>(params.top_k); r < ranking.size(); ++r)
      p[static_cast<size_t>(ranking[r])] = 0;
  }
  renormalise();
  double sum = 0;
  for (const int32_t id : ranking) {
    double& x = p[static_cast<size_t>(id)];
    if (sum >= params.top_p) x = 0;
    sum += x;
  }
  renormalise();
  return p;
}

// Sum over tokens of (seen - expected)^2 / expected over `draws` positions and seeds.
double ChiSquare(const std::vector<double>& expected, const SamplingParams& params,
                 const std::vector<float>& logits, int draws, bool many_seeds) {
  std::vector<int> seen(expected.size(), 0);
  for (int i = 0; i < draws; ++i) {
    const int32_t id = many_seeds ? SampleId(params, logits, static_cast<uint64_t>(i), 7)
                                  : SampleId(params, logits, 7, i);
    ++seen[static_cast<size_t>(id)];
  }
  double chi = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double want = expected[i] * draws;
    if (want == 0) {
      EXPECT_EQ(seen[i], 0) << "token " << i << " was filtered away";
      continue;
    }
    chi += (seen[i] - want) * (seen[i] - want) / want;
  }
  return chi;
}

// The 0.9999 quantile of chi-square, by Wilson and Hilferty.
double ChiLimit(int degrees) {
  const double k = degrees, z = 3.719;
  return k * std::pow(1 - 2 / (9 * k) + z * std::sqrt(2 / (9 * k)), 3);
}

TEST(Noise, UniformNeverReachesItsBorders) {
  // The largest and smallest values that 52 bits can give.
  const double largest = (static_cast<double>((uint64_t{1} << 52) - 1) + 0.5) * 0x1p-52;
  EXPECT_LT(largest, 1.0);
  EXPECT_GT(0.5 * 0x1p-52, 0.0);
  EXPECT_LT(-PortableLog(-PortableLog(largest)), kGumbelMax);
  EXPECT_TRUE(std::isfinite(-PortableLog(-PortableLog(0.5 * 0x1p-52))));
}

TEST(Noise, LogAgreesWithTheLibrary) {
  SeededRng rng(3);
  for (int i = 0; i < 100000; ++i) {
    const double x = std::exp((rng.UniformDouble() - 0.5) * 80);
    EXPECT_NEAR(PortableLog(x), std::log(x), 7e-16 * std::max(1.0, std::fabs(std::log(x))));
    const double u = 1 - rng.UniformDouble() * 1e-6;
    EXPECT_NEAR(PortableLog(u), std::log(u), 7e-16 * std::fabs(std::log(u)));
  }
}

// Values written down once; a change would change every seed's text.
TEST(Noise, IsTheSameOnEveryMachine) {
  EXPECT_EQ(std::bit_cast<uint64_t>(PositionNoise(0, 0).Uniform(0)), 0x3fd5a2a6c2c68b02u);
  EXPECT_EQ(std::bit_cast<uint64_t>(PositionNoise(1, 5).Uniform(77)), 0x3fd8c4a885588b8eu);
  EXPECT_EQ(std::bit_cast<uint64_t>(PositionNoise(~uint64_t{0}, 1 << 20).Gumbel(129279)),
            0x3febb1f267127e1du);
}

TEST(Noise, DiffersForSeedPositionAndToken) {
  std::set<double> values;
  for (uint64_t seed = 0; seed < 16; ++seed) {
    for (int64_t position = 0; position < 16; ++position) {
      for (int32_t token = 0; token < 16; ++token) {
        values.insert(PositionNoise(seed, position).Uniform(token));
      }
    }
  }
  EXPECT_EQ(values.size(), 16u * 16u * 16u);
}

TEST(Sampler, FollowsTheSoftmaxOverPositionsAndOverSeeds) {
  const std::vector<float> logits = RandomLogits(24, 5, 1);
  for (const double temperature : {0.5, 1.0, 1.7}) {
    const SamplingParams params{.temperature = temperature};
    const std::vector<double> p = FilteredByHand(logits, params);
    EXPECT_LT(ChiSquare(p, params, logits, 20000, false), ChiLimit(23)) << temperature;
    EXPECT_LT(ChiSquare(p, params, logits, 20000, true), ChiLimit(23)) << temperature;
  }
}

// Negative control: the same statistic sees a distribution that is a little off.
TEST(Sampler, ChiSquareSeesAWrongTemperature) {
  const std::vector<float> logits = RandomLogits(24, 5, 1);
  const std::vector<double> p = FilteredByHand(logits, {.temperature = 1.1});
  EXPECT_GT(ChiSquare(p, {.temperature = 1}, logits, 20000, false), ChiLimit(23));
}

TEST(Sampler, FiltersLeaveExactlyWhatBruteForceLeaves) {
  SeededRng rng(11);
  Sampler sampler;
  for (int round = 0; round < 400; ++round) {
    const std::vector<float> logits = RandomLogits(40, 100 + static_cast<uint64_t>(round));
    SamplingParams params{
        .temperature = 0.3 + 2 * rng.UniformDouble(), .logprobs = 40, .filtered_logprobs = true};
    if (rng.Uniform(2) != 0) params.top_k = 1 + static_cast<int32_t>(rng.Uniform(40));
    if (rng.Uniform(2) != 0) params.top_p = 0.01 + 0.98 * rng.UniformDouble();
    if (rng.Uniform(2) != 0) params.min_p = 0.5 * rng.UniformDouble();
    const std::vector<double> p = FilteredByHand(logits, params);
    const auto token = sampler.Sample(Sequence(params), logits, round);
    ASSERT_TRUE(token.ok());
    const std::vector<int32_t> ranking = Ranking(p);
    const auto kept =
        static_cast<size_t>(std::count_if(p.begin(), p.end(), [](double x) { return x > 0; }));
    ASSERT_EQ(token->logprobs->top.size(), kept) << "round " << round;
    for (size_t r = 0; r < kept; ++r) {
      EXPECT_EQ(token->logprobs->top[r].id, ranking[r]);
      EXPECT_NEAR(std::exp(token->logprobs->top[r].logprob), p[static_cast<size_t>(ranking[r])],
                  1e-12);
    }
    EXPECT_GT(p[static_cast<size_t>(token->id)], 0);
  }
}

TEST(Sampler, FilteredDrawsFollowTheFilteredDistribution) {
  const std::vector<float> logits = RandomLogits(24, 6, 1);
  const SamplingParams params{.temperature = 1.3, .min_p = 0.05, .top_k = 9, .top_p = 0.8};
  const std::vector<double> p = FilteredByHand(logits, params);
  const auto kept = std::count_if(p.begin(), p.end(), [](double x) { return x > 0; });
  ASSERT_GT(kept, 2);
  EXPECT_LT(ChiSquare(p, params, logits, 20000, false), ChiLimit(static_cast<int>(kept) - 1));
}

TEST(Sampler, TopKAndTopPKeepTheLowestIdsOfATie) {
  const std::vector<float> logits = {1, 3, 3, 3, 0};
  std::set<int32_t> seen_k, seen_p;
  for (int64_t position = 0; position < 200; ++position) {
    seen_k.insert(SampleId({.top_k = 2}, logits, 1, position));
    seen_p.insert(SampleId({.top_p = 0.5}, logits, 1, position));
  }
  EXPECT_EQ(seen_k, (std::set<int32_t>{1, 2}));
  EXPECT_EQ(seen_p, (std::set<int32_t>{1, 2}));
}

TEST(Sampler, case_R07_TemperatureZeroIsTheLowestIdAmongEqualsForEverySeed) {
  std::vector<float> logits = RandomLogits(100, 9);
  logits[17] = logits[18] = logits[64] = 9;
  logits[40] = std::nextafter(9.0f, 0.0f);  // a near tie
  for (uint64_t seed = 0; seed < 500; ++seed) {
    EXPECT_EQ(SampleId({.temperature = 0}, logits, seed, static_cast<int64_t>(seed) * 3), 17);
  }
}

// The largest is found in vectors and blocks: it may be anywhere, more than once.
TEST(Sampler, TemperatureZeroFindsTheLargestInEveryPlace) {
  for (const size_t size : {1u, 15u, 16u, 17u, 1024u, 1025u, 2100u}) {
    for (size_t at = 0; at < size; at += size > 64 ? 7 : 1) {
      std::vector<float> logits = RandomLogits(static_cast<int32_t>(size), 6);
      const float largest = 100;
      logits[at] = largest;
      if (at % 2 == 1) logits[size - 1] = largest;
      Sampler sampler;
      const auto token = sampler.Sample(Sequence({.temperature = 0}), logits, 3);
      ASSERT_TRUE(token.ok());
      ASSERT_EQ(token->id, static_cast<int32_t>(at)) << size;
    }
    const std::vector<float> equal(size, -3.5f);
    Sampler sampler;
    EXPECT_EQ(sampler.Sample(Sequence({.temperature = 0}), equal, 3)->id, 0);
  }
}

TEST(Sampler, TinyAndHugeTemperaturesStayFinite) {
  const std::vector<float> logits = {-3e38f, 2, 3e38f, 1};
  EXPECT_EQ(SampleId({.temperature = 1e-300}, logits, 1, 1), 2);
  EXPECT_EQ(SampleId({.temperature = 100}, logits, 1, 1), 2);
}

TEST(Sampler, DistinctSeedsDiffer) {
  const std::vector<float> logits(512, 0.0f);
  std::set<int32_t> seen;
  for (uint64_t seed = 0; seed < 64; ++seed) seen.insert(SampleId({}, logits, seed, 3));
  EXPECT_GT(seen.size(), 48u);
}

TEST(Sampler, ChoiceDependsOnNothingButSeedPositionAndLogits) {
  Sampler shared;
  for (int64_t position = 0; position < 50; ++position) {
    const std::vector<float> mine = RandomLogits(64, 1), other = RandomLogits(64, 2);
    ASSERT_TRUE(shared.Sample(Sequence({.top_p = 0.5}, 99), other, position).ok());  // a batch mate
    const auto with = shared.Sample(Sequence({}, 4), mine, position);
    ASSERT_TRUE(with.ok());
    EXPECT_EQ(with->id, SampleId({}, mine, 4, position));
  }
}

TEST(Sampler, PenaltiesCountWhatTheyShould) {
  const std::vector<float> logits = {2, -2, 2, 2, 0};
  const SamplingParams params{.repetition_penalty = 2,
                              .frequency_penalty = 0.5,
                              .presence_penalty = 0.25,
                              .logprobs = 5,
                              .filtered_logprobs = true};
  SequenceSampling sequence = Sequence(params, 1, {}, {0, 1});
  sequence.Accept(2);
  sequence.Accept(2);
  Sampler sampler;
  const auto token = sampler.Sample(sequence, logits, 4);
  ASSERT_TRUE(token.ok());
  // 0: 2/2; 1: -2*2; 2: 2/2 - 2*0.5 - 0.25; 3 and 4 are in neither.
  const std::vector<double> p = Softmax({1, -4, -0.25, 2, 0});
  for (const TokenLogprob& top : token->logprobs->top) {
    EXPECT_NEAR(std::exp(top.logprob), p[static_cast<size_t>(top.id)], 1e-12) << top.id;
  }
}

TEST(Sampler, BiasBansMinTokensAndMaskDecideWhatIsLeft) {
  const std::vector<float> logits = {5, 4, 3, 2, 1};
  Sampler sampler;
  const auto greedy = [&](SamplingParams params, std::vector<int32_t> end_ids = {},
                          const uint32_t* allowed = nullptr) {
    params.temperature = 0;
    return sampler.Sample(Sequence(params, 1, std::move(end_ids)), logits, 0, allowed);
  };
  EXPECT_EQ(greedy({})->id, 0);
  EXPECT_EQ(greedy({.banned_token_ids = {0, 1}})->id, 2);
  EXPECT_EQ(greedy({.logit_bias = {{4, 4.5}}})->id, 4);
  EXPECT_EQ(greedy({.min_tokens = 1}, {0})->id, 1);
  const uint32_t only_three = 1u << 3;
  EXPECT_EQ(greedy({}, {}, &only_three)->id, 3);
  EXPECT_EQ(greedy({.forced_token_ids = {4}})->id, 4);
}

TEST(Sampler, MinTokensEndsWhenReached) {
  const std::vector<float> logits = {5, 4};
  SequenceSampling sequence = Sequence({.min_tokens = 2, .temperature = 0}, 1, {0});
  Sampler sampler;
  std::vector<int32_t> ids;
  for (int i = 0; i < 4; ++i) {
    ids.push_back(sampler.Sample(sequence, logits, i)->id);
    sequence.Accept(ids.back());
  }
  EXPECT_EQ(ids, (std::vector<int32_t>{1, 1, 0, 0}));
}

// A step allocates nothing, whichever rows come first.
TEST(Sampler, TakesItsMemoryWithTheFirstRow) {
  if (!CountsAllocations()) GTEST_SKIP() << "a sanitizer counts for itself";
  const std::vector<float> logits = RandomLogits(500, 5);
  const SequenceSampling greedy = Sequence({.temperature = 0}), plain = Sequence({}),
                         filtered = Sequence({.min_p = 0.001, .top_k = 90, .top_p = 0.9});
  Sampler sampler;
  EXPECT_TRUE(sampler.Sample(greedy, logits, 0).ok());
  const AllocationCounter counter;
  for (int64_t position = 1; position < 20; ++position) {
    for (const SequenceSampling* const sequence : {&filtered, &plain, &greedy}) {
      EXPECT_TRUE(sampler.Sample(*sequence, logits, position).ok());
    }
  }
  EXPECT_EQ(counter.count(), 0);
}

TEST(Sampler, ForcedTokensComeFirstThenTheModel) {
  const std::vector<float> logits = {0, 9, 0};
  SequenceSampling sequence = Sequence({.temperature = 0, .forced_token_ids = {2, 0}});
  Sampler sampler;
  std::vector<int32_t> ids;
  for (int i = 0; i < 3; ++i) {
    ids.push_back(sampler.Sample(sequence, logits, i)->id);
    sequence.Accept(ids.back());
  }
  EXPECT_EQ(ids, (std::vector<int32_t>{2, 0, 1}));
}

TEST(Sampler, case_R08_LogprobsAreOfTheRawDistribution) {
  const std::vector<float> logits = RandomLogits(50, 21);
  const std::vector<double> p = Softmax({logits.begin(), logits.end()});
  const std::vector<int32_t> ranking = Ranking(p);
  for (const double temperature : {0.0, 0.7}) {
    Sampler sampler;
    const auto token = sampler.Sample(
        Sequence(
            {.logit_bias = {{3, 50.0}}, .temperature = temperature, .top_k = 2, .logprobs = 7}),
        logits, 5);
    ASSERT_TRUE(token.ok());
    EXPECT_EQ(token->id, 3);  // the bias decides the choice, and is not in the numbers
    EXPECT_NEAR(token->logprobs->token.logprob, std::log(p[3]), 1e-12);
    ASSERT_EQ(token->logprobs->top.size(), 7u);
    for (size_t r = 0; r < 7; ++r) {
      EXPECT_EQ(token->logprobs->top[r].id, ranking[r]);
      EXPECT_NEAR(token->logprobs->top[r].logprob, std::log(p[static_cast<size_t>(ranking[r])]),
                  1e-12);
    }
  }
}

TEST(Sampler, LogitsThatAreNoNumbersAreAnErrorOfThatRow) {
  Sampler sampler;
  for (const float bad : {std::nanf(""), kInf, -kInf}) {
    std::vector<float> logits = {1, 2, bad};
    const auto token = sampler.Sample(Sequence({.temperature = 0}), logits, 0);
    EXPECT_EQ(token.status().code(), StatusCode::kDataLoss);
    EXPECT_NE(MessageOf(token.status()).find("token 2"), std::string::npos);
  }
  for (const float bad : {std::nanf(""), -std::nanf(""), kInf, -kInf}) {
    for (size_t at = 0; at < 70; ++at) {  // looked at in vectors
      std::vector<float> logits(70, std::numeric_limits<float>::max());
      logits[at] = bad;
      const auto token = sampler.Sample(Sequence({.temperature = 0}), logits, 0);
      ASSERT_EQ(token.status().code(), StatusCode::kDataLoss) << at;
    }
  }
  const uint32_t none = 0;
  const auto masked = sampler.Sample(Sequence({}), std::vector<float>{1, 2}, 0, &none);
  EXPECT_EQ(masked.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(SampleId({.temperature = 0}, {1, 2}, 1, 0), 1);  // and the next request is served
}

TEST(Sampler, ParametersOutOfRangeAreNamed) {
  const auto error = [](const SamplingParams& params) {
    return MessageOf(CheckSamplingParams(params, 100));
  };
  EXPECT_EQ(error({}), "");
  EXPECT_EQ(error({.temperature = -0.1}), "temperature: found -0.1, expected 0..100");
  EXPECT_NE(error({.temperature = std::nan("")}), "");
  EXPECT_NE(error({.min_p = 1.1}).find("min_p"), std::string::npos);
  EXPECT_NE(error({.top_p = 0}).find("top_p"), std::string::npos);
  EXPECT_NE(error({.top_k = -2}).find("top_k"), std::string::npos);
  EXPECT_NE(error({.repetition_penalty = 0}).find("repetition_penalty"), std::string::npos);
  EXPECT_NE(error({.logit_bias = {{100, 1.0}}}).find("0..99"), std::string::npos);
  EXPECT_NE(error({.logit_bias = {{1, 101.0}}}).find("-100..100"), std::string::npos);
  EXPECT_NE(error({.forced_token_ids = {-1}}).find("forced_token_ids"), std::string::npos);
  EXPECT_NE(error({.logprobs = 1001}).find("logprobs"), std::string::npos);
}

}  // namespace
}  // namespace deepinfer
