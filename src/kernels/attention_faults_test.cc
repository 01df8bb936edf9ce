// Negative controls of kernels.md 7 and the kernel-level mistakes of the golden data: with each of
// them in the oracle, the comparison that the ordinary tests make must fail.
#include <gtest/gtest.h>

#include <string>

#include "kernels/compressor/compressor.h"
#include "kernels/engram/engram.h"
#include "kernels/fault.h"
#include "kernels/rope/rope.h"
#include "kernels/testing/attention_case.h"
#include "kernels/testing/index_case.h"

namespace deepinfer {
namespace {

const Backend kOracle{.variant = kRefVariant};
const Backend kCpu{};

class AttentionFaults : public ::testing::Test {
 protected:
  void TearDown() override { SetFault(""); }

  // True if `differs` holds under the fault and not without it.
  template <typename Differs>
  bool Seen(const std::string& fault, const Differs& differs) {
    SetFault("");
    EXPECT_FALSE(differs()) << "already different without " << fault;
    SetFault(fault);
    const bool seen = differs();
    SetFault("");
    return seen;
  }
};

bool AttentionDiffers() {
  const testing::AttentionShape shape{.heads = 4, .dim = 64, .window = 16, .topk = 8};
  testing::AttentionSequence sequence(shape, 60, 41);
  testing::AttentionStep step(shape);
  step.Add(sequence, 20, 40);
  return testing::Compare(step.Run(kCpu), step.Run(kOracle)).rel_l2 > 3e-3;
}

TEST_F(AttentionFaults, MissingSink) { EXPECT_TRUE(Seen("no_sink", AttentionDiffers)); }
TEST_F(AttentionFaults, WindowOneShort) { EXPECT_TRUE(Seen("window_minus_one", AttentionDiffers)); }

std::vector<uint8_t> GlobalRecord(const Backend& backend) {
  testing::Random random(42);
  const auto x = testing::MakeBf16(testing::DataKind::kNormal, 1, 64, random);
  std::vector<uint8_t> record(static_cast<size_t>(GlobalRecordBytes(64)));
  uint8_t* place = record.data();
  WriteGlobal(backend, {.num_rows = 1, .dim = 64, .x = x.data(), .records = &place});
  return record;
}

TEST_F(AttentionFaults, WrongGlobalRecords) {
  const auto differs = [] { return GlobalRecord(kCpu) != GlobalRecord(kOracle); };
  EXPECT_TRUE(Seen("swapped_nibbles_kv", differs));
  EXPECT_TRUE(Seen("global_kv_unquantised", differs));
  EXPECT_TRUE(Seen("global_kv_e8m0_scale_group32", differs));
}

TEST_F(AttentionFaults, WrongIndexKeys) {
  // Keys are written under the fault; queries and choice are the plain form's.
  const testing::IndexShape shape{.heads = 4, .dim = 32, .topk = 8};
  const testing::IndexCase right(shape, 150, {150, 149, 148, 147}, 43);
  EXPECT_TRUE(Seen("index_key_unquantised", [&] {
    const testing::IndexCase written(shape, 150, {150, 149, 148, 147}, 43);
    return written.Run(kCpu, false, {}).selection != right.Run(kCpu, false, {}).selection;
  }));
  EXPECT_TRUE(Seen("index_page_interleaved", [&] {
    return right.Run(kCpu, false, {}).selection != right.Run(kOracle, false, {}).selection;
  }));
}

bool RopeDiffers() {
  testing::Random random(44);
  const auto x = testing::MakeBf16(testing::DataKind::kNormal, 3, 64, random);
  const int32_t positions[] = {0, 1, 77};
  const auto freqs = RopeFrequencies(16, 10000, nullptr);
  std::vector<float> cos(24), sin(24);
  RopeCosSin(freqs, positions, 3, cos.data(), sin.data());
  const auto run = [&](const Backend& backend) {
    std::vector<bf16> out = x;
    Rope(backend, {.num_tokens = 3,
                   .num_heads = 1,
                   .head_dim = 64,
                   .rope_dim = 16,
                   .cos = cos.data(),
                   .sin = sin.data(),
                   .x = out.data()});
    return out;
  };
  return run(kCpu) != run(kOracle);
}

TEST_F(AttentionFaults, HalfSplitRope) { EXPECT_TRUE(Seen("half_split_rope", RopeDiffers)); }

TEST_F(AttentionFaults, ShiftedRopePosition) {
  EXPECT_TRUE(Seen("shifted_rope_position", [] {
    const int32_t position = 0;
    float cos, sin;
    RopeCosSin({1.0f}, &position, 1, &cos, &sin);
    return cos != 1 || sin != 0;
  }));
}

TEST_F(AttentionFaults, CompressorWithoutGate) {
  EXPECT_TRUE(Seen("compressor_without_gate", [] {
    const float first[] = {1, 0.5f}, second[] = {2, -0.5f};
    const float* const rows[] = {first, second};
    bf16 cpu, oracle;
    Compress(kCpu, {.num_entries = 1, .ratio = 2, .dim = 1, .rows = rows, .out = &cpu});
    Compress(kOracle, {.num_entries = 1, .ratio = 2, .dim = 1, .rows = rows, .out = &oracle});
    return cpu != oracle;
  }));
}

TEST_F(AttentionFaults, EngramGateWithoutSqrt) {
  EXPECT_TRUE(Seen("engram_gate_without_sqrt", [] {
    testing::Random random(45);
    const auto kv = testing::MakeBf16(testing::DataKind::kNormal, 5, 64, random);
    const auto weights = testing::MakeBf16(testing::DataKind::kNormal, 4, 64, random);
    const auto x = testing::MakeBf16(testing::DataKind::kNormal, 4, 64, random);
    const auto run = [&](const Backend& backend) {
      std::vector<bf16> streams = x;
      EngramMix(backend, {.num_tokens = 1,
                          .num_streams = 4,
                          .dim = 64,
                          .eps = 1e-20f,
                          .kv = kv.data(),
                          .q_weight = weights.data(),
                          .k_weight = weights.data(),
                          .streams = streams.data()});
      return streams;
    };
    return testing::Compare(run(kCpu), run(kOracle)).rel_l2 > 2e-4;
  }));
}

}  // namespace
}  // namespace deepinfer
