// The protocol of kernels.md 7 for products with panels, at the production shapes, in every CPU
// variant of this machine: all kinds of data; outputs poisoned between guard bands; twice, with
// threads and at every row count the same bits; the oracle's limits.
#include "kernels/testing/linear_case.h"
#include "kernels/testing/packed.h"

namespace deepinfer::testing {
namespace {

// Every K of the model, by format. N is cut to whole tiles and more: no sum depends on it.
constexpr LinearShape kFp8Shapes[] = {{WeightFormat::kFp8, 96, 1280},  // wq_b, the indexer's wq_b
                                      {WeightFormat::kFp8, 96, 2304},  // shared down
                                      {WeightFormat::kFp8, 96, 4096},  // wo_a
                                      {WeightFormat::kFp8, 96, 5120},  // wq_a, wkv, shared gate, up
                                      {WeightFormat::kFp8, 96, 6144},  // engram wkv
                                      {WeightFormat::kFp8, 96, 8192},  // wo_b
                                      {WeightFormat::kFp8, 32, 15360}};   // main_proj of the draft
constexpr LinearShape kFp4Shapes[] = {{WeightFormat::kFp4, 88, 2304},     // expert down
                                      {WeightFormat::kFp4, 88, 5120}};    // expert gate, up
constexpr LinearShape kBf16Shapes[] = {{WeightFormat::kBf16, 88, 256},    // Markov head
                                       {WeightFormat::kBf16, 128, 512},   // index keys
                                       {WeightFormat::kBf16, 32, 5120},   // weights_proj
                                       {WeightFormat::kBf16, 88, 5120}};  // gate, compressor, head

// The first rows and the last, which lie in other blocks of rows.
template <typename T>
std::vector<T> Ends(const std::vector<T>& rows, int64_t row_size) {
  std::vector<T> ends(rows.begin(), rows.begin() + 9 * row_size);
  ends.insert(ends.end(), rows.end() - 8 * row_size, rows.end());
  return ends;
}

class LinearProtocol : public CpuVariants {
 protected:
  // Rows that are equal in all batches are near the oracle if the ends of the largest one are.
  void Check(const LinearShape& shape, DataKind kind) const {
    SCOPED_TRACE(Describe(shape, kind));
    Random random(41);
    const PackedMatrix w = MakePacked(shape.format, kind, shape.rows, shape.cols, random);
    const std::vector<bf16> x = MakeX(kind, kMostRows, shape.cols, random);
    const auto run = [&](const Backend& b, int32_t begin, int32_t count, auto* out) {
      RunLinear(b, w.view, x.data() + int64_t{begin} * shape.cols, count, out);
    };
    const auto out = ExpectBatchInvariant<bf16>(kMostRows, shape.rows, run, GetParam());
    const auto out_f32 = ExpectBatchInvariant<float>(kMostRows, shape.rows, run, GetParam());
    ExpectCloseToOracle(w.view, Ends(x, shape.cols), kind, Ends(out, shape.rows),
                        Ends(out_f32, shape.rows));
  }

  template <typename Shapes>
  void CheckAll(const Shapes& shapes) const {
    for (const LinearShape& shape : shapes) {
      for (const DataKind kind : kAllDataKinds) Check(shape, kind);
    }
  }
};
DI_INSTANTIATE_CPU_VARIANTS(LinearProtocol);

TEST_P(LinearProtocol, Fp8) { CheckAll(kFp8Shapes); }
TEST_P(LinearProtocol, Fp4) { CheckAll(kFp4Shapes); }
TEST_P(LinearProtocol, Bf16) { CheckAll(kBf16Shapes); }

}  // namespace
}  // namespace deepinfer::testing
