// kernels/testing/packed.h: matrices in panels, and the variants of this machine, for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "kernels/cpu/features.h"
#include "kernels/cpu/scratch.h"
#include "kernels/formats/panels.h"
#include "kernels/testing/data.h"

namespace deepinfer::testing {

// Owns a matrix in both orders. Moving keeps the view valid.
struct PackedMatrix {
  OwnedMatrix plain;
  AlignedScratch panels;
  Matrix view;

  // Call again after a change of `plain`.
  void Pack() {
    const Matrix& w = plain.view;
    const int64_t bytes = PackedBytes(w.format, w.rows, w.cols);
    auto* const out = panels.Get<uint8_t>(bytes);
    std::fill_n(out, bytes, uint8_t{0xff});
    PackPanels(w, 0, NumPanels(w.rows), out);
    view = w;
    view.panels = out;
  }
};

inline PackedMatrix MakePacked(WeightFormat format, DataKind kind, int32_t rows, int32_t cols,
                               Random& random) {
  PackedMatrix m{.plain = MakeMatrix(format, kind, rows, cols, random)};
  m.Pack();
  return m;
}

// Why tests of a variant are skipped on a processor, as "skipped: no avx512_bf16"; "" = they run.
inline std::string SkipReason(VariantId variant, const CpuFeatures& cpu = ThisCpu()) {
  const std::string missing = MissingFeatures(variant, cpu);
  return missing.empty() ? "" : "skipped: no " + missing;
}

// A suite of tests run once per CPU variant; skipped, with the reason, where it cannot run.
class CpuVariants : public ::testing::TestWithParam<VariantId> {
 protected:
  void SetUp() override {
    const std::string reason = SkipReason(GetParam());
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
  Backend backend() const { return {.variant = GetParam()}; }
};

inline std::string VariantTestName(const ::testing::TestParamInfo<VariantId>& info) {
  return VariantNames()[static_cast<size_t>(info.param)];
}

#define DI_INSTANTIATE_CPU_VARIANTS(suite)                                               \
  INSTANTIATE_TEST_SUITE_P(Cpu, suite,                                                   \
                           ::testing::Values(kAvx2Variant, kAvx512Variant, kAmxVariant), \
                           ::deepinfer::testing::VariantTestName)

}  // namespace deepinfer::testing
