// model/tensor_table.h: a checkpoint's tensors by name, as typed views. Owns nothing.
#pragma once

#include <string_view>
#include <unordered_map>

#include "kernels/formats/matrix.h"
#include "model/tensor_spec.h"

namespace deepinfer {

struct TensorView {
  const TensorSpec* spec = nullptr;  // outlives the table
  const uint8_t* data = nullptr;     // aligned to the element size
  bool usual_scales = true;          // of E8M0 tensors: all bytes in [64, 190]
};

// All lookups require the tensor to exist with the element type asked for: the caller has compared
// the checkpoint with ExpectedTensors() before.
class TensorTable {
 public:
  void Add(const TensorView& view);

  const TensorView& At(std::string_view name) const;
  bool Has(std::string_view name) const { return views_.contains(name); }

  Matrix Fp8(std::string_view name) const;  // name.weight and name.scale
  Matrix Fp4(std::string_view name) const;  // name.weight (two codes a byte) and name.scale
  Matrix Bf16Matrix(std::string_view name) const;
  const bf16* Bf16(std::string_view name) const;
  const float* F32(std::string_view name) const;

 private:
  Matrix Quantised(std::string_view name, WeightFormat format) const;

  std::unordered_map<std::string_view, TensorView> views_;  // keys are the specs' names
};

}  // namespace deepinfer
