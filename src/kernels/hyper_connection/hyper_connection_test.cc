#include "kernels/hyper_connection/hyper_connection.h"

#include <gtest/gtest.h>

#include "kernels/testing/batch.h"
#include "kernels/testing/data.h"
#include "kernels/testing/packed.h"
#include "kernels/testing/real_checks.h"

namespace deepinfer::testing {
namespace {

constexpr int kStreams = 4, kMixes = 24;
constexpr double kCoefficientLimit = 2e-6;  // kernels.md 7

// pre [4], post [4], comb [4, 4] of one token.
struct Coefficients {
  float pre[4], post[4], comb[16];
  const float* all() const { return pre; }
};
static_assert(sizeof(Coefficients) == kMixes * sizeof(float));

struct Weights {
  std::vector<float> fn, base, scale;
};

// Random weights whose mixes are of the order of 1.
Weights MakeWeights(int32_t dim) {
  Random random(31);
  Weights w;
  const double size = 1 / std::sqrt(kStreams * dim);
  for (int32_t i = 0; i < kMixes * kStreams * dim; ++i)
    w.fn.push_back(static_cast<float>(size * random.Normal()));
  for (int k = 0; k < kMixes; ++k) w.base.push_back(static_cast<float>(0.5 * random.Normal()));
  w.scale = {1.0f, 0.7f, 1.3f};
  return w;
}

void MixRows(const Backend& backend, const Weights& w, const bf16* streams, int32_t dim,
             int32_t count, Coefficients* out, int iterations = 20) {
  Guarded<float> pre(count * 4), post(count * 4), comb(count * 16);
  HyperMix(backend, {.num_tokens = count,
                     .num_streams = kStreams,
                     .dim = dim,
                     .sinkhorn_iterations = iterations,
                     .norm_eps = 1e-20f,
                     .hc_eps = 1e-6f,
                     .streams = streams,
                     .fn = w.fn.data(),
                     .base = w.base.data(),
                     .scale = w.scale.data(),
                     .pre_next = pre.data(),
                     .post = post.data(),
                     .comb = comb.data()});
  EXPECT_TRUE(pre.GuardsIntact() && post.GuardsIntact() && comb.GuardsIntact());
  for (int32_t t = 0; t < count; ++t) {
    std::copy_n(&pre[t * 4], 4, out[t].pre);
    std::copy_n(&post[t * 4], 4, out[t].post);
    std::copy_n(&comb[t * 16], 16, out[t].comb);
  }
}

// Streams of ones (inverse RMS exactly 1) and weights that pick out the first: mixes as given.
Coefficients Split(const Backend& backend, const std::vector<float>& mix,
                   const std::vector<float>& base, const std::vector<float>& scale,
                   int iterations = 20) {
  Weights w{std::vector<float>(kMixes * kStreams, 0.0f), base, scale};
  for (int k = 0; k < kMixes; ++k) w.fn[k * kStreams] = mix[k];
  const std::vector<bf16> ones(kStreams, ToBf16(1.0f));
  Coefficients out;
  MixRows(backend, w, ones.data(), 1, 1, &out, iterations);
  return out;
}

// model.md 7b: m_k = sin(k), base 0, scale (1, 1, 4).
TEST(HyperMix, SplitsTheSpecificationsVector) {
  const float expected[kMixes] = {0.500001f, 0.698776f, 0.712857f, 0.535223f, 0.638682f, 0.554187f,
                                  0.861194f, 1.317166f, 0.713589f, 0.266697f, 0.014651f, 0.001034f,
                                  0.000205f, 0.035325f, 0.870266f, 0.097287f, 0.037894f, 0.009638f,
                                  0.056244f, 0.900776f, 0.248311f, 0.688339f, 0.058838f, 0.000902f};
  std::vector<float> mix;
  for (int k = 0; k < kMixes; ++k) mix.push_back(static_cast<float>(std::sin(k)));
  for (const Backend& backend : {kRef, kCpu}) {
    const Coefficients out = Split(backend, mix, std::vector<float>(kMixes, 0), {1, 1, 4});
    for (int k = 0; k < kMixes; ++k) EXPECT_NEAR(out.all()[k], expected[k], 6e-7) << k;
  }
}

// The stored vectors; 19 rounds instead of 20 must leave the limit on at least two of them.
TEST(HyperMix, GivesTheStoredCoefficients) {
  const nlohmann::json checks = RealChecks();
  ASSERT_EQ(checks["mhc"].size(), 3u);
  for (const Backend& backend : {kRef, kCpu}) {
    int num_seen = 0;
    for (const auto& check : checks["mhc"]) {
      std::vector<float> expected = check["pre"].get<std::vector<float>>();
      for (const auto& value : check["post"]) expected.push_back(value.get<float>());
      for (const auto& row : check["comb_source_dest"])
        for (const auto& value : row) expected.push_back(value.get<float>());
      const auto mix = check["mix"].get<std::vector<float>>();
      const auto base = check["base"].get<std::vector<float>>();
      const auto scale = check["scale"].get<std::vector<float>>();
      const Coefficients right = Split(backend, mix, base, scale);
      EXPECT_LT(Compare(right.all(), expected.data(), kMixes).max_abs, kCoefficientLimit);
      const Coefficients wrong = Split(backend, mix, base, scale, 19);
      num_seen += Compare(wrong.all(), expected.data(), kMixes).max_abs > 1e-4;
    }
    EXPECT_GE(num_seen, 2);
  }
}

TEST(HyperMix, MatchesTheOracle) {
  for (const int32_t dim : {1, 6, 128, 5120}) {
    for (const DataKind kind : {DataKind::kNormal, DataKind::kHotOutlier, DataKind::kMaxCode}) {
      Random random(32);
      const Weights w = MakeWeights(dim);
      const std::vector<bf16> x = MakeBf16(kind, 5, kStreams * dim, random);
      std::vector<Coefficients> cpu(5), ref(5);
      MixRows(kCpu, w, x.data(), dim, 5, cpu.data());
      MixRows(kRef, w, x.data(), dim, 5, ref.data());
      EXPECT_LT(Compare(cpu[0].all(), ref[0].all(), 5 * kMixes).max_abs, kCoefficientLimit)
          << dim << " " << static_cast<int>(kind);
    }
  }
}

TEST(HyperMix, ZeroStreamsGiveFiniteCoefficients) {
  const Weights w = MakeWeights(32);
  const std::vector<bf16> zeros(kStreams * 32, bf16{0});
  for (const Backend& backend : {kRef, kCpu}) {
    Coefficients out;
    MixRows(backend, w, zeros.data(), 32, 1, &out);
    for (int j = 0; j < 4; ++j) {
      double column = 0;
      for (int i = 0; i < 4; ++i) column += out.comb[i * 4 + j];
      EXPECT_NEAR(column, 1, 1e-5);  // ends on columns
    }
  }
}

TEST(HyperMix, RowsDoNotDependOnTheBatch) {
  Random random(33);
  const Weights w = MakeWeights(40);
  const std::vector<bf16> x = MakeBf16(DataKind::kNormal, kMostRows, kStreams * 40, random);
  ExpectBatchInvariant<Coefficients>(
      kMostRows, 1, [&](const Backend& backend, int32_t begin, int32_t count, Coefficients* out) {
        MixRows(backend, w, x.data() + int64_t{begin} * kStreams * 40, 40, count, out);
      });
}

// A token's coefficients come with its neighbours' in one vector.
TEST(HyperMix, ABrokenTokenLeavesItsNeighboursAlone) {
  Random random(35);
  const Weights w = MakeWeights(40);
  const std::vector<bf16> good = MakeBf16(DataKind::kNormal, 7, kStreams * 40, random);
  std::vector<Coefficients> expected(7), out(7);
  MixRows(kCpu, w, good.data(), 40, 7, expected.data());
  for (int broken = 0; broken < 7; ++broken) {
    std::vector<bf16> x = good;
    x[broken * kStreams * 40 + 11] = ToBf16(NAN);
    MixRows(kCpu, w, x.data(), 40, 7, out.data());
    for (int t = 0; t < 7; ++t) {
      for (int k = 0; k < kMixes; ++k) EXPECT_EQ(std::isnan(out[t].all()[k]), t == broken);
      EXPECT_EQ(BitEqual(&out[t], &expected[t], 1), t != broken) << t << " of " << broken;
    }
  }
}

// Mixes so far apart that exponentials are infinite, subnormal or 0.
TEST(HyperMix, MatchesTheOracleWhereExponentialsEnd) {
  Random random(36);
  for (const float size : {20.0f, 95.0f, 1000.0f}) {
    std::vector<float> mix;
    for (int k = 0; k < kMixes; ++k) mix.push_back(size * static_cast<float>(random.Normal()));
    const std::vector<float> base(kMixes, 0);
    const Coefficients cpu = Split(kCpu, mix, base, {1, 1, 1});
    const Coefficients ref = Split(kRef, mix, base, {1, 1, 1});
    EXPECT_LT(Compare(cpu.all(), ref.all(), kMixes).max_abs, kCoefficientLimit) << size;
  }
}

// [num_tokens, ...] of the three ops in a row, for any number of streams.
struct AnyStreams {
  std::vector<float> coefficients;  // pre, post, comb
  std::vector<bf16> collapsed, streams;
};

AnyStreams RunAll(const Backend& backend, int32_t hc, int32_t dim, int32_t num_tokens) {
  Random random(37);
  const int32_t num_mixes = (2 + hc) * hc;
  std::vector<float> fn, base;
  for (int32_t i = 0; i < num_mixes * hc * dim; ++i)
    fn.push_back(static_cast<float>(random.Normal() / std::sqrt(hc * dim)));
  for (int32_t i = 0; i < num_mixes; ++i) base.push_back(static_cast<float>(random.Normal()));
  const float scale[] = {1.0f, 0.7f, 1.3f};
  const std::vector<bf16> y = MakeBf16(DataKind::kNormal, num_tokens, dim, random);
  AnyStreams all;
  all.streams = MakeBf16(DataKind::kNormal, num_tokens * hc, dim, random);
  Guarded<float> pre(num_tokens * hc), post(num_tokens * hc), comb(num_tokens * hc * hc);
  HyperMix(backend, {.num_tokens = num_tokens,
                     .num_streams = hc,
                     .dim = dim,
                     .sinkhorn_iterations = 20,
                     .norm_eps = 1e-20f,
                     .hc_eps = 1e-6f,
                     .streams = all.streams.data(),
                     .fn = fn.data(),
                     .base = base.data(),
                     .scale = scale,
                     .pre_next = pre.data(),
                     .post = post.data(),
                     .comb = comb.data()});
  Guarded<bf16> collapsed(num_tokens * dim);
  HyperCollapse(backend, {.num_tokens = num_tokens,
                          .num_streams = hc,
                          .dim = dim,
                          .streams = all.streams.data(),
                          .pre = pre.data(),
                          .out = collapsed.data()});
  HyperUpdate(backend, {.num_tokens = num_tokens,
                        .num_streams = hc,
                        .dim = dim,
                        .y = y.data(),
                        .post = post.data(),
                        .comb = comb.data(),
                        .streams = all.streams.data()});
  EXPECT_TRUE(pre.GuardsIntact() && post.GuardsIntact() && comb.GuardsIntact());
  EXPECT_TRUE(collapsed.GuardsIntact());
  for (const auto* part : {&pre, &post, &comb})
    all.coefficients.insert(all.coefficients.end(), part->data(), part->data() + part->size());
  all.collapsed = collapsed.ToVector();
  return all;
}

TEST(HyperConnection, AnyNumberOfStreamsMatchesTheOracle) {
  for (int32_t hc = 1; hc <= 8; ++hc) {
    for (const int32_t dim : {1, 24, 37}) {
      for (const int32_t num_tokens : {1, 2, 7}) {
        const AnyStreams cpu = RunAll(kCpu, hc, dim, num_tokens);
        const AnyStreams ref = RunAll(kRef, hc, dim, num_tokens);
        SCOPED_TRACE(std::to_string(hc) + " streams of " + std::to_string(dim));
        EXPECT_LT(Compare(cpu.coefficients, ref.coefficients).max_abs, kCoefficientLimit);
        EXPECT_LT(Compare(cpu.collapsed, ref.collapsed).rel_l2, 2e-3);
        EXPECT_LT(Compare(cpu.streams, ref.streams).rel_l2, 2e-3);
      }
    }
  }
}

// So that what the other tests say of one form holds for all. Rows of fn by one thread or by two,
// and pieces of tokens that fill tiles of products or do not.
class HyperConnectionForms : public CpuVariants {};
INSTANTIATE_TEST_SUITE_P(Cpu, HyperConnectionForms, ::testing::Values(kAvx512Variant),
                         VariantTestName);

TEST_P(HyperConnectionForms, HaveTheBitsOfThePlainForm) {
  ThreadPool pool(2);
  const Backend threads{.variant = GetParam(), .threads = &pool};
  for (const int32_t hc : {1, 3, 4, 8}) {
    for (const int32_t dim : {1, 31, 32, 37, 72, 256}) {
      for (const int32_t num_tokens : {1, 5, 8, 16, 33}) {
        SCOPED_TRACE(std::to_string(hc) + " streams of " + std::to_string(dim));
        const AnyStreams plain = RunAll(kCpu, hc, dim, num_tokens);
        for (const Backend& form : {backend(), threads}) {
          const AnyStreams out = RunAll(form, hc, dim, num_tokens);
          EXPECT_EQ(EqualShare(out.coefficients, plain.coefficients), 1);
          EXPECT_EQ(EqualShare(out.collapsed, plain.collapsed), 1);
          EXPECT_EQ(EqualShare(out.streams, plain.streams), 1);
        }
      }
    }
  }
}

struct StreamInput {
  int32_t dim;
  std::vector<bf16> streams, y;
  std::vector<float> pre, post, comb;
};

StreamInput MakeStreams(DataKind kind, int32_t num_rows, int32_t dim) {
  Random random(34);
  StreamInput in{dim,
                 MakeBf16(kind, num_rows * kStreams, dim, random),
                 MakeBf16(kind, num_rows, dim, random),
                 {},
                 {},
                 {}};
  const auto fill = [&](std::vector<float>& v, int count, double largest) {
    for (int i = 0; i < count; ++i) v.push_back(static_cast<float>(largest * random.Uniform()));
  };
  fill(in.pre, num_rows * 4, 1);
  fill(in.post, num_rows * 4, 2);
  fill(in.comb, num_rows * 16, 1);
  return in;
}

auto CollapseRows(const StreamInput& in) {
  return [&in](const Backend& backend, int32_t begin, int32_t count, bf16* out) {
    HyperCollapse(backend, {.num_tokens = count,
                            .num_streams = kStreams,
                            .dim = in.dim,
                            .streams = in.streams.data() + int64_t{begin} * kStreams * in.dim,
                            .pre = in.pre.data() + begin * 4,
                            .out = out});
  };
}

auto UpdateRows(const StreamInput& in) {
  return [&in](const Backend& backend, int32_t begin, int32_t count, bf16* out) {
    const int64_t row_size = int64_t{kStreams} * in.dim;
    std::copy_n(in.streams.data() + begin * row_size, count * row_size, out);
    HyperUpdate(backend, {.num_tokens = count,
                          .num_streams = kStreams,
                          .dim = in.dim,
                          .y = in.y.data() + int64_t{begin} * in.dim,
                          .post = in.post.data() + begin * 4,
                          .comb = in.comb.data() + begin * 16,
                          .streams = out});
  };
}

TEST(HyperCollapse, MatchesTheOracleAndTheFormula) {
  for (const DataKind kind : kAllDataKinds) {
    const StreamInput in = MakeStreams(kind, kMostRows, 72);
    const auto cpu = ExpectBatchInvariant<bf16>(kMostRows, 72, CollapseRows(in));
    std::vector<bf16> ref(cpu.size());
    CollapseRows(in)(kRef, 0, kMostRows, ref.data());
    EXPECT_GE(EqualShare(cpu, ref), 0.995) << static_cast<int>(kind);
    EXPECT_LT(Compare(cpu, ref).rel_l2, 1e-4) << static_cast<int>(kind);
    double sum = 0;  // element (2, 7) by hand
    for (int j = 0; j < 4; ++j) sum += in.pre[8 + j] * AsDouble(in.streams[(8 + j) * 72 + 7]);
    EXPECT_EQ(ref[2 * 72 + 7], ToBf16(sum));
  }
}

// Sums of terms of both signs may cancel, so an element's error is measured against its row.
TEST(HyperUpdate, MatchesTheOracleAndTheFormula) {
  for (const DataKind kind : kAllDataKinds) {
    const StreamInput in = MakeStreams(kind, kMostRows, 72);
    const auto cpu = ExpectBatchInvariant<bf16>(kMostRows, kStreams * 72, UpdateRows(in));
    std::vector<bf16> ref(cpu.size());
    UpdateRows(in)(kRef, 0, kMostRows, ref.data());
    EXPECT_GE(EqualShare(cpu, ref), 0.995) << static_cast<int>(kind);
    EXPECT_LT(Compare(cpu, ref).rel_l2, 1e-4) << static_cast<int>(kind);
    double sum = in.post[8 + 1] * AsDouble(in.y[2 * 72 + 7]);  // element (2, 1, 7) by hand
    for (int i = 0; i < 4; ++i)
      sum += in.comb[2 * 16 + i * 4 + 1] * AsDouble(in.streams[(8 + i) * 72 + 7]);
    EXPECT_EQ(ref[(8 + 1) * 72 + 7], ToBf16(sum));
  }
}

class HyperUpdateForms : public CpuVariants {};
INSTANTIATE_TEST_SUITE_P(Cpu, HyperUpdateForms, ::testing::Values(kAvx2Variant, kAvx512Variant),
                         VariantTestName);

// Columns past the last whole vector, and values that are no numbers, in every place of a row.
TEST_P(HyperUpdateForms, BrokenValuesStayInTheirColumn) {
  constexpr int32_t kDim = 51;
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    for (int32_t column = 0; column < kDim; ++column) {
      StreamInput in = MakeStreams(DataKind::kNormal, 3, kDim);
      std::vector<bf16> expected(3 * kStreams * kDim), out(expected.size());
      UpdateRows(in)(backend(), 0, 3, expected.data());
      std::vector<bf16> collapsed(3 * kDim);
      in.streams[(kStreams + 2) * kDim + column] = ToBf16(bad);  // token 1
      UpdateRows(in)(backend(), 0, 3, out.data());
      CollapseRows(in)(backend(), 0, 3, collapsed.data());
      for (int32_t i = 0; i < 3 * kStreams * kDim; ++i) {
        const bool hit = i / (kStreams * kDim) == 1 && i % kDim == column;
        EXPECT_EQ(std::isfinite(ToFloat(out[i])), !hit) << i;
        EXPECT_EQ(out[i] == expected[i], !hit) << i;
      }
      for (int32_t i = 0; i < 3 * kDim; ++i)
        EXPECT_EQ(std::isfinite(ToFloat(collapsed[i])), i != kDim + column) << i;
    }
  }
}

TEST(HyperUpdate, ATransposedCombIsSeen) {
  StreamInput in = MakeStreams(DataKind::kNormal, 3, 64);
  std::vector<bf16> right(3 * kStreams * 64), wrong(right.size());
  UpdateRows(in)(kRef, 0, 3, right.data());
  for (int t = 0; t < 3; ++t)
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < i; ++j)
        std::swap(in.comb[t * 16 + i * 4 + j], in.comb[t * 16 + j * 4 + i]);
  UpdateRows(in)(kCpu, 0, 3, wrong.data());
  EXPECT_GT(Compare(wrong, right).rel_l2, 2e-3);
}

}  // namespace
}  // namespace deepinfer::testing
