#include "kernels/backend.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/cpu/features.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/testing/packed.h"

namespace deepinfer {
namespace {

struct TagParams {
  std::string* ran = nullptr;
};

void TagRef(const Backend&, const TagParams& p) { *p.ran += "ref "; }
void TagCpu(const Backend&, const TagParams& p) { *p.ran += "cpu "; }
void TagNew(const Backend&, const TagParams& p) { *p.ran += "new "; }

std::string WhichRuns(const Op<TagParams>& op, VariantId variant) {
  std::string ran;
  op.Run({.variant = variant}, {.ran = &ran});
  return ran;
}

TEST(Backend, KnowsTheVariantsOfTheTree) {
  EXPECT_EQ(*FindVariant("ref"), kRefVariant);
  EXPECT_EQ(*FindVariant("avx2"), kAvx2Variant);
  EXPECT_EQ(*FindVariant("avx512"), kAvx512Variant);
  EXPECT_EQ(*FindVariant("amx"), kAmxVariant);
  EXPECT_EQ(VariantParent(kAmxVariant), kAvx512Variant);
  EXPECT_EQ(VariantParent(kAvx512Variant), kAvx2Variant);
  EXPECT_EQ(VariantParent(kAvx2Variant), kRefVariant);
  EXPECT_EQ(VariantParent(kRefVariant), -1);
}

TEST(Backend, UnknownVariantNamesThoseThereAre) {
  const StatusOr<VariantId> found = FindVariant("tpu");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(
      MessageOf(found.status()).find("no kernel variant 'tpu'; there are: ref, avx2, avx512, amx"),
      std::string::npos)
      << MessageOf(found.status());
}

// A new accelerator is a new variant: it brings one op and inherits the others, two steps up too.
TEST(Backend, NewVariantOverridesOneOpAndInheritsTheRest) {
  const VariantId child = RegisterVariant("child", kCpuVariant);
  const VariantId grandchild = RegisterVariant("grandchild", child);
  EXPECT_EQ(*FindVariant("grandchild"), grandchild);

  Op<TagParams> overridden(TagRef, TagCpu), inherited(TagRef, TagCpu), only_ref(TagRef, nullptr);
  overridden.Register(child, TagNew);
  EXPECT_EQ(WhichRuns(overridden, child), "new ");
  EXPECT_EQ(WhichRuns(overridden, grandchild), "new ");
  EXPECT_EQ(WhichRuns(overridden, kCpuVariant), "cpu ");
  EXPECT_EQ(WhichRuns(inherited, grandchild), "cpu ");
  EXPECT_EQ(WhichRuns(only_ref, grandchild), "ref ");
}

// The same with an op of the product: only the new variant's callers see the override.
TEST(Backend, ProductOpTakesAForeignForm) {
  const VariantId variant = RegisterVariant("foreign", kCpuVariant);
  RmsNormOp().Register(variant, [](const Backend&, const RmsNormParams& p) {
    for (int32_t i = 0; i < p.num_tokens * p.dim; ++i) p.out[i] = ToBf16(42.0f);
  });
  const std::vector<bf16> x(32, ToBf16(3.0f)), gain(32, ToBf16(1.0f));
  std::vector<bf16> out(32);
  RmsNormParams params{.num_tokens = 1,
                       .dim = 32,
                       .x = x.data(),
                       .x_stride = 32,
                       .gain = gain.data(),
                       .out = out.data()};
  RmsNorm({.variant = variant}, params);
  EXPECT_EQ(ToFloat(out[31]), 42.0f);
  RmsNorm({.variant = kCpuVariant}, params);
  EXPECT_EQ(ToFloat(out[31]), 1.0f);
}

constexpr CpuFeatures kOldCpu{.avx2 = true, .fma = true, .f16c = true};
constexpr CpuFeatures kNewCpu{.avx2 = true,
                              .fma = true,
                              .f16c = true,
                              .avx512 = true,
                              .avx512_bf16 = true,
                              .avx512_vbmi = true,
                              .avx512_vnni = true,
                              .amx_bf16 = true};

TEST(Backend, AutoTakesTheFastestVariantOfTheProcessor) {
  for (const char* name : {"auto", "cpu"}) {
    EXPECT_EQ(*ChooseVariant(name, kOldCpu), kAvx2Variant);
    EXPECT_EQ(*ChooseVariant(name, kNewCpu), kAvx512Variant);
    CpuFeatures no_bf16 = kNewCpu;
    no_bf16.avx512_bf16 = false;
    EXPECT_EQ(*ChooseVariant(name, no_bf16), kAvx2Variant);
  }
  EXPECT_EQ(*ChooseVariant("avx2", kNewCpu), kAvx2Variant);
  EXPECT_EQ(*ChooseVariant("amx", kNewCpu), kAmxVariant);
  EXPECT_EQ(*ChooseVariant("ref", {}), kRefVariant);
}

TEST(Backend, AForcedVariantNamesWhatTheProcessorLacks) {
  const auto message = [](std::string_view name, const CpuFeatures& cpu) {
    const StatusOr<VariantId> chosen = ChooseVariant(name, cpu);
    return chosen.ok() ? std::string() : MessageOf(chosen.status());
  };
  EXPECT_NE(message("auto", {}).find("processor: no avx2 fma f16c, which variant avx2 needs"),
            std::string::npos)
      << message("auto", {});
  CpuFeatures no_bf16 = kNewCpu;
  no_bf16.avx512_bf16 = false;
  EXPECT_NE(message("avx512", no_bf16).find("no avx512_bf16, which"), std::string::npos);
  EXPECT_NE(message("amx", no_bf16).find("no avx512_bf16, which"), std::string::npos);
  CpuFeatures no_tiles = kNewCpu;
  no_tiles.amx_bf16 = false;
  EXPECT_NE(message("amx", no_tiles).find("no amx_bf16, which variant amx needs"),
            std::string::npos);
  EXPECT_NE(message("tpu", kNewCpu).find("no kernel variant"), std::string::npos);
}

// What the tests of a variant say where it cannot run: they never pass without running.
TEST(Backend, TestsOfAVariantNameWhatTheProcessorLacks) {
  EXPECT_EQ(testing::SkipReason(kAmxVariant, kNewCpu), "");
  CpuFeatures no_bf16 = kNewCpu;
  no_bf16.avx512_bf16 = false;
  EXPECT_EQ(testing::SkipReason(kAvx2Variant, no_bf16), "");
  EXPECT_EQ(testing::SkipReason(kAvx512Variant, no_bf16), "skipped: no avx512_bf16");
  EXPECT_EQ(testing::SkipReason(kAmxVariant, kOldCpu),
            "skipped: no avx512 avx512_bf16 avx512_vbmi avx512_vnni amx_bf16");
}

TEST(Backend, ChecksRunBeforeEveryVariant) {
  const auto check = [](const TagParams& p) { CHECK(p.ran != nullptr); };
  const Op<TagParams> op(TagRef, TagCpu, check);
  EXPECT_DEATH(op.Run({.variant = kRefVariant}, {}), "ran != nullptr");
  EXPECT_DEATH(op.Run({.variant = kCpuVariant}, {}), "ran != nullptr");
}

TEST(Backend, ParallelForCoversTheRangeOnceWithAndWithoutThreads) {
  ThreadPool pool(2);
  for (ThreadPool* threads : {static_cast<ThreadPool*>(nullptr), &pool}) {
    const Backend backend{.threads = threads};
    std::vector<int> visits(1000, 0);
    backend.ParallelFor(1000, 7, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
    });
    EXPECT_EQ(std::count(visits.begin(), visits.end(), 1), 1000);
    backend.ParallelFor(0, 1, [](int64_t, int64_t) { FAIL() << "empty range ran"; });
  }
}

}  // namespace
}  // namespace deepinfer
