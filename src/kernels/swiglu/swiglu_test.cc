#include "kernels/swiglu/swiglu.h"

#include <gtest/gtest.h>

#include "kernels/testing/batch.h"
#include "kernels/testing/data.h"

namespace deepinfer::testing {
namespace {

struct Input {
  std::vector<bf16> gate, up;
  std::vector<float> weight;
};

Input MakeInput(DataKind kind, int32_t num_rows, int32_t inner) {
  Random random(7);
  Input in{MakeBf16(kind, num_rows, inner, random), MakeBf16(kind, num_rows, inner, random), {}};
  for (int32_t t = 0; t < num_rows; ++t)
    in.weight.push_back(static_cast<float>(random.Uniform() * 1.5));
  return in;
}

std::vector<bf16> Output(const Backend& backend, const Input& in, float limit, bool weighted) {
  const auto num_rows = static_cast<int32_t>(in.weight.size());
  const auto inner = static_cast<int32_t>(in.gate.size()) / num_rows;
  Guarded<bf16> out(static_cast<int64_t>(in.gate.size()));
  Swiglu(backend, {.num_tokens = num_rows,
                   .inner = inner,
                   .limit = limit,
                   .gate = in.gate.data(),
                   .up = in.up.data(),
                   .weight = weighted ? in.weight.data() : nullptr,
                   .out = out.data()});
  EXPECT_TRUE(out.GuardsIntact());
  return out.ToVector();
}

// For gates below -88 the F32 exponential overflows and silu is 0; the oracle's F64 gives < 1e-36.
std::vector<bf16> WithoutTiny(std::vector<bf16> out) {
  for (bf16& v : out) {
    if (std::fabs(ToFloat(v)) < 1e-30f) v.bits = 0;
  }
  return out;
}

TEST(Swiglu, MatchesTheOracle) {
  for (const DataKind kind : kAllDataKinds) {
    const Input in = MakeInput(kind, 33, 72);
    for (const float limit : {0.0f, 10.0f}) {
      for (const bool weighted : {false, true}) {
        const auto cpu = WithoutTiny(Output(kCpu, in, limit, weighted));
        const auto ref = WithoutTiny(Output(kRef, in, limit, weighted));
        EXPECT_LE(WorstUlp(cpu, ref), 1) << static_cast<int>(kind);
        EXPECT_GE(EqualShare(cpu, ref), 0.995) << static_cast<int>(kind);
      }
    }
  }
}

// Gate and up are clamped, gate from above only; the routing weight comes last. Hand numbers.
TEST(Swiglu, ClampsAndWeighs) {
  const float gates[] = {20, -20, 1, 1}, ups[] = {1, 1, 30, -30};
  for (const Backend& backend : {kRef, kCpu}) {
    for (int i = 0; i < 4; ++i) {
      const Input in{{ToBf16(gates[i])}, {ToBf16(ups[i])}, {0.5f}};
      const double gate = std::min(gates[i], 10.0f);
      const double up = std::clamp(ups[i], -10.0f, 10.0f);
      const double expected = 0.5 * gate / (1 + std::exp(-gate)) * up;
      EXPECT_NEAR(ToFloat(Output(backend, in, 10, true)[0]), expected, std::fabs(expected) / 256);
      EXPECT_NEAR(ToFloat(Output(backend, in, 10, false)[0]), 2 * expected,
                  std::fabs(expected) / 128);
    }
  }
}

TEST(Swiglu, MissingClampIsSeen) {
  const Input in = MakeInput(DataKind::kHotOutlier, 5, 64);
  EXPECT_GT(Compare(Output(kCpu, in, 0, true), Output(kRef, in, 10, true)).rel_l2, 2e-3);
}

TEST(Swiglu, NanPassesThrough) {
  const Input in{{ToBf16(NAN), ToBf16(1.0f)}, {ToBf16(1.0f), ToBf16(NAN)}, {1.0f}};
  for (const Backend& backend : {kRef, kCpu}) {
    for (const bf16 v : Output(backend, in, 10, true)) EXPECT_TRUE(std::isnan(ToFloat(v)));
  }
}

// The contract in F32, one operation after the other.
float Plain(float gate, float up, float limit, float weight) {
  const float most = limit > 0 ? limit : INFINITY;
  const float g = std::min(gate, most), u = std::clamp(up, -most, most);
  return weight * (g / (1.0f + std::exp(-g)) * u);
}

// Every gate there is, in every place of a vector and of what is left after the last one.
TEST(Swiglu, EveryGateBesideSpecialUps) {
  constexpr int32_t kInner = 29, kRows = (0x10000 + kInner - 1) / kInner;
  for (const float up : {1.0f, -3.5f, 0.0f, 1e-40f, 3e38f, INFINITY, -INFINITY, NAN}) {
    for (const float limit : {0.0f, 10.0f}) {
      Input in;
      in.weight.assign(kRows, 0.75f);
      for (int32_t i = 0; i < kRows * kInner; ++i) in.gate.push_back({static_cast<uint16_t>(i)});
      in.up.assign(in.gate.size(), ToBf16(up));
      const std::vector<bf16> out = Output(kCpu, in, limit, true);
      int num_wrong = 0;
      for (size_t i = 0; i < out.size(); ++i) {
        const float gate = ToFloat(in.gate[i]);
        const bf16 expected = ToBf16(Plain(gate, ToFloat(in.up[i]), limit, 0.75f));
        const bool right = UlpDistance(out[i], expected) <= 1;  // NaN for NaN
        if (!right && ++num_wrong < 10)
          ADD_FAILURE() << gate << " " << up << " " << limit << ": " << ToFloat(out[i]);
      }
      EXPECT_EQ(num_wrong, 0);
    }
  }
}

TEST(Swiglu, RowsDoNotDependOnTheBatchAndOutMayBeGate) {
  const int32_t inner = 40;
  const Input in = MakeInput(DataKind::kNormal, kMostRows, inner);
  const auto run = [&](const Backend& backend, int32_t begin, int32_t count, bf16* out) {
    std::copy_n(in.gate.data() + begin * inner, count * inner, out);
    Swiglu(backend, {.num_tokens = count,
                     .inner = inner,
                     .limit = 10,
                     .gate = out,
                     .up = in.up.data() + begin * inner,
                     .weight = in.weight.data() + begin,
                     .out = out});
  };
  EXPECT_TRUE(ExpectBatchInvariant<bf16>(kMostRows, inner, run) == Output(kCpu, in, 10, true));
}

}  // namespace
}  // namespace deepinfer::testing
