#include "kernels/sparse_attention/sparse_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/testing/attention_case.h"
#include "kernels/testing/packed.h"

namespace deepinfer {
namespace {

using testing::AttentionSequence;
using testing::AttentionShape;
using testing::AttentionStep;
using testing::DataKind;

class SparseAttentionForms : public testing::CpuVariants {};
INSTANTIATE_TEST_SUITE_P(Cpu, SparseAttentionForms,
                         ::testing::Values(kAvx2Variant, kAvx512Variant, kAmxVariant),
                         testing::VariantTestName);

const AttentionShape kToy{.heads = 4, .dim = 64, .window = 16, .topk = 8};
const AttentionShape kReal{.heads = 64, .dim = 512, .window = 128, .topk = 512};

// The limits of kernels.md 7.
void ExpectClose(const std::vector<bf16>& got, const std::vector<bf16>& want) {
  const testing::Difference d = testing::Compare(got, want);
  EXPECT_LT(d.rel_l2, 3e-3);
  EXPECT_LT(d.cos_diff, 5e-6);
}

// Rows of one step equal to rows [begin, begin + count) of another, bit for bit.
void ExpectRows(const std::vector<bf16>& rows, const std::vector<bf16>& whole, int32_t begin,
                int64_t row_values) {
  ASSERT_LE(begin * row_values + std::ssize(rows), std::ssize(whole));
  EXPECT_TRUE(testing::BitEqual(rows.data(), whole.data() + begin * row_values, std::ssize(rows)))
      << "from row " << begin;
}

TEST_P(SparseAttentionForms, AgreesWithTheOracleOnToyShapes) {
  ThreadPool two(2);
  for (const DataKind kind : testing::kAllDataKinds) {
    for (const int32_t heads : {1, 4, 7}) {
      for (const int32_t ratio : {1, 2}) {
        AttentionShape shape = kToy;
        shape.heads = heads;
        shape.ratio = ratio;
        shape.kind = kind;
        AttentionSequence sequence(shape, 90, 11);
        AttentionStep step(shape);
        step.Add(sequence, 0, 66);
        const auto want = step.Run({.variant = kRefVariant}), got = step.Run(backend());
        SCOPED_TRACE(static_cast<int>(kind));
        ExpectClose(got, want);
        EXPECT_EQ(step.Run(backend()), got);
        EXPECT_EQ(step.Run({.variant = GetParam(), .threads = &two}), got);
      }
    }
  }
}

TEST_P(SparseAttentionForms, AgreesWithTheOracleOnTheRealShape) {
  AttentionSequence sequence(kReal, 700, 12);
  AttentionStep step(kReal);
  step.Add(sequence, 0, 1);    // one key
  step.Add(sequence, 126, 3);  // window just full
  step.Add(sequence, 697, 2);  // 128 + 512 slots
  ExpectClose(step.Run(backend()), step.Run({.variant = kRefVariant}));
}

TEST_P(SparseAttentionForms, SlidingWindowAloneNeedsNoGlobalSource) {
  AttentionShape shape = kReal;
  shape.topk = 0;
  shape.heads = 8;
  AttentionSequence sequence(shape, 200, 13);
  AttentionStep step(shape);
  step.Add(sequence, 150, 5);
  ExpectClose(step.Run(backend()), step.Run({.variant = kRefVariant}));
}

// A softmax over all keys at once, in F64 and without BF16 probabilities, shares nothing with the
// two forms but the contract.
std::vector<double> PlainSoftmax(AttentionSequence& sequence, const AttentionStep& step,
                                 int32_t position, int32_t window_begin) {
  const AttentionShape& shape = sequence.shape();
  const auto dim = static_cast<size_t>(shape.dim);
  std::vector<std::vector<float>> keys;
  for (int32_t p = std::max(window_begin, position - shape.window + 1); p <= position; ++p) {
    keys.emplace_back(dim);
    DecodeSwaRecord(sequence.SwaRecord(p), shape.dim, keys.back().data());
  }
  for (const int32_t entry : sequence.Selection(position)) {
    if (entry < 0) continue;
    keys.emplace_back(dim);
    DecodeGlobalRecord(sequence.Global().GlobalRecord(entry, shape.dim), shape.dim,
                       keys.back().data());
  }
  std::vector<double> out;
  for (int32_t h = 0; h < shape.heads; ++h) {
    const bf16* q = sequence.Query(position) + h * shape.dim;
    double max = step.Sink(h);
    std::vector<double> scores;
    for (const auto& key : keys) {
      double dot = 0;
      for (size_t i = 0; i < dim; ++i) dot += double{ToFloat(q[i])} * key[i];
      scores.push_back(dot / std::sqrt(shape.dim));
      max = std::max(max, scores.back());
    }
    double denominator = std::exp(step.Sink(h) - max);
    std::vector<double> sum(dim, 0.0);
    for (size_t k = 0; k < keys.size(); ++k) {
      const double p = std::exp(scores[k] - max);
      denominator += p;
      for (size_t i = 0; i < dim; ++i) sum[i] += p * keys[k][i];
    }
    for (const double s : sum) out.push_back(s / denominator);
  }
  return out;
}

TEST_P(SparseAttentionForms, IsASoftmaxWithSinkOverWindowAndSelection) {
  AttentionShape shape{.heads = 4, .dim = 64, .window = 128, .topk = 96};
  AttentionSequence sequence(shape, 400, 14);
  for (const int32_t position : {0, 63, 127, 128, 399}) {
    for (const int32_t window_begin : {0, position}) {
      AttentionStep step(shape);
      step.Add(sequence, position, 1, window_begin);
      const auto want = PlainSoftmax(sequence, step, position, window_begin);
      for (const VariantId variant : {kRefVariant, GetParam()}) {
        const auto got = step.Run({.variant = variant});
        // BF16 probabilities and output: 2^-9 each at worst.
        EXPECT_LT(testing::Compare(got.data(), want.data(), std::ssize(got)).rel_l2, 4e-3)
            << position << " " << window_begin;
      }
    }
  }
}

TEST_P(SparseAttentionForms, RowsDoNotDependOnBatchOrChunks) {
  for (const AttentionShape& shape :
       {kToy, AttentionShape{.heads = 18, .dim = 512, .window = 128, .topk = 64, .ratio = 2}}) {
    const int32_t end = shape.window * 2 + 9;
    AttentionSequence sequence(shape, end, 15), other(shape, end, 16);
    for (const VariantId variant : {kRefVariant, GetParam()}) {
      if (variant == kRefVariant && shape.dim == 512) continue;  // slow, and serial by nature
      const Backend backend{.variant = variant};
      AttentionStep whole_step(shape);
      whole_step.Add(sequence, 0, end);
      const auto whole = whole_step.Run(backend);
      const int64_t row_values = whole_step.row_values();
      // Own rows fresh, older ones from the ring; beside another sequence.
      for (const int32_t count : {1, 2, 7, shape.window - 1, shape.window + 1}) {
        const int32_t first = end - count;
        AttentionStep chunk(shape);
        chunk.Add(sequence, first, count);
        ExpectRows(chunk.Run(backend), whole, first, row_values);
        AttentionStep mixed(shape);
        mixed.Add(other, 3, 5);
        mixed.Add(sequence, first, count);
        const auto rows = mixed.Run(backend);
        ExpectRows({rows.begin() + 5 * row_values, rows.end()}, whole, first, row_values);
      }
    }
  }
}

TEST_P(SparseAttentionForms, HeadGroupsAndThreadsDoNotChangeBits) {
  AttentionShape shape = kReal;
  shape.topk = 64;
  AttentionSequence sequence(shape, 300, 17);
  AttentionStep many(shape), one(shape);
  many.Add(sequence, 280, 20);
  one.Add(sequence, 299, 1);
  ThreadPool two(2), three(3);
  const auto rows = many.Run(backend()), row = one.Run(backend());
  EXPECT_EQ(many.Run({.variant = GetParam(), .threads = &two}), rows);
  EXPECT_EQ(one.Run({.variant = GetParam(), .threads = &two}), row);  // heads split into groups
  EXPECT_EQ(one.Run({.variant = GetParam(), .threads = &three}), row);
  ExpectRows(row, rows, 19, many.row_values());
}

// Few rows for the threads there are: a thread's stretch begins and ends within a row.
TEST_P(SparseAttentionForms, ThreadsThatShareRowsDoNotChangeBits) {
  ThreadPool three(3), seven(7);
  for (const int32_t heads : {7, 18, 64}) {
    const AttentionShape shape{.heads = heads, .dim = 64, .window = 16, .topk = 8};
    AttentionSequence sequence(shape, 90, 26);
    for (const int32_t count : {2, 3, 5, 13}) {
      AttentionStep step(shape);
      step.Add(sequence, 70, count);
      const auto alone = step.Run(backend());
      for (ThreadPool* const threads : {&three, &seven}) {
        EXPECT_EQ(step.Run({.variant = GetParam(), .threads = threads}), alone)
            << heads << " heads, " << count << " rows, " << threads->num_threads() << " threads";
      }
    }
  }
}

// Pages lie in shuffled places of the pool; ratio 2 has 32 entries a page, ratio 1 has 64.
TEST_P(SparseAttentionForms, ReadsEntriesOnBothSidesOfPageBoundaries) {
  for (const int32_t ratio : {1, 2}) {
    AttentionShape shape = kToy;
    shape.ratio = ratio;
    AttentionSequence sequence(shape, 400, 18);
    sequence.Selection(399) = {0, 31, 32, 63, 64, 127, 128, -1};
    AttentionStep step(shape);
    step.Add(sequence, 399, 1);
    const auto want = PlainSoftmax(sequence, step, 399, 0);
    for (const VariantId variant : {kRefVariant, GetParam()}) {
      const auto got = step.Run({.variant = variant});
      EXPECT_LT(testing::Compare(got.data(), want.data(), std::ssize(got)).rel_l2, 4e-3) << ratio;
    }
  }
}

TEST_P(SparseAttentionForms, EmptySlotsKeepTheirPlaceInTheBlockGrid) {
  AttentionShape shape{.heads = 16, .dim = 64, .window = 128, .topk = 128};
  AttentionSequence sequence(shape, 600, 19);
  const auto run = [&](const std::vector<int32_t>& selection, const Backend& backend) {
    sequence.Selection(599) = selection;
    AttentionStep step(shape);
    step.Add(sequence, 599, 1);
    return step.Run(backend);
  };
  std::vector<int32_t> first(128, -1), second(128, -1), shifted(128, -1);
  for (int32_t i = 0; i < 64; ++i) {
    first[static_cast<size_t>(i)] = second[static_cast<size_t>(64 + i)] =
        shifted[static_cast<size_t>(32 + i)] = 9 * i;
  }
  for (const VariantId variant : {kRefVariant, GetParam()}) {
    const Backend backend{.variant = variant};
    const auto want = run(first, backend);
    EXPECT_EQ(run(second, backend), want);   // a whole block of empty slots adds nothing
    EXPECT_NE(run(shifted, backend), want);  // other blocks, other rounding
  }
}

// Integer data: scores are exact, so probabilities agree and only the last rounding of the F32 sums
// may differ. A probability left unrounded, or blocks cut elsewhere, shows in percents.
TEST_P(SparseAttentionForms, RoundsWhereTheOracleDoes) {
  AttentionShape shape{.heads = 16, .dim = 64, .window = 128, .topk = 160};
  shape.kind = DataKind::kInteger;
  AttentionSequence sequence(shape, 400, 23);
  AttentionStep step(shape);
  step.Add(sequence, 0, 1);
  step.Add(sequence, 40, 60);  // empty window slots before the selection
  step.Add(sequence, 380, 20);
  const auto want = step.Run({.variant = kRefVariant}), got = step.Run(backend());
  int64_t equal = 0;
  for (size_t i = 0; i < got.size(); ++i) equal += got[i] == want[i];
  EXPECT_GT(static_cast<double>(equal), 0.999 * static_cast<double>(got.size()));
}

TEST_P(SparseAttentionForms, WindowBeginHidesOlderRows) {
  AttentionSequence sequence(kToy, 100, 20);
  for (const VariantId variant : {kRefVariant, GetParam()}) {
    AttentionStep clamped(kToy), open(kToy);
    clamped.Add(sequence, 90, 1, 80);
    open.Add(sequence, 90, 1);
    EXPECT_NE(clamped.Run({.variant = variant}), open.Run({.variant = variant}));
    AttentionStep no_effect(kToy);
    no_effect.Add(sequence, 90, 1, 75);  // 90 - 16 + 1
    EXPECT_EQ(no_effect.Run({.variant = variant}), open.Run({.variant = variant}));
  }
}

// Draft rows see the committed window and all rows of the block, whatever their order.
TEST_P(SparseAttentionForms, DraftBlockIsBidirectional) {
  AttentionShape shape = kToy;
  shape.topk = 0;
  for (const int32_t first : {0, 3, 16, 50}) {
    AttentionSequence sequence(shape, first + 5, 21);
    AttentionStep draft(shape);
    draft.Add(sequence, first, 5, 0, true);
    const auto want = draft.Run({.variant = kRefVariant});
    ExpectClose(draft.Run(backend()), want);
    // By hand: head 0 of row 0, keys = window before `first` and all five rows.
    double max = -1e30, denominator = 0;
    std::vector<double> sum(64, 0.0), scores;
    std::vector<std::vector<float>> keys;
    for (int32_t p = std::max(0, first - shape.window); p < first + 5; ++p) {
      keys.emplace_back(64);
      DecodeSwaRecord(sequence.SwaRecord(p), 64, keys.back().data());
      double dot = 0;
      for (size_t i = 0; i < 64; ++i)
        dot += double{ToFloat(sequence.Query(first)[i])} * keys.back()[i];
      scores.push_back(dot / 8);
      max = std::max(max, scores.back());
    }
    for (size_t k = 0; k < keys.size(); ++k) {
      const double p = std::exp(scores[k] - max);
      denominator += p;
      for (size_t i = 0; i < 64; ++i) sum[i] += p * keys[k][i];
    }
    denominator += std::exp(draft.Sink(0) - max);
    for (double& s : sum) s /= denominator;
    EXPECT_LT(testing::Compare(want.data(), sum.data(), 64).rel_l2, 4e-3) << first;
  }
}

// With one key, a query of zeros and next to no sink, the output is the key.
std::vector<bf16> KeyAlone(const Backend& backend, const std::vector<uint8_t>& record, int32_t dim,
                           bool global) {
  const std::vector<bf16> q(static_cast<size_t>(dim), bf16{0});
  const float sink = -1e30f;
  const int32_t window_begin = global ? 1 : 0, selection = 0, page = 0;
  AttentionSegment segment = {.row_begin = 0, .row_end = 1, .fresh = record.data()};
  segment.global = {.pool = const_cast<uint8_t*>(record.data()),
                    .page_bytes = std::ssize(record),
                    .page_table = &page,
                    .section = {.entries_per_page = 1}};
  std::vector<bf16> out(static_cast<size_t>(dim));
  SparseAttention(backend, {.num_tokens = 1,
                            .num_heads = 1,
                            .head_dim = dim,
                            .window = 1,
                            .scale = 1,
                            .q = q.data(),
                            .sink = &sink,
                            .window_begin = &window_begin,
                            .selection = global ? &selection : nullptr,
                            .topk = global ? 1 : 0,
                            .segments = &segment,
                            .num_segments = 1,
                            .out = out.data()});
  return out;
}

void ExpectKey(const std::vector<bf16>& got, const std::vector<float>& want) {
  for (size_t i = 0; i < want.size(); ++i) {
    // Products of BF16 pairs take what is below the normal numbers for zero.
    if (std::fabs(want[i]) < 0x1p-120f) {
      EXPECT_LT(std::fabs(ToFloat(got[i])), 0x1p-119f) << i;
    } else {
      EXPECT_EQ(ToFloat(got[i]), want[i]) << i;
    }
  }
}

bool IsNanE4m3(int code) { return (code & 127) == 127; }

TEST_P(SparseAttentionForms, DecodesEveryWindowCodeAtEveryScale) {
  constexpr int32_t kDim = 256;
  for (int e = 0; e <= 246; ++e) {  // the largest code stays finite
    std::vector<uint8_t> record(static_cast<size_t>(SwaRecordBytes(kDim)), static_cast<uint8_t>(e));
    for (int i = 0; i < kDim; ++i) {
      record[static_cast<size_t>(i)] = static_cast<uint8_t>(IsNanE4m3(i) ? 0 : i);
    }
    std::vector<float> want(kDim);
    DecodeSwaRecord(record.data(), kDim, want.data());
    SCOPED_TRACE(e);
    ExpectKey(KeyAlone(backend(), record, kDim, false), want);
  }
}

TEST_P(SparseAttentionForms, DecodesEveryGlobalCodeAtEveryScale) {
  constexpr int32_t kDim = 32;
  for (int scale = 0; scale < 256; ++scale) {
    if (IsNanE4m3(scale)) continue;
    std::vector<uint8_t> record(static_cast<size_t>(GlobalRecordBytes(kDim)),
                                static_cast<uint8_t>(scale));
    for (int i = 0; i < 16; ++i) {
      record[static_cast<size_t>(i)] = static_cast<uint8_t>(i % 8 * 2 | (i % 8 * 2 + 1) << 4);
    }
    record[kDim / 2] = 0x38;  // 1: the other group has its own scale
    std::vector<float> want(kDim);
    DecodeGlobalRecord(record.data(), kDim, want.data());
    SCOPED_TRACE(scale);
    ExpectKey(KeyAlone(backend(), record, kDim, true), want);
  }
}

TEST_P(SparseAttentionForms, NanInARecordIsNanInItsRow) {
  constexpr int32_t kDim = 64;
  std::vector<uint8_t> scale(static_cast<size_t>(SwaRecordBytes(kDim)), 0x38);
  scale.back() = kE8m0Nan;
  std::vector<uint8_t> global(static_cast<size_t>(GlobalRecordBytes(kDim)), 0x38);
  global.back() = 0xff;
  for (const bf16 value : KeyAlone(backend(), scale, kDim, false)) {
    EXPECT_TRUE(std::isnan(ToFloat(value)));
  }
  for (const uint8_t e : {41, 127, 130, 240}) {
    for (const size_t place : {0u, 5u, 31u, 32u, 63u}) {
      std::vector<uint8_t> code(static_cast<size_t>(SwaRecordBytes(kDim)), 0x38);
      code[kDim] = code[kDim + 1] = e;
      code[place] = place % 2 == 0 ? 0x7f : 0xff;
      for (const bf16 value : KeyAlone(backend(), code, kDim, false)) {
        EXPECT_TRUE(std::isnan(ToFloat(value))) << int{e} << " " << place;
      }
    }
  }
  for (const bf16 value : KeyAlone(backend(), global, kDim, true)) {
    EXPECT_TRUE(std::isnan(ToFloat(value)));
  }
}

// Blocks of every size that lanes of slots can be filled to, of an odd head dim.
TEST_P(SparseAttentionForms, BlocksOfAnySize) {
  const AttentionShape shape{.heads = 7, .dim = 96, .window = 66, .topk = 0};
  AttentionSequence sequence(shape, 66, 24);
  for (int32_t position = 0; position < 66; ++position) {
    AttentionStep step(shape);
    step.Add(sequence, position, 1);
    ExpectClose(step.Run(backend()), step.Run({.variant = kRefVariant}));
  }
}

// Scores hundreds apart: most probabilities are zero in F32, some are no normal numbers.
TEST_P(SparseAttentionForms, UnlikelySlotsWeighNothing) {
  AttentionShape shape = kToy;
  shape.window = 128;
  AttentionSequence sequence(shape, 300, 25);
  const int64_t row_values = int64_t{shape.heads} * shape.dim;
  for (int32_t position = 0; position < 300; ++position) {
    auto* const query = const_cast<bf16*>(sequence.Query(position));
    for (int64_t i = 0; i < row_values; ++i) query[i] = ToBf16(ToFloat(query[i]) * 200);
  }
  AttentionStep step(shape);
  step.Add(sequence, 200, 40);
  ExpectClose(step.Run(backend()), step.Run({.variant = kRefVariant}));
}

TEST_P(SparseAttentionForms, NanStaysInItsRow) {
  AttentionSequence sequence(kToy, 40, 22);
  AttentionStep step(kToy);
  step.Add(sequence, 30, 2);
  const auto clean = step.Run(backend());
  const_cast<bf16*>(sequence.Query(31))[0] = {0x7fc0};
  for (const VariantId variant : {kRefVariant, GetParam()}) {
    AttentionStep broken(kToy);
    broken.Add(sequence, 30, 2);
    const auto out = broken.Run({.variant = variant});
    EXPECT_TRUE(std::isnan(ToFloat(out[256]))) << "head 0 of row 31";
    if (variant == GetParam()) {
      EXPECT_TRUE(testing::BitEqual(out.data(), clean.data(), 256));
    }
  }
}

}  // namespace
}  // namespace deepinfer
