#include "kernels/embedding/embedding.h"

#include <gtest/gtest.h>

#include "kernels/testing/batch.h"
#include "kernels/testing/data.h"

namespace deepinfer::testing {
namespace {

constexpr int32_t kVocab = 50, kDim = 72, kStreams = 4;

TEST(Embedding, CopiesRowsIntoEveryStreamAndStartsPre) {
  Random random(1);
  const OwnedMatrix table =
      MakeMatrix(WeightFormat::kBf16, DataKind::kNormal, kVocab, kDim, random);
  const std::vector<bf16> image_row = MakeBf16(DataKind::kNormal, 1, kDim, random);
  std::vector<int32_t> ids(kMostRows);
  std::vector<const bf16*> overrides(kMostRows, nullptr);
  for (int32_t& id : ids) id = random.Below(kVocab);
  overrides[3] = image_row.data();

  const auto run = [&](const Backend& backend, int32_t begin, int32_t count, bf16* out) {
    Guarded<float> pre(count * kStreams);
    Embedding(backend, {.num_tokens = count,
                        .dim = kDim,
                        .num_streams = kStreams,
                        .ids = ids.data() + begin,
                        .table = table.view,
                        .overrides = overrides.data() + begin,
                        .streams = out,
                        .pre = pre.data()});
    EXPECT_TRUE(pre.GuardsIntact());
    for (int64_t i = 0; i < pre.size(); ++i) EXPECT_EQ(pre[i], i % kStreams == 0 ? 1.0f : 0.0f);
  };
  const auto out = ExpectBatchInvariant<bf16>(kMostRows, kStreams * kDim, run);
  for (int32_t t = 0; t < kMostRows; ++t) {
    const bf16* row = t == 3 ? image_row.data() : table.view.bf16_data() + ids[t] * kDim;
    for (int32_t j = 0; j < kStreams; ++j)
      ASSERT_TRUE(BitEqual(out.data() + (t * kStreams + j) * kDim, row, kDim)) << t << " " << j;
  }
  std::vector<bf16> ref(out.size());
  run(kRef, 0, kMostRows, ref.data());
  EXPECT_TRUE(ref == out);
}

TEST(Embedding, AnIdOutsideTheTableStopsTheProgram) {
  Random random(2);
  const OwnedMatrix table = MakeMatrix(WeightFormat::kBf16, DataKind::kNormal, 4, 8, random);
  for (const int32_t id : {-1, 4}) {
    EXPECT_DEATH(
        Embedding(kCpu,
                  {.num_tokens = 1, .dim = 8, .num_streams = 1, .ids = &id, .table = table.view}),
        "CHECK failed");
  }
}

}  // namespace
}  // namespace deepinfer::testing
