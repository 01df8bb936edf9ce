#include "model/tensor_table.h"

#include "base/check.h"

namespace deepinfer {

void TensorTable::Add(const TensorView& view) {
  CHECK_EQ(
      reinterpret_cast<uintptr_t>(view.data) % static_cast<size_t>(DtypeBytes(view.spec->dtype)),
      0u);
  views_[view.spec->name] = view;
}

const TensorView& TensorTable::At(std::string_view name) const {
  const auto at = views_.find(name);
  if (at == views_.end()) CheckFailed(__FILE__, __LINE__, StrCat("no tensor ", name));
  return at->second;
}

Matrix TensorTable::Quantised(std::string_view name, WeightFormat format) const {
  const TensorView& weight = At(StrCat(name, ".weight"));
  const TensorView& scale = At(StrCat(name, ".scale"));
  const int64_t codes_per_byte = format == WeightFormat::kFp4 ? 2 : 1;
  CHECK_EQ(scale.spec->shape[1] * 32, weight.spec->shape[1] * codes_per_byte);
  return {.format = format,
          .rows = static_cast<int32_t>(weight.spec->shape[0]),
          .cols = static_cast<int32_t>(weight.spec->shape[1] * codes_per_byte),
          .data = weight.data,
          .scale = scale.data,
          .usual_scales = scale.usual_scales};
}

Matrix TensorTable::Fp8(std::string_view name) const { return Quantised(name, WeightFormat::kFp8); }
Matrix TensorTable::Fp4(std::string_view name) const { return Quantised(name, WeightFormat::kFp4); }

Matrix TensorTable::Bf16Matrix(std::string_view name) const {
  const TensorSpec& spec = *At(name).spec;
  CHECK_EQ(spec.shape.size(), 2u);
  return {.format = WeightFormat::kBf16,
          .rows = static_cast<int32_t>(spec.shape[0]),
          .cols = static_cast<int32_t>(spec.shape[1]),
          .data = Bf16(name)};
}

const bf16* TensorTable::Bf16(std::string_view name) const {
  const TensorView& view = At(name);
  CHECK(view.spec->dtype == Dtype::kBf16);
  return reinterpret_cast<const bf16*>(view.data);
}

const float* TensorTable::F32(std::string_view name) const {
  const TensorView& view = At(name);
  CHECK(view.spec->dtype == Dtype::kF32);
  return reinterpret_cast<const float*>(view.data);
}

}  // namespace deepinfer
